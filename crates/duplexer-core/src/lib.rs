//! Transports and the JSON-RPC dispatcher: how MCP messages are carried, without a server or a client.

mod clock;
pub mod dispatch;
pub mod error;
pub mod metrics;
pub mod run;
pub mod shutdown_signal;
pub mod stderr_log;
pub mod tasks;
pub mod transport;
