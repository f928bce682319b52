//! Why the store cannot be used at start, and what a failed command means later.

use std::fmt;
use std::path::PathBuf;

use duplexer_core::error::{BoxError, Chain, StoreError};
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why [`Shared::connect`](crate::Shared::connect) fails. The text says what to change and never contains a password.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be used.
    #[error(
        "the URL of the store is not valid: {0}; it has the form redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss://..., unix:///PATH, redis://HOST,HOST for a cluster, or redis-sentinel://HOST,HOST/NAME"
    )]
    Url(String),
    /// A `rediss://` URL needs a feature that is not enabled.
    #[error("a `rediss://` URL needs the feature `rustls` of duplexer-redis")]
    NoTls,
    /// Several hosts need a feature that is not enabled.
    #[error("several hosts are a cluster, which needs the feature `cluster` of duplexer-redis")]
    NoCluster,
    /// The URL names one server of a cluster.
    #[error(
        "the store at {address} is a server of a cluster: name several of its hosts in the URL, separated by commas"
    )]
    Cluster {
        /// The address, without credentials.
        address: String,
    },
    /// The URL names several servers that are no cluster.
    #[error(
        "the store at {address} is not a cluster: name one host in the URL, or its sentinels (redis-sentinel://HOST,HOST/NAME)"
    )]
    NotACluster {
        /// The address, without credentials.
        address: String,
    },
    /// The file with the password cannot be read.
    #[error("the file '{}' with the password of the store cannot be read", .path.display())]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The variable with the password is not set.
    #[error("the environment variable `{0}` with the password of the store is not set")]
    PasswordVariable(String),
    /// A setting has a value that cannot work.
    #[error("`{0}` must be longer than zero")]
    Zero(&'static str),
    /// The secrets that seal what is stored cannot be used.
    #[error("the ring of secrets for `seal` cannot be used: {0}; each secret has at least 32 random bytes")]
    Seal(&'static str),
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
    #[error(
        "the store at {address} rejects the user name or the password: set them in the URL, or the password with `password_file` or `password_env`"
    )]
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
    /// The store has no memory left for what this node writes at start.
    #[error("the store is full: raise its `maxmemory`, or give it a Redis or Valkey of its own")]
    Full,
    /// The store failed in another way.
    #[error("the store cannot be used")]
    Failed(#[source] BoxError),
}

/// The text with its causes, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
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
            _ if is_denied_in_script(&error) => StoreError::Denied(error.into()),
            _ => StoreError::Failed(error.into()),
        },
    }
}

/// A script that runs out of memory reports it within another error.
fn is_out_of_memory(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("OOM command not allowed"))
}

/// A script whose user lacks a right reports it within another error too; Redis 7.0 in other words than later versions.
fn is_denied_in_script(error: &RedisError) -> bool {
    let denied = ["ACL failure in script", "The user executing the script"];
    error.detail().is_some_and(|detail| denied.iter().any(|text| detail.contains(text)))
}
