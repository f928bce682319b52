//! Errors, one type per layer, and the one function that turns a failure into the error object that the peer sees.

mod call;

use std::any::Any;
use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::Json;

use crate::dispatch::panic::catch_unwind;
use crate::stderr_log;

pub use call::{CallError, ErrorKind};

/// A boxed error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a request of the peer fails.
///
/// ```
/// use duplexer_core::error::McpError;
/// use duplexer_types::error::ErrorCode;
///
/// let closed = McpError::new(ErrorCode(-32050), "The vault is closed");
/// assert_eq!(closed.to_string(), "The vault is closed");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// An error that the peer sees unchanged.
    #[error("{0}")]
    Rpc(ErrorObject),
    /// The params do not fit the method. The source is logged.
    #[error("invalid request parameters")]
    InvalidParams(#[source] BoxError),
    /// The caller lacks rights for the request. The challenge says which ones.
    #[error("{}", .0.error)]
    Forbidden(Box<Challenge>),
    /// A limit is reached. The request can be repeated later.
    #[error("{}", .0.error)]
    Busy(Box<Busy>),
    /// The handler failed. The source is logged with all its causes and never sent to the peer.
    #[error("internal error")]
    Internal(#[source] BoxError),
    /// The handler panicked with this message, which is logged and never sent to the peer.
    #[error("the handler panicked: {0}")]
    Panicked(Cow<'static, str>),
}

/// The rights that a caller lacks: as the error of the response and, if the transport has a header for it
/// (`WWW-Authenticate` of HTTP, with status 403), as a challenge to retry with another token.
///
/// ```
/// use duplexer_core::error::{Challenge, McpError};
/// use duplexer_types::error::{ErrorCode, ErrorObject};
///
/// let error = ErrorObject::new(ErrorCode(-32050), "Required scope: write");
/// let challenge = Challenge::new(error, r#"Bearer error="insufficient_scope", scope="write""#);
/// let refusal = McpError::Forbidden(Box::new(challenge));
/// assert_eq!(refusal.to_string(), "Required scope: write");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The error object that the peer sees.
    pub error: ErrorObject,
    /// The challenge, in the syntax of HTTP's `WWW-Authenticate`.
    pub header: String,
}

impl Challenge {
    /// Creates a challenge with its error.
    pub fn new(error: ErrorObject, header: impl Into<String>) -> Self {
        Self { error, header: header.into() }
    }
}

/// A limit that a request has reached, and when it can be repeated: as the error of the response and, if the transport has a
/// header for it (`Retry-After` of HTTP, with status 429), as that.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_core::error::{Busy, McpError};
///
/// let refusal = McpError::from(Busy::new("Too many searches", Duration::from_millis(2300)));
/// assert_eq!(refusal.to_wire("tools/call").data.unwrap().as_str(), r#"{"retryAfter":2.3}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The error object that the peer sees.
    pub error: ErrorObject,
    /// The time after which a repeated request can succeed.
    pub retry_after: Duration,
}

impl Busy {
    /// Creates a refusal with the error -32005. Its data has the time in seconds, for transports without headers.
    pub fn new(message: impl Into<Cow<'static, str>>, retry_after: Duration) -> Self {
        let milliseconds = retry_after.as_nanos().div_ceil(1_000_000);
        let text = format!(r#"{{"retryAfter":{}.{:03}"#, milliseconds / 1000, milliseconds % 1000);
        let text = format!("{}}}", text.trim_end_matches('0').trim_end_matches('.'));
        let error = ErrorObject::new(ErrorCode::LIMIT_EXCEEDED, message);
        let error = match Json::parse(&text) {
            Ok(data) => error.with_data(data),
            Err(_) => error,
        };
        Self { error, retry_after }
    }
}

impl From<Busy> for McpError {
    fn from(busy: Busy) -> Self {
        Self::Busy(Box::new(busy))
    }
}

impl From<Challenge> for McpError {
    fn from(challenge: Challenge) -> Self {
        Self::Forbidden(Box::new(challenge))
    }
}

impl McpError {
    /// Creates an error that the peer sees unchanged.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self::Rpc(ErrorObject::new(code, message))
    }

    /// Sets the `data` of an error that the peer sees. The other variants send no details, and stay unchanged.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        match &mut self {
            Self::Rpc(error) => error.data = Some(data.into()),
            Self::Forbidden(challenge) => challenge.error.data = Some(data.into()),
            Self::Busy(busy) => busy.error.data = Some(data.into()),
            Self::InvalidParams(_) | Self::Internal(_) | Self::Panicked(_) => {}
        }
        self
    }

    /// Creates a failure whose cause is logged and never sent to the peer.
    pub fn internal(cause: impl Into<BoxError>) -> Self {
        Self::Internal(cause.into())
    }

    /// Creates a failure from the payload of a panic.
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

    /// Returns whether the failure is meant for the peer.
    pub(crate) fn is_deliberate(&self) -> bool {
        matches!(self, Self::Rpc(_) | Self::InvalidParams(_) | Self::Forbidden(_) | Self::Busy(_))
    }

    /// Returns the error object that the peer sees, and logs what it must not see. This is the only conversion.
    ///
    /// The `Display` of an error is its author's code: if it panics, the failure has no description.
    pub fn to_wire(&self, method: &str) -> ErrorObject {
        let method = beginning(method);
        catch_unwind(|| self.described(method)).unwrap_or_else(|_| {
            tracing::error!(method, "a handler failed with an error that panics when it is described");
            ErrorObject::internal()
        })
    }

    fn described(&self, method: &str) -> ErrorObject {
        match self {
            Self::Rpc(error) => error.clone(),
            Self::Forbidden(challenge) => challenge.error.clone(),
            Self::Busy(busy) => busy.error.clone(),
            Self::InvalidParams(cause) => {
                tracing::debug!(method, cause = %Chain(&**cause), "invalid request parameters");
                ErrorObject::invalid_params()
            }
            Self::Internal(cause) => {
                tracing::error!(method, cause = %Chain(&**cause), "a handler failed");
                stderr_log::error(format_args!("the handler of {method} failed: {}", Chain(&**cause)));
                ErrorObject::internal()
            }
            Self::Panicked(message) => {
                tracing::error!(method, panic = ?message, "a handler panicked");
                stderr_log::error(format_args!("the handler of {method} panicked: {message}"));
                ErrorObject::internal()
            }
        }
    }
}

