//! Transports and the JSON-RPC dispatcher: how MCP messages are carried, without a server or a client.

pub mod dispatch;
pub mod error;
pub mod transport;
