//! CORS headers, with which browsers let scripts of allowed origins read responses. Off by default.

use duplexer_types::headers;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Method, StatusCode};

use super::config::Cors;
use super::reply::{self, Reply};

/// Headers that a script can send, besides the `Mcp-Param-*` headers.
const REQUEST: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    headers::PROTOCOL_VERSION.lower,
    headers::METHOD.lower,
    headers::NAME.lower,
    headers::SESSION_ID.lower,
    headers::LAST_EVENT_ID.lower,
];
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After");
const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const BY_ORIGIN: HeaderValue = HeaderValue::from_static("Origin");

/// Returns the origin of the request. The origin check has accepted it, so it is allowed.
pub(super) fn origin(cors: Cors, parts: &Parts) -> Option<HeaderValue> {
    match cors {
        Cors::Off => None,
        Cors::AllowedOrigins => parts.headers.get(ORIGIN).cloned(),
    }
}

/// Returns the response to a preflight request.
pub(super) fn preflight(parts: &Parts) -> Option<Reply> {
    if parts.method != Method::OPTIONS || !parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut reply = reply::empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    let wanted: Vec<&str> = parts
        .headers
        .get_all(ACCESS_CONTROL_REQUEST_HEADERS)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|name| may_send(name))
        .collect();
    if let Ok(wanted) = HeaderValue::try_from(wanted.join(", ")) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
    }
    Some(reply)
}

fn may_send(name: &str) -> bool {
    headers::is_param(name) || REQUEST.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Adds the headers that let a script of `origin` read the response.
pub(super) fn expose(reply: &mut Reply, origin: HeaderValue) {
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, BY_ORIGIN);
}
