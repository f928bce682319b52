//! Requests of a client, in both eras.

use std::io::Write as _;

/// Era of a request: with its own envelope, or after a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Every request carries its envelope in `_meta`.
    Envelope,
    /// Requests follow a handshake.
    Handshake,
}

/// Revision of the envelope era.
pub const ENVELOPE_VERSION: &str = "2026-07-28";
/// Revision of the handshake era.
pub const HANDSHAKE_VERSION: &str = "2025-11-25";

/// Members of `_meta` in the envelope era.
pub const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-client","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}"#,
);

/// `initialize`.
pub const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench-client","version":"1.0.0"}}}"#,
);
/// `notifications/initialized`.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A request without its id. `params` are the members of an object, without `_meta`.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Name of the method.
    pub method: &'a str,
    /// Members of its params.
    pub params: &'a str,
    /// Its era.
    pub era: Era,
    /// Progress token.
    pub token: Option<u64>,
}

impl Request<'_> {
    /// Appends the request, without an end of line.
    pub fn write(&self, id: u64, out: &mut Vec<u8>) {
        // Writing into memory does not fail.
        let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{{"#, self.method);
        out.extend_from_slice(self.params.as_bytes());
        let envelope = if self.era == Era::Envelope { META } else { "" };
        if self.token.is_some() || !envelope.is_empty() {
            out.extend_from_slice(if self.params.is_empty() { br#""_meta":{"# } else { br#","_meta":{"# });
            if let Some(token) = self.token {
                let comma = if envelope.is_empty() { "" } else { "," };
                let _ = write!(out, r#""progressToken":{token}{comma}"#);
            }
            out.extend_from_slice(envelope.as_bytes());
            out.push(b'}');
        }
        out.extend_from_slice(b"}}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_json_whatever_is_in_its_meta() {
        for era in [Era::Envelope, Era::Handshake] {
            for token in [None, Some(7)] {
                for params in ["", r#""name":"echo""#] {
                    let mut out = Vec::new();
                    Request { method: "tools/call", params, era, token }.write(3, &mut out);
                    let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
                    let meta = &read["params"]["_meta"];
                    assert_eq!(read["id"], 3);
                    assert_eq!(read["params"]["name"].is_string(), !params.is_empty());
                    assert_eq!(meta["progressToken"].as_u64(), token);
                    let version = meta["io.modelcontextprotocol/protocolVersion"].as_str();
                    assert_eq!(version, (era == Era::Envelope).then_some(ENVELOPE_VERSION));
                }
            }
        }
    }
}
