//! Errors of settings.

use std::fmt;
use std::time::Duration;

use duplexer_core::error::Chain;

use crate::server::security::InvalidName;

/// Error of an invalid setting. Its text says what to change.
///
/// ```
/// use duplexer_http::{HttpConfigError, StreamableHttp};
/// use duplexer_server::Server;
///
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let error = StreamableHttp::builder(server).path("mcp").build().unwrap_err();
/// assert!(matches!(error, HttpConfigError::Path(path) if path == "mcp"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum HttpConfigError {
    /// A text that is neither a host nor an origin.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A path that no request can have.
    #[error("'{0}' is not a path: it begins with a slash and has no query")]
    Path(String),
    /// A path that cannot be sent to clients.
    #[error(
        "'{0}' is not a relative path: it has no scheme, no host, no empty segment, no query and no fragment"
    )]
    Endpoint(String),
    /// One path for two endpoints.
    #[error(
        "'{0}' is the path of two things: `path` (`/mcp` if not given) and both paths of `http_sse` must differ"
    )]
    SamePath(String),
    /// A text that is no address of a proxy.
    #[error("'{0}' is neither an address nor a range such as 10.0.0.0/8")]
    Network(String),
    /// A server card that clients would reject.
    #[error("the server card cannot be served: {0}")]
    Card(String),
    /// A limit of zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A duration of zero.
    #[error("{0} must be longer than zero")]
    Instant(&'static str),
    /// Several nodes, of which each seals request states with a random key of its own.
    #[error(
        "nodes share a store, and this one seals request states with a random key, which no other node can open: give all nodes the same secret with `Server::builder(..).request_state(RequestState::keys([secret])?)`"
    )]
    RandomStateKey,
    /// The unread timeout is not longer than the keep-alive interval, so every silent stream would time out.
    #[error(
        "the time after which a stream counts as unread ({unread:?}) must be longer than the keep-alive ({ping:?})"
    )]
    Unread {
        /// The unread timeout.
        unread: Duration,
        /// The keep-alive interval.
        ping: Duration,
    },
}

/// The text, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for HttpConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}
