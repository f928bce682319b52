//! What can be wrong with settings.

use std::time::Duration;

use crate::server::security::InvalidName;

/// Why a service cannot be built; the text says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Neither a host nor an origin.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A path that no request can have.
    #[error("'{0}' is not a path: it begins with a slash and has no query")]
    Path(String),
    /// A path that cannot be given to clients.
    #[error(
        "'{0}' is not a relative path: it has no scheme, no host, no empty segment, no query and no fragment"
    )]
    Endpoint(String),
    /// One path for two things.
    #[error(
        "'{0}' is the path of two things: `path` (`/mcp` if not given) and both paths of `http_sse` must differ"
    )]
    SamePath(String),
    /// A limit of nothing.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// A time of nothing.
    #[error("{0} must be longer than zero")]
    Instant(&'static str),
    /// A stream would count as unread between two of its own keep-alive comments.
    #[error(
        "the time after which a stream counts as unread ({unread:?}) must be longer than the keep-alive ({ping:?})"
    )]
    Unread {
        /// The time after which a stream counts as unread.
        unread: Duration,
        /// The time between two keep-alive comments.
        ping: Duration,
    },
}
