//! How MCP messages are carried and served: transports, the dispatcher, and the server built on them.

pub mod client;
pub mod dispatch;
pub mod error;
pub mod server;
#[cfg(unix)]
pub mod shutdown_signal;
pub mod testing;
pub mod transport;
