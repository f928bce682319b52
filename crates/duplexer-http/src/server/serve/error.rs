//! Why a service could not be served.

use std::fmt;

use duplexer_core::error::Chain;

/// Error of a service that could not listen.
#[derive(thiserror::Error)]
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

/// The text with its causes, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_fails_prints_what_happened() {
        let taken = ServeError::Bind(std::io::ErrorKind::AddrInUse.into());
        assert_eq!(format!("{taken:?}"), "the address cannot be listened on: address in use");
    }
}
