//! `_meta`: the reserved keys.

/// Reserved `_meta` keys.
pub mod key {
    /// The server's identity, on results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}
