//! Transports, the dispatcher, and the server and client that are built on them.

pub mod client;
pub mod dispatch;
pub mod error;
pub mod server;
#[cfg(unix)]
pub mod shutdown_signal;
pub mod testing;
pub mod transport;
