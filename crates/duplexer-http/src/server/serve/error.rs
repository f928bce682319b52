//! Why a service could not be served.

/// Error of a service that could not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The server's lifespan could not start. The cause is in the log.
    #[error("the server could not start")]
    Start,
    /// The address cannot be listened on.
    #[error("the address cannot be listened on")]
    Bind(#[source] std::io::Error),
    /// The signals that end the process cannot be caught.
    #[error("the signals that end the process cannot be caught")]
    Signals(#[source] std::io::Error),
}
