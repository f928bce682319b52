//! Transports and the JSON-RPC dispatcher: how MCP messages are carried, without a server or a client.

mod clock;
pub mod dispatch;
pub mod error;
#[cfg(unix)]
pub mod shutdown_signal;
pub mod transport;
