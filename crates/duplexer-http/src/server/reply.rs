//! HTTP responses that are complete from the start.

use std::time::Duration;

use bytes::Bytes;
use duplexer_core::error::StoreError;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, RequestId};
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Response, StatusCode};

use super::body::ResponseBody;

pub(super) type Reply = Response<ResponseBody>;
/// A reply that ends a request before its handler runs. Boxed, because the success path is the usual one.
pub(super) type Rejection = Box<Reply>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_TRANSFORM: HeaderValue = HeaderValue::from_static("no-cache, no-transform");
const KEEP_ALIVE: HeaderValue = HeaderValue::from_static("keep-alive");
const CLOSE: HeaderValue = HeaderValue::from_static("close");
const NO: HeaderValue = HeaderValue::from_static("no");
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(super) fn with_status(status: StatusCode, body: ResponseBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply
}

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Reply {
    with_status(status, ResponseBody::empty())
}

/// Returns a JSON response.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    json_with(HeaderMap::new(), status, text.into())
}

/// Returns a JSON response that has its header in an empty map.
pub(super) fn json_with(mut headers: HeaderMap, status: StatusCode, text: Bytes) -> Reply {
    headers.insert(CONTENT_TYPE, JSON);
    let mut reply = with_status(status, ResponseBody::full(text));
    *reply.headers_mut() = headers;
    reply
}

/// Returns a 403 response with the challenge for a caller without the required scopes.
pub(super) fn challenged(text: Bytes, challenge: &str) -> Reply {
    let mut reply = json(StatusCode::FORBIDDEN, text);
    if let Ok(challenge) = HeaderValue::try_from(challenge) {
        reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    reply
}

/// Returns a 429 response with the time, in whole seconds, after which the request can be repeated.
pub(super) fn too_many_requests(text: Bytes, retry_after: Duration) -> Reply {
    let seconds = retry_after.as_millis().div_ceil(1000).max(1);
    let mut reply = json(StatusCode::TOO_MANY_REQUESTS, text);
    if let Ok(seconds) = HeaderValue::try_from(seconds.to_string()) {
        reply.headers_mut().insert(RETRY_AFTER, seconds);
    }
    reply
}

/// Returns a plain-text response.
pub(super) fn text(status: StatusCode, text: impl Into<Bytes>) -> Reply {
    let mut reply = with_status(status, ResponseBody::full(text.into()));
    reply.headers_mut().insert(CONTENT_TYPE, TEXT);
    reply
}

/// Returns the 404 response of a path that is not served. People read it in the error of their client.
pub(super) fn not_found(endpoint: &str) -> Reply {
    text(StatusCode::NOT_FOUND, format!("nothing is served here; the MCP endpoint is {endpoint}\n"))
}

/// Returns an SSE response.
pub(super) fn events(body: ResponseBody) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, NO_TRANSFORM);
    headers.insert(CONNECTION, KEEP_ALIVE);
    headers.insert(ACCEL_BUFFERING, NO);
    reply
}

/// Returns a JSON-RPC error response, with the id of the request if it is known.
pub(super) fn rpc_error(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Reply {
    let mut text = Vec::with_capacity(128);
    jsonrpc::write_failure(&mut text, id, error);
    json(status, text)
}

/// Returns an error response for a request that is invalid below JSON-RPC.
pub(super) fn invalid_request(
    status: StatusCode,
    message: impl Into<std::borrow::Cow<'static, str>>,
) -> Reply {
    rpc_error(status, None, &ErrorObject::new(ErrorCode::INVALID_REQUEST, message))
}

/// Returns a 500 response. The cause is in the log.
pub(super) fn internal_error(id: &RequestId) -> Reply {
    rpc_error(StatusCode::INTERNAL_SERVER_ERROR, Some(id), &ErrorObject::internal())
}

/// Returns the same as [`internal_error`] where there is no JSON-RPC request.
pub(super) fn internal_error_without_id() -> Reply {
    rpc_error(StatusCode::INTERNAL_SERVER_ERROR, None, &ErrorObject::internal())
}

/// Returns a 405 response with the methods that are served.
pub(super) fn method_not_allowed(allowed: &'static str) -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// Returns a 503 response with `Retry-After`.
pub(super) fn unavailable(id: Option<&RequestId>, message: &'static str) -> Reply {
    let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
    let mut reply = rpc_error(StatusCode::SERVICE_UNAVAILABLE, id, &error);
    reply.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
    reply
}

/// Error text for a store that is unavailable.
pub(super) const STORE_UNAVAILABLE: &str = "The store of sessions is unavailable";

/// Returns the response to a message that needs a store which has failed. It is never 404: the session can exist.
pub(super) fn store_failed(id: Option<&RequestId>, error: &StoreError) -> Reply {
    if error.is_temporary() {
        return unavailable(id, STORE_UNAVAILABLE);
    }
    rpc_error(StatusCode::INTERNAL_SERVER_ERROR, id, &ErrorObject::internal())
}

/// Returns the response at the limit of requests in flight.
pub(super) fn overloaded() -> Reply {
    unavailable(None, "Too many requests in flight")
}

/// Returns the response to a request that arrives after the shutdown has begun.
pub(super) fn shutting_down() -> Reply {
    unavailable(None, "The server is shutting down")
}

/// Returns the response at the limit of open sessions.
pub(super) fn too_many_sessions(id: Option<&RequestId>) -> Reply {
    unavailable(id, "Too many open sessions")
}

/// Closes the connection after the response: bytes that follow cannot be distinguished from the body of this request.
pub(super) fn close_connection<B>(mut reply: Response<B>) -> Response<B> {
    reply.headers_mut().insert(CONNECTION, CLOSE);
    reply
}

/// Returns the HTTP status of an error in the envelope era.
pub(super) fn status_of(error: &ErrorObject) -> StatusCode {
    StatusCode::from_u16(error.code.http_status()).unwrap_or(StatusCode::OK)
}
