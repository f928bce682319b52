//! `_meta`: the reserved keys.

/// Reserved `_meta` keys.
pub mod key {
    /// Opts a request in to progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The server's identity, on results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}
