//! How MCP messages are carried: transports and the dispatcher.

pub mod transport;
