//! Remote servers through a proxy: clients and servers of each era, lost sessions, gateways.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "proxy/eras.rs"]
mod eras;
#[path = "proxy/gateway.rs"]
mod gateway;
#[path = "proxy/hostile.rs"]
mod hostile;
#[path = "proxy/lost.rs"]
mod lost;
#[path = "proxy/support.rs"]
mod support;
#[path = "proxy/tasks.rs"]
mod tasks;
#[path = "proxy/verbatim.rs"]
mod verbatim;
