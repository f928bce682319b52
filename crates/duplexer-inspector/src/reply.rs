//! HTTP responses of this crate. Their bodies are complete; a service that mounts the page converts the body type.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
};
use http::{Response, StatusCode};
use serde_json::{Value, json};

pub(crate) type Reply = Response<Bytes>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(crate) fn json(value: &Value) -> Reply {
    with(StatusCode::OK, JSON, value.to_string())
}

/// Replies with a text that is JSON already.
pub(crate) fn json_text(text: String) -> Reply {
    with(StatusCode::OK, JSON, text)
}

pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    with(status, TEXT, text)
}

/// Replies with an error that the page shows.
pub(crate) fn error(status: StatusCode, message: &str) -> Reply {
    with(status, JSON, json!({ "error": { "message": message } }).to_string())
}

pub(crate) fn file(media_type: &'static str, text: impl Into<Bytes>, policy: &str) -> Reply {
    let mut reply = with(StatusCode::OK, HeaderValue::from_static(media_type), text);
    if let Ok(policy) = HeaderValue::try_from(policy) {
        reply.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    } else {
        // A page without its policy is not served.
        return error(StatusCode::INTERNAL_SERVER_ERROR, "the policy cannot be sent");
    }
    reply
}

fn with(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let rest = [
        ("x-content-type-options", "nosniff"),
        ("x-dns-prefetch-control", "off"),
        ("cross-origin-opener-policy", "same-origin"),
    ];
    for (name, value) in rest {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    reply
}
