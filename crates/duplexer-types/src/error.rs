//! Error codes and the error object of JSON-RPC.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// JSON-RPC [error code](https://modelcontextprotocol.io/specification/2026-07-28/basic#error-codes). The set is open: peers and applications define their own codes.
///
/// ```
/// use duplexer_types::error::ErrorCode;
///
/// assert_eq!(ErrorCode::INVALID_PARAMS, ErrorCode(-32602));
/// let of_the_application = ErrorCode(-32050);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The message is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist in this revision.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The parameters are invalid.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// Internal error.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The connection closed before the response.
    pub const CONNECTION_CLOSED: Self = Self(-32000);
    /// The request timed out.
    pub const REQUEST_TIMEOUT: Self = Self(-32001);
    /// The resource does not exist (handshake era; later revisions use [`Self::INVALID_PARAMS`]).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// A limit of the server is reached, such as a rate limit. The code is ours: the protocol has none.
    pub const LIMIT_EXCEEDED: Self = Self(-32005);
    /// A header is missing, malformed, or does not match the body (envelope era).
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The client did not declare a capability that the request requires (envelope era).
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The server does not support the revision of the request (envelope era).
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// The user must open a URL before the request can be processed (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// The request was cancelled (handshake era over HTTP, where a stream must end with a response).
    pub const REQUEST_CANCELLED: Self = Self(-32800);

    /// Returns the HTTP status of a response with this error in the envelope era.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::PARSE_ERROR
            | Self::INVALID_REQUEST
            | Self::INVALID_PARAMS
            | Self::HEADER_MISMATCH
            | Self::MISSING_CLIENT_CAPABILITY
            | Self::UNSUPPORTED_PROTOCOL_VERSION => 400,
            Self::METHOD_NOT_FOUND => 404,
            _ => 200,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The `error` member of a JSON-RPC response.
///
/// ```
/// use duplexer_types::error::{ErrorCode, ErrorObject};
///
/// let error = ErrorObject::new(ErrorCode::INVALID_PARAMS, "Unknown tool: ad");
/// assert_eq!(serde_json::to_string(&error)?, r#"{"code":-32602,"message":"Unknown tool: ad"}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// Error code.
    pub code: ErrorCode,
    /// Short description of the error.
    pub message: Cow<'static, str>,
    /// Additional information about the error.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::json::present")]
    pub data: Option<Json>,
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Sets `data`.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Decodes `data` as a `T`. `None` if it is absent or not a `T`.
    pub fn data<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        self.data.as_ref().and_then(|data| data.decode().ok())
    }

    /// Creates the error -32601, with the method as data.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, "Method not found").with_data(method)
    }

    /// Creates the error -32602 with empty data. The details are only logged.
    pub fn invalid_params() -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, "Invalid request parameters").with_data("")
    }

    /// Creates the error -32603, without details.
    pub fn internal() -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, "Internal server error")
    }

    /// Creates the error -32000: the connection closed before the response.
    pub fn connection_closed() -> Self {
        Self::new(ErrorCode::CONNECTION_CLOSED, "Connection closed")
    }

    /// Creates the error -32000 of a request that a shutdown has cut off.
    pub fn shutting_down() -> Self {
        Self::new(ErrorCode::CONNECTION_CLOSED, "Connection closed: the server is shutting down")
    }

    /// Creates the error -32600: another request with the same id is in flight.
    pub fn id_in_flight(id: impl fmt::Display) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, format!("Invalid request: id {id} is already in flight"))
    }

    /// Creates the error -32022, with the supported revisions and the requested one.
    pub fn unsupported_version(supported: &[&str], requested: &str) -> Self {
        let data = serde_json::json!({ "supported": supported, "requested": requested });
        Self::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version").with_data(data)
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorObject {}

#[cfg(test)]
mod tests {
    use super::*;

    /// TYP-06: `data` is omitted when there is none; RUN-04, RUN-05: it is there when it is empty.
    #[test]
    fn data_is_absent_or_present_but_never_invented() {
        let check = |error: ErrorObject, text: &str| {
            assert_eq!(serde_json::to_string(&error).unwrap(), text);
            assert_eq!(serde_json::from_str::<ErrorObject>(text).unwrap(), error);
        };
        check(ErrorObject::internal(), r#"{"code":-32603,"message":"Internal server error"}"#);
        check(
            ErrorObject::invalid_params(),
            r#"{"code":-32602,"message":"Invalid request parameters","data":""}"#,
        );
        check(
            ErrorObject::method_not_found("x/y"),
            r#"{"code":-32601,"message":"Method not found","data":"x/y"}"#,
        );
        check(
            ErrorObject::new(ErrorCode(7), "odd").with_data(Json::null()),
            r#"{"code":7,"message":"odd","data":null}"#,
        );
    }

    /// ENV-09: one table from error code to HTTP status.
    #[test]
    fn codes_have_their_http_status() {
        let check = |code: i64, status: u16| assert_eq!(ErrorCode(code).http_status(), status, "{code}");
        for code in [-32700, -32600, -32602, -32020, -32021, -32022] {
            check(code, 400);
        }
        check(-32601, 404);
        for code in [-32603, -32000, -32002, -32042, 0, 1234] {
            check(code, 200);
        }
    }
}
