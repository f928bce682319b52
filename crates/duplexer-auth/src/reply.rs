//! HTTP responses of this crate. Their bodies are complete; the sending service converts the body type.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, PRAGMA,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Method, Response, StatusCode};
use serde::Serialize;

use crate::error::OAuthError;

pub(crate) type Reply = Response<Bytes>;

pub(crate) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const ONE_HOUR: HeaderValue = HeaderValue::from_static("public, max-age=3600");
const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// Headers that scripts can send. MCP clients in browsers send their protocol version.
const ALLOWED_HEADERS: HeaderValue =
    HeaderValue::from_static("mcp-protocol-version, authorization, content-type");

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = status;
    reply
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(text) => with_body(status, JSON, text),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

pub(crate) fn with_body(status: StatusCode, kind: HeaderValue, text: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(text.into());
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// Builds an OAuth error response, which no cache stores. A client that can retry later gets the time to wait.
pub(crate) fn error(error: &OAuthError) -> Reply {
    let mut reply = no_store(json(error.status, error));
    if error.status == StatusCode::SERVICE_UNAVAILABLE {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    reply
}

/// Adds the headers that forbid caching.
pub(crate) fn no_store(mut reply: Reply) -> Reply {
    reply.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    reply.headers_mut().insert(PRAGMA, NO_CACHE);
    reply
}

/// Serves a public document: cacheable for an hour, and readable by scripts of any origin.
pub(crate) fn public(method: &Method, document: &impl Serialize) -> Reply {
    match *method {
        Method::GET | Method::HEAD => {
            let mut reply = json(StatusCode::OK, document);
            reply.headers_mut().insert(CACHE_CONTROL, ONE_HOUR);
            open_to_scripts(reply)
        }
        Method::OPTIONS => preflight("GET, OPTIONS"),
        _ => not_allowed("GET, OPTIONS"),
    }
}

/// Allows scripts of any origin to read the response, which holds public data only.
pub(crate) fn open_to_scripts(mut reply: Reply) -> Reply {
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("WWW-Authenticate"));
    reply
}

/// Builds the response to a CORS preflight.
pub(crate) fn preflight(methods: &'static str) -> Reply {
    let mut reply = open_to_scripts(empty(StatusCode::NO_CONTENT));
    let headers = reply.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    reply
}

pub(crate) fn not_allowed(methods: &'static str) -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

/// Builds an OAuth error response with a challenge.
pub(crate) fn challenged(error: &OAuthError, challenge: &str) -> Reply {
    let mut reply = self::error(error);
    with_header(&mut reply, WWW_AUTHENTICATE, challenge);
    reply
}

/// Sets a header. An invalid value is left out.
pub(crate) fn with_header(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        reply.headers_mut().insert(name, value);
    }
}
