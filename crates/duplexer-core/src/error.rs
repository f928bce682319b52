//! Why things fail: one type per layer, and the one function that turns a failure into what the peer sees.

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;

use crate::dispatch::panic::contain;

/// Any error, boxed.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a request of the peer fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// An error the peer is meant to see as it is.
    #[error("{0}")]
    Refused(ErrorObject),
    /// The params do not fit the method. What exactly did not fit is for the log.
    #[error("invalid request parameters")]
    InvalidParams(#[source] BoxError),
    /// The caller may not do this with the rights it has shown; the challenge says which ones it takes.
    #[error("{}", .0.error)]
    Forbidden(Box<Challenge>),
    /// The handler failed. The source is logged in full and never shown to the peer.
    #[error("internal error")]
    Internal(#[source] BoxError),
    /// The handler panicked with this message, which is logged and never shown to the peer.
    #[error("the handler panicked: {0}")]
    Panicked(Cow<'static, str>),
}

/// What a caller lacks, and how it is told: in the error for the one who asked, and where the transport has a place
/// for it (`WWW-Authenticate` of HTTP, with status 403) as a challenge to come back with a better token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// What the peer sees.
    pub error: ErrorObject,
    /// The challenge, in the syntax of HTTP's `WWW-Authenticate`.
    pub header: String,
}

impl Challenge {
    /// An error and the challenge that goes with it.
    pub fn new(error: ErrorObject, header: impl Into<String>) -> Self {
        Self { error, header: header.into() }
    }
}

impl From<Challenge> for McpError {
    fn from(challenge: Challenge) -> Self {
        Self::Forbidden(Box::new(challenge))
    }
}

impl McpError {
    /// An error the peer sees as it is.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(ErrorObject::new(code, message))
    }

    /// A failure whose cause is nobody's business but ours.
    pub fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
    }

    /// The failure that a panic with this payload is.
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = if let Some(text) = payload.downcast_ref::<&'static str>() {
            Cow::Borrowed(*text)
        } else if let Some(text) = payload.downcast_ref::<String>() {
            Cow::Owned(text.clone())
        } else {
            Cow::Borrowed("a value that is not a string")
        };
        Self::Panicked(text)
    }

    /// Whether the peer sees the failure as its author meant it.
    pub(crate) fn is_deliberate(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::InvalidParams(_) | Self::Forbidden(_))
    }

    /// The one place where a failure becomes what the peer sees; what it must not see is logged here.
    ///
    /// How an error describes itself is its author's code: a panic there is a failure without a description.
    pub fn to_wire(&self, method: &str) -> ErrorObject {
        let method = beginning(method);
        contain(|| self.described(method)).unwrap_or_else(|_| {
            tracing::error!(method, "a handler failed with an error that panics when it is described");
            ErrorObject::internal()
        })
    }

    fn described(&self, method: &str) -> ErrorObject {
        match self {
            Self::Refused(error) => error.clone(),
            Self::Forbidden(challenge) => challenge.error.clone(),
            Self::InvalidParams(cause) => {
                tracing::debug!(method, cause = %Chain(&**cause), "invalid request parameters");
                ErrorObject::invalid_params()
            }
            Self::Internal(cause) => {
                tracing::error!(method, cause = %Chain(&**cause), "a handler failed");
                ErrorObject::internal()
            }
            Self::Panicked(message) => {
                tracing::error!(method, panic = ?message, "a handler panicked");
                ErrorObject::internal()
            }
        }
    }
}

/// As much of a method as belongs into a log: the peer chooses how long it is.
fn beginning(method: &str) -> &str {
    let end = (0..=method.len().min(48)).rev().find(|end| method.is_char_boundary(*end));
    method.get(..end.unwrap_or(0)).unwrap_or_default()
}

impl From<ErrorObject> for McpError {
    fn from(error: ErrorObject) -> Self {
        Self::Refused(error)
    }
}

/// A failed call to the peer that its handler does not catch.
impl From<CallError> for McpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unexpected(cause) => Self::InvalidParams(cause.into()),
            CallError::Encode(cause) => Self::Internal(cause.into()),
            other => match other.as_error_object() {
                Some(error) => Self::Refused(error),
                None => Self::Internal(other.into()),
            },
        }
    }
}

