//! `_meta`: its reserved keys, and borrowed decoding of the `_meta` of a request.
//!
//! Decoding is lenient about values (a malformed one counts as absent, see each member) and strict about form: `_meta`
//! is an object, and a known key occurs once. Two readers that use different values of a repeated key would allow a
//! bypass of checks.

mod cache;

use std::borrow::Cow;
use std::fmt;

use crate::json::scan::{self, NotJson, Scanner};
use crate::json::{Json, JsonObject, Occurrence};
use crate::jsonrpc::RequestId;

pub use cache::MetaCache;

/// Reserved [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta) keys.
pub mod key {
    /// Revision of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Identity of the client, on requests.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Capabilities of the client, on requests.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Minimum level of the log messages for a request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Identity of the server, on results.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// Id of the `subscriptions/listen` request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// Token that opts a request in to progress notifications.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C Trace Context: span of the caller.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C Trace Context: vendor-specific data.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C Baggage.
    pub const BAGGAGE: &str = "baggage";
    /// Task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
}

/// Whether `key` follows the [grammar](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta): an optional prefix of dotted labels with a slash, then a name.
pub fn valid_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => prefix.split('.').all(valid_label) && valid_name(name),
        None => valid_name(key),
    }
}

/// Whether the prefix of `key` is reserved: its second label is `modelcontextprotocol` or `mcp`.
pub fn reserved(key: &str) -> bool {
    let second = key.split_once('/').and_then(|(prefix, _)| prefix.split('.').nth(1));
    matches!(second, Some("modelcontextprotocol" | "mcp"))
}

fn valid_label(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphabetic())
        && label.ends_with(|last: char| last.is_ascii_alphanumeric())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn valid_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.ends_with(|last: char| last.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta) of a request, borrowed from its text.
///
/// Members with JSON text are present whenever the key is, whatever the value. The caller decides what a malformed
/// value means.
///
/// ```
/// use duplexer_types::meta::RequestMeta;
///
/// let meta = RequestMeta::read(r#"{"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28"}"#)?;
/// assert_eq!(meta.version().as_deref(), Some("2026-07-28"));
/// assert!(meta.progress_token.is_some());
/// # Ok::<_, duplexer_types::meta::InvalidMeta>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestMeta<'a> {
    /// JSON text of the revision; see [`Self::version`].
    pub protocol_version: Option<&'a str>,
    /// JSON text of the identity of the client.
    pub client_info: Option<&'a str>,
    /// JSON text of the capabilities of the client.
    pub client_capabilities: Option<&'a str>,
    /// JSON text of the log level.
    pub log_level: Option<&'a str>,
    /// Token for progress notifications; `None` also if it is neither a string nor an integer.
    pub progress_token: Option<RequestId>,
    /// Distributed trace that the request belongs to.
    pub trace: TraceContext<'a>,
}

/// W3C trace context and baggage; a value that is not a string counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext<'a> {
    /// Span of the caller.
    pub traceparent: Option<Cow<'a, str>>,
    /// Vendor-specific data.
    pub tracestate: Option<Cow<'a, str>>,
    /// Name-value pairs that are propagated.
    pub baggage: Option<Cow<'a, str>>,
}

/// Why a `_meta` is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidMeta {
    /// The `_meta` is not an object.
    NotAnObject,
    /// This known key is repeated.
    Repeated(&'static str),
}

impl fmt::Display for InvalidMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("_meta is not an object"),
            Self::Repeated(key) => write!(f, "_meta holds the key {key} twice"),
        }
    }
}

impl std::error::Error for InvalidMeta {}

impl<'a> RequestMeta<'a> {
    /// Reads the text of a `_meta` in one pass, without decoding unknown keys.
    ///
    /// # Errors
    /// Fails if the text is not an object, or if a known key is repeated.
    pub fn read(text: &'a str) -> Result<Self, InvalidMeta> {
        let [version, info, capabilities, level, token, traceparent, tracestate, baggage] = collect(text)?;
        Ok(Self {
            protocol_version: version.one(),
            client_info: info.one(),
            client_capabilities: capabilities.one(),
            log_level: level.one(),
            progress_token: token.one().and_then(RequestId::read),
            trace: TraceContext {
                traceparent: traceparent.one().and_then(scan::string),
                tracestate: tracestate.one().and_then(scan::string),
                baggage: baggage.one().and_then(scan::string),
            },
        })
    }

    /// Returns the revision, if it is a string.
    pub fn version(&self) -> Option<Cow<'a, str>> {
        self.protocol_version.and_then(scan::string)
    }
}

/// Keys of [`RequestMeta`], in the order of its members.
const KNOWN: [&str; 8] = [
    key::PROTOCOL_VERSION,
    key::CLIENT_INFO,
    key::CLIENT_CAPABILITIES,
    key::LOG_LEVEL,
    key::PROGRESS_TOKEN,
    key::TRACEPARENT,
    key::TRACESTATE,
    key::BAGGAGE,
];

/// Returns the texts of the [`KNOWN`] keys. None of them is repeated.
fn collect(text: &str) -> Result<[Occurrence<&str>; KNOWN.len()], InvalidMeta> {
    let mut scanner = Scanner::new(text);
    let found = scanner.find(&KNOWN).map_err(|NotJson| InvalidMeta::NotAnObject)?;
    scanner.end().map_err(|NotJson| InvalidMeta::NotAnObject)?;
    match KNOWN.iter().zip(&found).find(|(_, value)| value.is_repeated()) {
        Some((key, _)) => Err(InvalidMeta::Repeated(key)),
        None => Ok(found),
    }
}

