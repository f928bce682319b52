//! Errors of connecting and of requests.

use std::error::Error;
use std::fmt;

use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use duplexer_types::text::shown;
use duplexer_types::tool::ToolFailed;
use duplexer_types::version::ProtocolVersion;

use duplexer_core::error::{BoxError, CallError, ErrorKind, McpError};
use duplexer_core::transport::HttpRefusal;

/// Why a session could not be opened.
///
/// ```
/// use duplexer::client::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let (transport, server) = duplexer::transport::memory::pair();
/// drop(server);
/// let error = Client::builder("my-agent", "1.0").connect(transport).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Closed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// A request that opens the session failed, or the server refused it.
    Call(CallError),
    /// Client and server have no revision in common. Holds the revisions that the server offers.
    NoCommonVersion(Vec<String>),
    /// The server answered the handshake with a revision that the client does not support.
    UnsupportedVersion(String),
    /// The builder pins the session to something other than a revision of the envelope era. Nothing was sent.
    InvalidPinnedVersion {
        /// The version of the pin.
        version: String,
        /// The revisions that a session can be pinned to.
        known: String,
    },
    /// The builder declares the extension with this id with settings that are not a JSON object. Nothing was sent.
    InvalidExtension(String),
}

impl ConnectError {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Call(error) => error.kind(),
            Self::NoCommonVersion(_) | Self::UnsupportedVersion(_) => ErrorKind::Protocol,
            Self::InvalidPinnedVersion { .. } | Self::InvalidExtension(_) => ErrorKind::Local,
        }
    }

    /// Returns whether the session can be opened later, without a change on either side.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_retryable())
    }

    /// Returns the HTTP response that refused the session, if there was one.
    pub fn refusal(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Call(error) => error.refusal(),
            _ => None,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => write!(f, "could not open the session: {error}"),
            Self::NoCommonVersion(versions) => {
                let offer = if versions.is_empty() { "none".to_owned() } else { shown(&versions.join(", ")) };
                write!(f, "no protocol revision in common; the server offers {offer}")
            }
            Self::UnsupportedVersion(version) => {
                let version = shown(version);
                write!(
                    f,
                    "the server answered with the revision `{version}`, which this client does not support"
                )
            }
            Self::InvalidPinnedVersion { version, known } => {
                write!(
                    f,
                    "a client can be pinned to a revision of the envelope era ({known}), not to `{version}`"
                )
            }
            Self::InvalidExtension(id) => {
                write!(f, "the settings of the extension `{id}` are not a JSON object")
            }
        }
    }
}

/// The text of a failed request is part of the text here, so its cause is the next one of the chain.
impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Call(error) => error.source(),
            _ => None,
        }
    }
}

impl From<CallError> for ConnectError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// Why a request of a client failed.
///
/// ```
/// use duplexer::client::prelude::*;
/// use duplexer::{Server, Tool, ToolError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let fails = Tool::new("fails", || async { Err::<(), _>(ToolError::new("The disk is full.")) });
/// let server = Server::builder("disk", "1.0.0").tool(fails).build()?;
/// let client = Client::builder("my-agent", "1.0").connect(server.in_process()).await?;
///
/// let failed = client.call_tool("fails", ()).text().await.unwrap_err();
/// assert!(matches!(&failed, ClientError::ToolFailed(failed) if failed.to_string() == "The disk is full."));
/// let unknown = client.call_tool("format", ()).await.unwrap_err();
/// assert_eq!(unknown.kind(), ErrorKind::Refused);
/// assert!(!unknown.is_retryable());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server refused the request, it timed out, or the connection was lost.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The session's revision does not have the method. Nothing was sent.
    #[error("`{method}` does not exist in protocol revision {version}")]
    Unavailable {
        /// The method.
        method: Method,
        /// The revision of the session.
        version: ProtocolVersion,
    },
    /// An input request of the server could not be answered.
    #[error("what the server asks under `{key}` cannot be answered")]
    Unanswered {
        /// Key of the input request.
        key: String,
        /// Error of the callback, or of the check before it.
        #[source]
        cause: McpError,
    },
    /// The server requested input in more rounds than the client allows.
    #[error("`{method}` asked for input more than {rounds} times")]
    TooManyRounds {
        /// The method.
        method: Method,
        /// Number of rounds after the first request.
        rounds: u32,
    },
    /// The result has a `resultType` that the method does not have: an extension defines it, or the server is wrong.
    /// [`Call::raw`](super::Call::raw) returns such a result instead of this error.
    #[error("`{method}` was answered with a result of the unknown type `{result_type}`")]
    ResultType {
        /// The method.
        method: Method,
        /// The `resultType` of the result.
        result_type: String,
        /// The result, verbatim: the request is not sent again to read it.
        result: Json,
    },
    /// A list does not end: a page has the cursor of an earlier page.
    #[error("the pages of `{0}` go in a circle")]
    RepeatedCursor(Method),
    /// A list has more pages than the client reads. See [`ClientBuilder::max_pages`](super::ClientBuilder::max_pages).
    #[error("`{method}` has more than {pages} pages")]
    TooManyPages {
        /// The method.
        method: Method,
        /// Number of pages that were read.
        pages: usize,
    },
    /// A list is larger than the client collects. A stream of its items has no such limit.
    #[error("the list of `{method}` is larger than {bytes} bytes")]
    ListTooLarge {
        /// The method.
        method: Method,
        /// Maximum size of a collected list, as JSON text.
        bytes: usize,
    },
    /// The task was cancelled. Holds its id.
    #[error("the task `{0}` was cancelled")]
    TaskCancelled(String),
    /// The server does not know the task: it never existed, has expired, or belongs to somebody else.
    #[error("the server does not know the task `{id}`: {reason}")]
    UnknownTask {
        /// The id.
        id: String,
        /// The text of the server.
        reason: String,
    },
    /// The [`ResultValidator`](super::ResultValidator) of the session rejected the result.
    #[error("the answer of the server did not pass the check")]
    Validation(#[source] BoxError),
    /// The tool reports a failure in its result.
    #[error(transparent)]
    ToolFailed(#[from] ToolFailed),
    /// The structured content of a result is missing or has another type.
    #[error("the structured content of the result cannot be decoded")]
    Structured(#[source] serde_json::Error),
}

impl ClientError {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Call(error) => error.kind(),
            Self::ToolFailed(_) | Self::TaskCancelled(_) | Self::UnknownTask { .. } => ErrorKind::Refused,
            Self::Unavailable { .. } | Self::Unanswered { .. } => ErrorKind::Local,
            Self::TooManyRounds { .. }
            | Self::ResultType { .. }
            | Self::RepeatedCursor(_)
            | Self::TooManyPages { .. }
            | Self::ListTooLarge { .. }
            | Self::Validation(_)
            | Self::Structured(_) => ErrorKind::Protocol,
        }
    }

    /// Returns whether the request certainly did not run and can succeed if it is sent again later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_retryable())
    }

    /// Returns the HTTP response that refused the request, if there was one.
    pub fn refusal(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Call(error) => error.refusal(),
            _ => None,
        }
    }
}

/// For handlers that call another server and return its failure with `?`.
impl From<ClientError> for McpError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Call(error) => error.into(),
            other => Self::internal(other),
        }
    }
}