/// Why our own request to the peer failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The peer answered with an error.
    #[error("{0}")]
    Peer(ErrorObject),
    /// The request was not made: it cannot be made of this client or in this revision. Nothing was sent.
    #[error("{0}")]
    Refused(ErrorObject),
    /// Nobody answered in time; the peer has been told to stop.
    #[error("{0}")]
    Timeout(Cow<'static, str>),
    /// The connection ended before there was an answer.
    #[error("connection closed")]
    Closed,
    /// The channel at hand cannot carry requests to the peer.
    #[error("{}", no_back_channel(.0))]
    NoBackChannel(Cow<'static, str>),
    /// The id chosen for the request is taken by another one in flight. Nothing was sent.
    #[error("request id {0} is already in flight")]
    DuplicateId(RequestId),
    /// The answer is not what the method promises.
    #[error("the peer's answer does not fit the method")]
    Unexpected(#[source] serde_json::Error),
    /// The params could not be written. Nothing was sent.
    #[error("the params could not be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// The dispatcher is not running yet, so nobody would read the answer. Nothing was sent.
    #[error("a request was made before the dispatcher ran")]
    NotRunning,
}

impl CallError {
    /// The request of `method` was not answered in time.
    pub fn timeout(method: &str) -> Self {
        Self::Timeout(format!("Request '{method}' timed out").into())
    }

    /// The error object that says the same, where the protocol has one.
    pub fn as_error_object(&self) -> Option<ErrorObject> {
        match self {
            Self::Peer(error) | Self::Refused(error) => Some(error.clone()),
            Self::Timeout(message) => Some(ErrorObject::new(ErrorCode::REQUEST_TIMEOUT, message.clone())),
            Self::Closed => Some(ErrorObject::connection_closed()),
            Self::NoBackChannel(method) => {
                Some(ErrorObject::new(ErrorCode::INVALID_REQUEST, no_back_channel(method)))
            }
            Self::DuplicateId(_) | Self::Unexpected(_) | Self::Encode(_) | Self::NotRunning => None,
        }
    }
}

fn no_back_channel(method: &str) -> String {
    format!(
        "Cannot send '{method}': this transport context has no back-channel for server-initiated requests."
    )
}

/// An error with all its causes on one line, for logs.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DISP-32, RUN-19: what was meant for the peer reaches it; everything else is -32603 without detail.
    #[test]
    fn only_deliberate_errors_show_their_text() {
        let refused = McpError::new(ErrorCode(7), "told").to_wire("m");
        assert_eq!((refused.code, &*refused.message), (ErrorCode(7), "told"));
        let invalid = McpError::InvalidParams("secret".into()).to_wire("m");
        assert_eq!(invalid, ErrorObject::invalid_params());
        for hidden in [McpError::internal("secret"), McpError::panicked(&"secret"), McpError::panicked(&5)] {
            assert_eq!(hidden.to_wire("m"), ErrorObject::internal());
        }
    }

    /// A failure is answered whatever its error does when it is looked at.
    #[test]
    fn an_error_that_panics_when_described_is_an_internal_error() {
        #[derive(Debug, thiserror::Error)]
        #[error("{}", burst())]
        struct Bursting;
        fn burst() -> &'static str {
            panic!("secret")
        }
        assert_eq!(McpError::internal(Bursting).to_wire("m"), ErrorObject::internal());
    }

    #[test]
    fn a_log_sees_the_beginning_of_a_long_method() {
        assert_eq!(beginning("tools/call"), "tools/call");
        assert_eq!(beginning(&format!("{}\u{e9}x", "m".repeat(47))), "m".repeat(47));
    }

    /// TYP-27: the refusal names the method.
    #[test]
    fn a_missing_back_channel_is_an_invalid_request() {
        let error = McpError::from(CallError::NoBackChannel("x/y".into())).to_wire("m");
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        assert_eq!(
            error.message,
            "Cannot send 'x/y': this transport context has no back-channel for server-initiated requests."
        );
    }
}
