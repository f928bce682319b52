//! Why the store cannot be used at start, and what a failed command means later.

use duplexer_core::error::{BoxError, StoreError};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why [`Shared::connect`](crate::Shared::connect) fails. The text says what to change and never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error(
        "the URL of the store is not valid: {0}; it has the form redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss://... or unix:///PATH"
    )]
    Url(String),
    /// A `rediss://` URL needs a feature that is not enabled.
    #[error("a `rediss://` URL needs the feature `rustls` of duplexer-redis")]
    NoTls,
    /// The namespace cannot be used.
    #[error("the namespace `{0}` is not valid: it has 1 to 64 letters, digits, `-`, `_` and `.`")]
    Namespace(String),
    /// No connection was made in time.
    #[error("no Redis or Valkey answers at {address}")]
    Unreachable {
        /// The address, without credentials.
        address: String,
        /// The last attempt.
        #[source]
        cause: BoxError,
    },
    /// The store rejects the credentials.
    #[error("the store at {address} rejects the user name or the password: set them in the URL")]
    Credentials {
        /// The address, without credentials.
        address: String,
        /// The answer of the store.
        #[source]
        cause: BoxError,
    },
    /// The user lacks a right.
    #[error("the store denies `{command}`: add `{rule}` to the ACL of the user")]
    Denied {
        /// The command.
        command: &'static str,
        /// The ACL rule that allows it.
        rule: &'static str,
        /// The answer of the store.
        #[source]
        cause: BoxError,
    },
    /// The server is older than the first supported version.
    #[error("the store is {name} {version}: Redis 7.0 or Valkey 7.2 is needed")]
    Version {
        /// The name of the program.
        name: String,
        /// Its version.
        version: String,
    },
    /// The store failed in another way.
    #[error("the store cannot be used")]
    Failed(#[source] BoxError),
}

/// Returns what a failed command means for its caller.
pub(crate) fn store_error(error: RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
            StoreError::Denied(error.into())
        }
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::Moved
            | ServerErrorKind::Ask
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::NoScript,
        )
        | ErrorKind::Io
        | ErrorKind::ClusterConnectionNotFound => StoreError::Unavailable(error.into()),
        ErrorKind::UnexpectedReturnType | ErrorKind::Parse => StoreError::Unreadable(error.into()),
        _ => match error.code() {
            Some("OOM") => StoreError::Full,
            Some("NOAUTH" | "WRONGPASS") => StoreError::Denied(error.into()),
            // The store cannot write its file, runs a long script, or has too few replicas.
            Some("MISCONF" | "BUSY" | "NOREPLICAS" | "UNKILLABLE") => StoreError::Unavailable(error.into()),
            _ if is_out_of_memory(&error) => StoreError::Full,
            _ => StoreError::Failed(error.into()),
        },
    }
}

/// A script that runs out of memory reports it within another error.
fn is_out_of_memory(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("OOM command not allowed"))
}
