//! Error codes, the error object of the wire, and the data that MCP's own codes carry.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A JSON-RPC error code. The set is open: peers and applications have codes of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub i64);

impl ErrorCode {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is not a request.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method does not exist, or not in this revision.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The params do not fit the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The server failed.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The connection ended before there was an answer.
    pub const CONNECTION_CLOSED: Self = Self(-32000);
    /// The caller waited long enough.
    pub const REQUEST_TIMEOUT: Self = Self(-32001);
    /// No such resource (handshake era; later revisions say [`Self::INVALID_PARAMS`]).
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// A header is missing, malformed, or says something else than the body (envelope era).
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// The client did not declare a capability that the request needs (envelope era).
    pub const MISSING_CLIENT_CAPABILITY: Self = Self(-32021);
    /// The request names a revision that is not served (envelope era).
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);
    /// The user must open a URL first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: Self = Self(-32042);
    /// The request was cancelled (handshake era over HTTP, where a stream must end with an answer).
    pub const REQUEST_CANCELLED: Self = Self(-32800);

    /// The HTTP status of a reply with this error in the envelope era.
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

/// The `error` member of a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of failure.
    pub code: ErrorCode,
    /// One sentence for people.
    pub message: Cow<'static, str>,
    /// What programs may want to know.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::json::present")]
    pub data: Option<Json>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// The data read as a `T`, if there is any and it fits.
    pub fn data<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        self.data.as_ref().and_then(|data| data.decode().ok())
    }

    /// -32601, with the method as data.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(ErrorCode::METHOD_NOT_FOUND, "Method not found").with_data(method)
    }

    /// -32602, with empty data: what exactly did not fit stays in the log.
    pub fn invalid_params() -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, "Invalid request parameters").with_data("")
    }

    /// -32603, without any detail.
    pub fn internal() -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, "Internal server error")
    }

    /// -32000: the connection ended before there was an answer.
    pub fn connection_closed() -> Self {
        Self::new(ErrorCode::CONNECTION_CLOSED, "Connection closed")
    }

    /// -32600: a request has the id of another one that has no answer yet.
    pub fn id_in_flight(id: impl fmt::Display) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, format!("Invalid request: id {id} is already in flight"))
    }

    /// -32022, with what is served and what was asked for.
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
