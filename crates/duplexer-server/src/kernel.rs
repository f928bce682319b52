//! The kernel: serves one connection. It knows the method table, but no single method, no transport and no HTTP.

pub(crate) mod connection;
pub(crate) mod context;
pub mod driver;
pub(crate) mod envelope;
pub(crate) mod handler;
pub(crate) mod lifecycle;
pub(crate) mod observer;
pub(crate) mod outcome;
pub(crate) mod principal;
pub(crate) mod runner;
#[cfg(test)]
pub(crate) mod testing;
