//! How MCP messages are carried: transports, the dispatcher, and what is built on them.

pub mod client;
pub mod dispatch;
pub mod error;
pub mod transport;
