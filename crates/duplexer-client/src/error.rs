//! Why a client could not connect, and why one of its requests failed.

use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;

use duplexer_core::error::{BoxError, CallError, McpError};

/// Why there is no session with the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server could not be asked, or it refused.
    #[error("the session could not be opened")]
    Call(#[from] CallError),
    /// There is no revision that both sides speak. What the server offers is told.
    #[error("no protocol revision in common; the server offers {}", offer(.0))]
    NoCommonVersion(Vec<String>),
    /// The server answered the handshake with a revision that cannot be spoken here.
    #[error("the server wants to speak `{0}`, which is not a revision with a handshake that is known here")]
    UnsupportedVersion(String),
}

fn offer(versions: &[String]) -> String {
    if versions.is_empty() { "none".to_owned() } else { versions.join(", ") }
}

/// A client was to be pinned to something that is no revision of the envelope era.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a client can be pinned to a revision of the envelope era ({known}), not to `{version}`")]
pub struct InvalidPinnedVersion {
    pub(super) version: String,
    pub(super) known: String,
}

/// Why a request of a client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused it, nobody answered in time, or the connection is gone.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The revision that is spoken has no such method. Nothing was sent.
    #[error("`{method}` does not exist in protocol revision {version}")]
    Unavailable {
        /// What was to be sent.
        method: Method,
        /// The revision that is spoken.
        version: ProtocolVersion,
    },
    /// The server asks for something that cannot be answered.
    #[error("what the server asks under `{key}` cannot be answered")]
    Unanswered {
        /// What the server calls its question.
        key: String,
        /// Why there is no answer.
        #[source]
        cause: McpError,
    },
    /// The server asks and asks.
    #[error("`{method}` asked for input more than {rounds} times")]
    TooManyRounds {
        /// What was asked.
        method: Method,
        /// How often it was asked again.
        rounds: u32,
    },
    /// The answer is of a kind that the method does not have.
    #[error("`{method}` was answered with a result of the unknown type `{result_type}`")]
    ResultType {
        /// What was asked.
        method: Method,
        /// What the server calls its answer.
        result_type: String,
    },
    /// A list does not end: a page names a cursor that an earlier page named.
    #[error("the pages of `{0}` go in a circle")]
    RepeatedCursor(Method),
    /// The answer did not pass the session's own check.
    #[error("the answer of the server did not pass the check")]
    Validation(#[source] BoxError),
}

/// A failed call to another server that a handler does not catch.
impl From<ClientError> for McpError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Call(error) => error.into(),
            other => Self::internal(other),
        }
    }
}
