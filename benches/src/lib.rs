//! Benchmarks: [`cases`] are measured call by call and compared with recorded [`figures`]; [`load`] compares whole
//! servers under load with a [`floor`]. The smallest case is one `tools/call` of the envelope era: read, its arguments
//! decoded, a text result written. [`ours`] uses the library; [`baseline`] uses plain `serde_json` types that read the
//! same fields and write the same bytes. Both keep only the output buffer between calls.

pub mod allocations;
mod baseline;
pub mod caller;
pub mod callgrind;
pub mod cases;
pub mod catalog;
pub mod client_call;
pub mod figures;
pub mod floor;
pub mod http_call;
pub mod kernel;
pub mod layers;
pub mod load;
pub mod message;
mod ours;
pub mod server;
pub mod stream_call;
pub mod task_get;
pub mod text;
#[cfg(feature = "tokens")]
pub mod tokens;

pub use baseline::baseline;
pub use ours::ours;

/// The measured frame.
pub const FRAME: &str = concat!(
    r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"echo","#,
    r#""arguments":{"text":"The quick brown fox jumps over the lazy dog"},"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-client","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
);

/// The text result that both write.
pub const REPLY: &str = concat!(
    r#"{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","#,
    r#""text":"The quick brown fox jumps over the lazy dog"}],"resultType":"complete","#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench-server","version":"1.0.0"}}}}"#,
);

/// The server's identity, rendered once.
pub const SERVER_INFO: &str = r#"{"name":"bench-server","version":"1.0.0"}"#;

/// Answers a frame; `None` on failure.
pub type Way = fn(frame: &str, out: &mut Vec<u8>) -> Option<()>;