/// Returns the beginning of a method, for logs: the peer chooses its length.
fn beginning(method: &str) -> &str {
    let end = (0..=method.len().min(48)).rev().find(|end| method.is_char_boundary(*end));
    method.get(..end.unwrap_or(0)).unwrap_or_default()
}

impl From<ErrorObject> for McpError {
    fn from(error: ErrorObject) -> Self {
        Self::Rpc(error)
    }
}

/// A failed call to the peer, when its handler returns it as its own error.
impl From<CallError> for McpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unexpected(cause) => Self::InvalidParams(cause.into()),
            CallError::Encode(cause) => Self::Internal(cause.into()),
            other => match other.as_error_object() {
                Some(error) => Self::Rpc(error),
                None => Self::Internal(other.into()),
            },
        }
    }
}

/// Failure of a store. The variants say what the caller can do: all stores of the workspace have the same ones.
///
/// ```
/// use duplexer_core::error::StoreError;
///
/// let down = StoreError::Unavailable("connection refused".into());
/// assert!(down.is_temporary());
/// assert!(!StoreError::Failed("a defect".into()).is_temporary());
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store did not respond, or not in time. The operation may have happened; it can be repeated.
    #[error("the store is not available")]
    Unavailable(#[source] BoxError),
    /// The store has no capacity for another record. Nothing was written.
    #[error("the store is full")]
    Full,
    /// A record is damaged, or was written by a later version. It is not absent, and must not be overwritten.
    #[error("a record of the store cannot be read")]
    Unreadable(#[source] BoxError),
    /// The store denies the operation: its credentials or rules have to be changed by an operator.
    #[error("the store denies the operation")]
    Denied(#[source] BoxError),
    /// A defect of the store or of its caller.
    #[error("the store failed")]
    Failed(#[source] BoxError),
}

impl StoreError {
    /// Returns whether the operation can succeed later, without a change of the program.
    pub fn is_temporary(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

/// Formats an error with all its causes on one line, for logs. A cause with which the text ends already is not repeated.
///
/// ```
/// use duplexer_core::error::{Chain, StoreError};
///
/// let down = StoreError::Unavailable("connection refused".into());
/// assert_eq!(Chain(&down).to_string(), "the store is not available: connection refused");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a (dyn Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let next = error.to_string();
            if !text.ends_with(&next) {
                text.push_str(": ");
                text.push_str(&next);
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DISP-32, RUN-19: an error meant for the peer reaches it; everything else is -32603 without detail.
    #[test]
    fn only_deliberate_errors_show_their_text() {
        let refused = McpError::new(ErrorCode(7), "text").to_wire("m");
        assert_eq!((refused.code, &*refused.message), (ErrorCode(7), "text"));
        let invalid = McpError::InvalidParams("secret".into()).to_wire("m");
        assert_eq!(invalid, ErrorObject::invalid_params());
        for hidden in [McpError::internal("secret"), McpError::panicked(&"secret"), McpError::panicked(&5)] {
            assert_eq!(hidden.to_wire("m"), ErrorObject::internal());
        }
    }

    #[test]
    fn data_is_added_to_an_error_that_the_peer_sees_and_to_no_other() {
        let shown = McpError::new(ErrorCode(7), "text").with_data("more").to_wire("m");
        assert_eq!(shown.data::<String>().as_deref(), Some("more"));
        assert_eq!(McpError::internal("secret").with_data("more").to_wire("m"), ErrorObject::internal());
    }

    #[test]
    fn a_chain_repeats_no_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("{text}")]
        struct Layer {
            text: &'static str,
            source: Option<Box<Layer>>,
        }
        let layer = |text, source: Option<Layer>| Layer { text, source: source.map(Box::new) };
        let refused = layer("refused", Some(layer("connection refused", Some(layer("refused", None)))));
        let absent = layer("no store", Some(refused));
        assert_eq!(Chain(&absent).to_string(), "no store: refused: connection refused");
    }

    /// A failure is answered even if its error panics when it is formatted.
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

    /// The cause of a failed store is in the log, not in the text of the error.
    #[test]
    fn a_failed_store_says_what_to_do() {
        let denied = StoreError::Denied("NOPERM".into());
        assert_eq!(denied.to_string(), "the store denies the operation");
        assert_eq!(Chain(&denied).to_string(), "the store denies the operation: NOPERM");
        assert!(denied.is_temporary() && StoreError::Full.is_temporary());
        assert!(!StoreError::Failed("bug".into()).is_temporary());
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
