//! What a request costs: [`cases`] are measured call by call and held to recorded [`figures`]; [`load`] puts
//! whole servers under load beside a [`floor`].
//!
//! The smallest case is one `tools/call` of the envelope era: read, its arguments decoded, a text result written. [`ours`]
//! goes the way of the library; [`baseline`] is what plain `serde_json` types would do that read the same fields and
//! write the same bytes. Both keep nothing between calls but the output buffer.

pub mod allocations;
mod baseline;
pub mod callgrind;
pub mod cases;
pub mod catalog;
pub mod figures;
pub mod floor;
pub mod http_call;
pub mod kernel;
pub mod load;
pub mod message;
mod ours;
pub mod server;
pub mod stream_call;
pub mod text;
#[cfg(feature = "tokens")]
pub mod tokens;

pub use baseline::baseline;
pub use ours::ours;

/// The frame that is measured.
pub const FRAME: &str = concat!(
    r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"echo","#,
    r#""arguments":{"text":"The quick brown fox jumps over the lazy dog"},"#,
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-client","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}}}"#,
);

/// What both ways write.
pub const REPLY: &str = concat!(
    r#"{"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","#,
    r#""text":"The quick brown fox jumps over the lazy dog"}],"resultType":"complete","#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench-server","version":"1.0.0"}}}}"#,
);

/// The server's identity, rendered once.
pub const SERVER_INFO: &str = r#"{"name":"bench-server","version":"1.0.0"}"#;

/// One way to answer a frame: `None` if it could not.
pub type Way = fn(frame: &str, out: &mut Vec<u8>) -> Option<()>;
