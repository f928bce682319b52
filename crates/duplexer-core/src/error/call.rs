//! Errors of own requests, and their kinds.

use std::borrow::Cow;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;

use crate::transport::{HttpRefusal, TransportFailure};

/// Kind of a failed request: what its caller can do about it.
///
/// ```
/// use duplexer_core::error::{CallError, ErrorKind};
///
/// fn advice(error: &CallError) -> &'static str {
///     match error.kind() {
///         ErrorKind::Unauthorized => "log in",
///         ErrorKind::Timeout | ErrorKind::Closed => "it may have run",
///         _ if error.is_retryable() => "try again later",
///         _ => "give up",
///     }
/// }
/// assert_eq!(advice(&CallError::Closed), "it may have run");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server requires other credentials (401), or they could not be obtained.
    Unauthorized,
    /// The credentials do not suffice for the request (403).
    Forbidden,
    /// The server refused the request with another HTTP status.
    Http,
    /// The server was not reached.
    Unreachable,
    /// There was no response in time.
    Timeout,
    /// The connection ended before the response.
    Closed,
    /// The response violates the protocol.
    Protocol,
    /// The peer responded with an error.
    Refused,
    /// The failure is on this side: the request could not be sent as it is, or a callback failed.
    Local,
}

/// Error of our own request to the peer.
///
/// ```
/// use duplexer_core::error::{CallError, ErrorKind};
///
/// let error = CallError::timeout("com.example/search");
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// assert!(!error.is_retryable(), "it may have run");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer responded with an error.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The client, or the protocol revision, does not support the request. Nothing was sent.
    #[error("{0}")]
    Unsupported(ErrorObject),
    /// There was no response in time. The request was cancelled at the peer.
    #[error("{0}")]
    Timeout(Cow<'static, str>),
    /// The connection ended before the response.
    #[error("connection closed")]
    Closed,
    /// The transport could not carry the request or its response.
    #[error(transparent)]
    Transport(TransportFailure),
    /// The channel cannot send requests to the peer.
    #[error("{}", no_back_channel(.0))]
    NoBackChannel(Cow<'static, str>),
    /// Another request in flight has the chosen id. Nothing was sent.
    #[error("request id {0} is already in flight")]
    DuplicateId(RequestId),
    /// The response does not have the type of the method's result.
    #[error("the peer's answer does not fit the method")]
    Unexpected(#[source] serde_json::Error),
    /// The params could not be serialized. Nothing was sent.
    #[error("the params could not be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// The dispatcher does not run yet, so the response would not be read. Nothing was sent.
    #[error("a request was made before the dispatcher ran")]
    NotRunning,
}

impl CallError {
    /// Creates the error of a request of `method` that was not answered in time.
    pub fn timeout(method: &str) -> Self {
        Self::Timeout(format!("Request '{method}' timed out").into())
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Rpc(error) if error.code == ErrorCode::CONNECTION_CLOSED => ErrorKind::Closed,
            Self::Rpc(_) => ErrorKind::Refused,
            Self::Timeout(_) => ErrorKind::Timeout,
            Self::Closed => ErrorKind::Closed,
            Self::Transport(failure) => match failure {
                TransportFailure::Unreachable(_) => ErrorKind::Unreachable,
                TransportFailure::Authorization(_) => ErrorKind::Unauthorized,
                TransportFailure::Http(refusal) => match refusal.status {
                    401 => ErrorKind::Unauthorized,
                    403 => ErrorKind::Forbidden,
                    _ => ErrorKind::Http,
                },
                TransportFailure::SessionEnded | TransportFailure::Interrupted(_) => ErrorKind::Closed,
                TransportFailure::Protocol(_) => ErrorKind::Protocol,
                TransportFailure::Unsendable(_) => ErrorKind::Local,
            },
            Self::Unexpected(_) => ErrorKind::Protocol,
            Self::Unsupported(_)
            | Self::NoBackChannel(_)
            | Self::DuplicateId(_)
            | Self::Encode(_)
            | Self::NotRunning => ErrorKind::Local,
        }
    }

    /// Returns whether the request certainly did not run and can succeed if it is sent again later: the server was not
    /// reached, had no capacity (429, 503), or had ended the session.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Transport(TransportFailure::Unreachable(_) | TransportFailure::SessionEnded) => true,
            Self::Transport(failure) => failure.refusal().is_some_and(HttpRefusal::is_temporary),
            _ => false,
        }
    }

    /// Returns the HTTP response that refused the request, if there was one.
    pub fn refusal(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Transport(failure) => failure.refusal(),
            _ => None,
        }
    }

    /// Returns the error object for this error, if the protocol has one.
    pub fn as_error_object(&self) -> Option<ErrorObject> {
        match self {
            Self::Rpc(error) | Self::Unsupported(error) => Some(error.clone()),
            Self::Timeout(message) => Some(ErrorObject::new(ErrorCode::REQUEST_TIMEOUT, message.clone())),
            Self::Closed
            | Self::Transport(
                TransportFailure::Unreachable(_)
                | TransportFailure::SessionEnded
                | TransportFailure::Interrupted(_),
            ) => Some(ErrorObject::connection_closed()),
            Self::NoBackChannel(method) => {
                Some(ErrorObject::new(ErrorCode::INVALID_REQUEST, no_back_channel(method)))
            }
            Self::Transport(_)
            | Self::DuplicateId(_)
            | Self::Unexpected(_)
            | Self::Encode(_)
            | Self::NotRunning => None,
        }
    }
}

fn no_back_channel(method: &str) -> String {
    format!(
        "Cannot send '{method}': this transport context has no back-channel for server-initiated requests."
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// D-3: what a caller can do about a failure is in its kind, and only requests that did not run are retryable.
    #[test]
    fn every_failure_has_a_kind() {
        let http =
            |status| CallError::Transport(TransportFailure::Http(Arc::new(HttpRefusal::new(status, ""))));
        let rpc = |code| CallError::Rpc(ErrorObject::new(code, "no"));
        let cases = [
            (http(401), ErrorKind::Unauthorized, false),
            (http(403), ErrorKind::Forbidden, false),
            (http(404), ErrorKind::Http, false),
            (http(500), ErrorKind::Http, false),
            (http(503), ErrorKind::Http, true),
            (http(429), ErrorKind::Http, true),
            (CallError::Transport(TransportFailure::Unreachable("x".into())), ErrorKind::Unreachable, true),
            (CallError::Transport(TransportFailure::SessionEnded), ErrorKind::Closed, true),
            (CallError::Transport(TransportFailure::Interrupted("x".into())), ErrorKind::Closed, false),
            (CallError::Transport(TransportFailure::Protocol("x".into())), ErrorKind::Protocol, false),
            (
                CallError::Transport(TransportFailure::Authorization(Arc::from(
                    crate::error::BoxError::from("x"),
                ))),
                ErrorKind::Unauthorized,
                false,
            ),
            (CallError::timeout("x"), ErrorKind::Timeout, false),
            (CallError::Closed, ErrorKind::Closed, false),
            (rpc(ErrorCode::INVALID_PARAMS), ErrorKind::Refused, false),
            (rpc(ErrorCode::CONNECTION_CLOSED), ErrorKind::Closed, false),
            (CallError::NotRunning, ErrorKind::Local, false),
        ];
        for (error, kind, retryable) in cases {
            assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{error:?}");
        }
        assert_eq!(http(401).refusal().map(|refusal| refusal.status), Some(401));
    }
}
