//! `Mcp-*` headers: names, encoding of values, and mirrored arguments.
//!
//! Client and server share this module, which is independent of any HTTP library: a server passes a look-up from header
//! name to [`Values`], a client gets names and values as strings.

mod annotation;
mod number;
mod param;
mod value;

pub use annotation::{InvalidAnnotation, Reason};
pub use param::ParamHeaders;
pub use value::{decode, encode};

use crate::json::Occurrence;

/// Header name in its two spellings. Names are compared case-insensitively.
///
/// ```
/// use duplexer_types::headers;
///
/// assert!(headers::METHOD.is("MCP-METHOD"));
/// assert_eq!(headers::METHOD.canonical, "Mcp-Method");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Spelling of the specification.
    pub canonical: &'static str,
    /// Spelling of HTTP libraries and error texts.
    pub lower: &'static str,
}

impl Name {
    const fn new(canonical: &'static str, lower: &'static str) -> Self {
        Self { canonical, lower }
    }

    /// Whether `other` is this name.
    pub fn is(self, other: &str) -> bool {
        self.lower.eq_ignore_ascii_case(other)
    }
}

/// Revision of a request ([specification](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http)).
pub const PROTOCOL_VERSION: Name = Name::new("MCP-Protocol-Version", "mcp-protocol-version");
/// Method of the body (envelope era).
pub const METHOD: Name = Name::new("Mcp-Method", "mcp-method");
/// Name, URI or task id from the params of the body (envelope era).
pub const NAME: Name = Name::new("Mcp-Name", "mcp-name");
/// Prefix of the headers that mirror arguments (envelope era).
pub const PARAM_PREFIX: Name = Name::new("Mcp-Param-", "mcp-param-");
/// Session of a request (handshake era).
pub const SESSION_ID: Name = Name::new("Mcp-Session-Id", "mcp-session-id");
/// Last event that a client has received on a stream (handshake era).
pub const LAST_EVENT_ID: Name = Name::new("Last-Event-ID", "last-event-id");

/// Whether a header has the prefix of mirrored arguments.
pub fn is_param(name: &str) -> bool {
    name.get(..PARAM_PREFIX.lower.len()).is_some_and(|prefix| PARAM_PREFIX.is(prefix))
}

/// Values of the headers with one name. They are bytes, because a header need not be text.
pub type Values<'a> = Occurrence<&'a [u8]>;

#[cfg(test)]
mod tests {
    use super::*;

    /// P-HDR-8: names are compared case-insensitively.
    #[test]
    fn names_are_compared_without_case() {
        for name in [PROTOCOL_VERSION, METHOD, NAME, PARAM_PREFIX, SESSION_ID, LAST_EVENT_ID] {
            assert_eq!(name.canonical.to_ascii_lowercase(), name.lower);
            assert!(name.is(name.canonical) && name.is(&name.canonical.to_uppercase()));
            assert!(!name.is("") && !name.is(&format!("{}x", name.lower)));
        }
        assert!(is_param("MCP-PARAM-Region") && is_param("mcp-param-"));
        assert!(!is_param("mcp-param") && !is_param("mcp-name") && !is_param("é"));
    }

    #[test]
    fn repeated_values_are_visible() {
        let values = |all: &[&'static [u8]]| all.iter().copied().collect::<Values<'static>>();
        assert_eq!(values(&[]), Values::Absent);
        assert_eq!(values(&[b"a"]), Values::One(b"a"));
        assert_eq!(values(&[b"a", b"a"]), Values::Several);
    }
}
