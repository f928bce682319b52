//! `_meta`: comparison with the reference implementation, and the grammar of keys.

use duplexer_types::jsonrpc::RequestId;
use duplexer_types::meta::{InvalidMeta, RequestMeta, key, reserved, valid_key};
use serde_json::Value;

use crate::tree::{Found, Reading, Tree};

/// Reads `data` as a `_meta` and compares with the reference implementation.
pub fn meta(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    keys(text);
    let ours = RequestMeta::read(text);
    let tree = match Tree::read(text) {
        Reading::Tree(tree) if tree.is_object() => tree,
        Reading::Tree(_) => return assert_eq!(ours, Err(InvalidMeta::NotAnObject), "{text:?}"),
        Reading::NotJson => return assert!(ours.is_err(), "{text:?}"),
        Reading::Limited => return,
    };
    let known = [
        key::PROTOCOL_VERSION,
        key::CLIENT_INFO,
        key::CLIENT_CAPABILITIES,
        key::LOG_LEVEL,
        key::PROGRESS_TOKEN,
        key::TRACEPARENT,
        key::TRACESTATE,
        key::BAGGAGE,
    ];
    let repeated = known.into_iter().any(|name| tree.get(name) == Found::Repeated);
    let meta = match ours {
        Ok(meta) => meta,
        Err(invalid) => {
            let names_it =
                matches!(invalid, InvalidMeta::Repeated(name) if tree.get(name) == Found::Repeated);
            return assert!(names_it, "{text:?}: {invalid}");
        }
    };
    assert!(!repeated, "{text:?}");
    for (name, raw) in [
        (key::PROTOCOL_VERSION, meta.protocol_version),
        (key::CLIENT_INFO, meta.client_info),
        (key::CLIENT_CAPABILITIES, meta.client_capabilities),
        (key::LOG_LEVEL, meta.log_level),
    ] {
        assert_eq!(raw.and_then(Tree::of).as_ref(), tree.get(name).once(), "{name} in {text:?}");
    }
    let string = |name: &str| tree.get(name).once().and_then(Tree::as_str);
    assert_eq!(meta.version().as_deref(), string(key::PROTOCOL_VERSION));
    assert_eq!(meta.trace.traceparent.as_deref(), string(key::TRACEPARENT));
    assert_eq!(meta.trace.tracestate.as_deref(), string(key::TRACESTATE));
    assert_eq!(meta.trace.baggage.as_deref(), string(key::BAGGAGE));
    assert_eq!(meta.progress_token, tree.get(key::PROGRESS_TOKEN).once().and_then(token), "{text:?}");
}

fn token(tree: &Tree) -> Option<RequestId> {
    match tree {
        Tree::Scalar(value @ (Value::String(_) | Value::Number(_))) => {
            serde_json::from_value(value.clone()).ok()
        }
        _ => None,
    }
}

fn keys(text: &str) {
    if valid_key(text) {
        assert!(text.is_ascii() && text.matches('/').count() <= 1, "{text:?}");
        assert!(!valid_key(&format!("{text}-")), "{text:?}");
    }
    if reserved(text) {
        assert!(text.contains("mcp") || text.contains("modelcontextprotocol"), "{text:?}");
    }
}