/// Whether a `_meta` is an envelope: it has a revision, of any value.
pub fn is_envelope(meta: &str) -> bool {
    match RequestMeta::read(meta) {
        Ok(meta) => meta.protocol_version.is_some(),
        Err(InvalidMeta::Repeated(_)) => meta.contains(key::PROTOCOL_VERSION),
        Err(InvalidMeta::NotAnObject) => false,
    }
}

/// Returns the `_meta` that every request of the envelope era carries.
pub fn envelope(version: &str, client_info: &Json, capabilities: &Json) -> JsonObject {
    [
        (key::PROTOCOL_VERSION, Json::from(version)),
        (key::CLIENT_INFO, client_info.clone()),
        (key::CLIENT_CAPABILITIES, capabilities.clone()),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-META-11: the grammar of keys.
    #[test]
    fn keys_follow_the_grammar() {
        for valid in [
            "",
            "a",
            "progressToken",
            "a-b_c.d9",
            "io.modelcontextprotocol/related-task",
            "com.example/",
            "x/y",
            "a-1.b/c",
        ] {
            assert!(valid_key(valid), "{valid:?}");
        }
        for invalid in ["-a", "a-", ".a", "a b", "é", "/a", "1a/b", "a-/b", "a..b/c", "a_b/c", "a/b/c", "a/-"]
        {
            assert!(!valid_key(invalid), "{invalid:?}");
        }
    }

    /// Protocol 1.3: the second label reserves a prefix.
    #[test]
    fn the_second_label_reserves_a_prefix() {
        for taken in ["io.modelcontextprotocol/x", "dev.mcp/x", "com.mcp.tools/x"] {
            assert!(reserved(taken), "{taken}");
        }
        for free in ["com.example.mcp/x", "mcp/x", "modelcontextprotocol.io/x", "progressToken", "dev.mcp"] {
            assert!(!reserved(free), "{free}");
        }
    }

    #[test]
    fn every_known_key_is_found_verbatim() {
        let text = r#" { "other": {"progressToken": 1},
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol\/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "info",
            "progressToken": 7, "traceparent": "00-a", "tracestate": "a=\u0062", "baggage": "k=v" } "#;
        let meta = RequestMeta::read(text).unwrap();
        assert_eq!(meta.protocol_version, Some("\"2026-07-28\""));
        assert_eq!(meta.version().as_deref(), Some("2026-07-28"));
        assert_eq!(meta.client_info, Some(r#"{"name": "c", "version": "1"}"#));
        assert_eq!(meta.client_capabilities, Some("{}"));
        assert_eq!(meta.log_level, Some("\"info\""));
        assert_eq!(meta.progress_token, Some(7_i64.into()));
        assert_eq!(meta.trace.traceparent.as_deref(), Some("00-a"));
        assert_eq!(meta.trace.tracestate.as_deref(), Some("a=b"));
        assert_eq!(meta.trace.baggage.as_deref(), Some("k=v"));
    }

    /// CONN-03, RUN-01: malformed values are not supplied; ENV-02, ENV-06: but the key is present.
    #[test]
    fn a_malformed_value_is_present_but_not_supplied() {
        let text = r#"{"io.modelcontextprotocol/protocolVersion":7,"io.modelcontextprotocol/clientInfo":null,
            "progressToken":1.5,"traceparent":[],"tracestate":null,"baggage":1}"#;
        let meta = RequestMeta::read(text).unwrap();
        assert_eq!((meta.protocol_version, meta.version()), (Some("7"), None));
        assert_eq!((meta.client_info, meta.client_capabilities), (Some("null"), None));
        assert_eq!((meta.progress_token, meta.trace), (None, TraceContext::default()));
        for token in ["null", "true", "{}", "18446744073709551616"] {
            let text = format!(r#"{{"progressToken":{token}}}"#);
            assert_eq!(RequestMeta::read(&text), Ok(RequestMeta::default()), "{token}");
        }
    }

    /// ENV-01.
    #[test]
    fn a_meta_that_is_not_an_object_is_refused() {
        for text in ["", "null", "[]", "\"{}\"", "{", "{} {}", "{\"a\":}", "{\"a\":1,}"] {
            assert_eq!(RequestMeta::read(text), Err(InvalidMeta::NotAnObject), "{text}");
        }
    }

    /// Two readers must not be able to use different values (robustness 1.1, CVE-2026-27896).
    #[test]
    fn a_known_key_occurs_once_and_is_compared_exactly() {
        assert_eq!(
            RequestMeta::read(r#"{"progressToken":1,"progress\u0054oken":2}"#),
            Err(InvalidMeta::Repeated("progressToken")),
        );
        let others = r#"{"a":1,"a":2,"ProgressToken":1,"progressToken\u0000":1,"progre\u017f\u017fToken":1}"#;
        assert_eq!(RequestMeta::read(others), Ok(RequestMeta::default()));
    }

    #[test]
    fn an_envelope_reads_back() {
        let info = Json::parse(r#"{"name":"c","version":"1"}"#).unwrap();
        let members = envelope("2026-07-28", &info, &Json::object());
        let text = serde_json::to_string(&members).unwrap();
        let meta = RequestMeta::read(&text).unwrap();
        assert_eq!(meta.version().as_deref(), Some("2026-07-28"));
        assert_eq!(meta.client_info, Some(info.as_str()));
        assert_eq!(meta.client_capabilities, Some("{}"));
    }
}
