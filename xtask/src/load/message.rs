//! Messages to the server under load, for HTTP or for a line.

const ENVELOPE: &str = "2026-07-28";

/// A message: its HTTP headers and its body.
pub(crate) struct Message {
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Message {
    /// Builds `initialize`, which belongs to no session.
    pub(crate) fn initialize() -> Self {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"xtask","version":"1"}}"#;
        Self { headers: String::new(), body: request(0, "initialize", params) }
    }

    /// Builds a request in a session of the handshake era.
    pub(crate) fn asked_in(session: &str, id: u32, method: &str, params: &str) -> Self {
        Self { headers: session_header(session), body: request(id, method, params) }
    }

    /// Builds `notifications/initialized`.
    pub(crate) fn initialized(session: &str) -> Self {
        Self { headers: session_header(session), body: notification("notifications/initialized", "{}") }
    }

    /// Builds a cancellation in a session.
    pub(crate) fn cancelled_in(session: &str, id: u32) -> Self {
        Self { headers: session_header(session), body: Self::cancelled(id).body }
    }

    /// Builds a cancellation for a byte stream, in either era.
    pub(crate) fn cancelled(id: u32) -> Self {
        let body = notification("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#));
        Self { headers: String::new(), body }
    }

    /// Builds a message with a session id and no body.
    pub(crate) fn empty_in(session: &str) -> Self {
        Self { headers: session_header(session), body: String::new() }
    }

    /// Builds a request of the envelope era; `members` are its params, without braces.
    pub(crate) fn enveloped(id: u32, method: &str, members: &str) -> Self {
        let comma = if members.is_empty() { "" } else { "," };
        let params = format!(
            "{{{members}{comma}\"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"{ENVELOPE}\",\
             \"io.modelcontextprotocol/clientInfo\":{{\"name\":\"xtask\",\"version\":\"1\"}},\
             \"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}"
        );
        let headers = format!("mcp-protocol-version: {ENVELOPE}\r\nmcp-method: {method}\r\n");
        Self { headers, body: request(id, method, &params) }
    }

    /// Builds a tool call of the envelope era.
    pub(crate) fn call(id: u32, tool: &str, arguments: &str) -> Self {
        let mut message = Self::enveloped(id, "tools/call", &call(tool, arguments));
        message.headers.extend(["mcp-name: ", tool, "\r\n"]);
        message
    }

    /// Builds a tool call in a session.
    pub(crate) fn call_in(session: &str, id: u32, tool: &str, arguments: &str) -> Self {
        Self::asked_in(session, id, "tools/call", &format!("{{{}}}", call(tool, arguments)))
    }
}

fn call(tool: &str, arguments: &str) -> String {
    format!(r#""name":"{tool}","arguments":{arguments}"#)
}

fn request(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

fn session_header(session: &str) -> String {
    format!("mcp-session-id: {session}\r\n")
}
