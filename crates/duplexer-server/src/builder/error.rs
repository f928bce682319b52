//! Errors of [`ServerBuilder::build`](super::ServerBuilder::build).

use std::fmt;

use duplexer_types::methods::Method;

use crate::registry::capabilities;
use duplexer_core::error::{BoxError, Chain};

/// Error of [`ServerBuilder::build`](super::ServerBuilder::build). Its text says what to change.
///
/// ```
/// use duplexer::{BuildError, Server, Tool};
///
/// let twice = || Tool::new("add", || async {});
/// let error = Server::builder("calculator", "1.0.0").tool(twice()).tool(twice()).build().unwrap_err();
/// assert_eq!(error.to_string(), "there are two tools 'add': rename one of them");
/// // What a program prints whose `main` returns the error.
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The kernel handles this method itself.
    #[error(
        "'{0}' is handled by the server runner and cannot be overridden; use middleware to observe or wrap initialization"
    )]
    Reserved(&'static str),
    /// A custom method has the name of a spec method.
    #[error("'{0}' is a method of the protocol: register its handler with `on` or `on_notification`")]
    SpecMethod(String),
    /// A custom method is served in no revision.
    #[error("'{0}' is served in no revision: give it at least one")]
    NoRevision(String),
    /// A freshness hint for a method whose results cannot be cached.
    #[error("cache hints are for cacheable methods ({cacheable}); got: {got}", cacheable = cacheable_names())]
    NotCacheable {
        /// The method of the hint.
        got: String,
    },
    /// An extension's id is not `prefix/name`.
    #[error("'{0}' is not an extension id: it needs a prefix of dotted labels, a slash, and a name")]
    ExtensionId(String),
    /// An extension was registered twice.
    #[error("extension '{0}' is registered twice")]
    DuplicateExtension(String),
    /// Two parts of a server, such as merged servers, have the same unique item.
    #[error("two parts of the server have the {what} '{name}': leave it to one of them")]
    Clash {
        /// The kind of the item.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// In a merged server, a handler hides the items of the other servers.
    #[error(
        "the handler of '{0}' would hide what was registered with the servers that are merged: register what it serves as well"
    )]
    Hidden(&'static str),
    /// A handler cannot be nested, because it does not know the prefix.
    #[error(
        "'{0}' has a handler of its own, which a prefix does not reach: merge its server, or register what it serves"
    )]
    NoPrefix(&'static str),
    /// A merged server has middleware. Middleware sees every message of a server, and a merged server has none of its
    /// own.
    #[error(
        "'{0}' has middleware or seals request states, and is merged: do both in the server it becomes part of"
    )]
    MergedMiddleware(String),
    /// A tool can run as a task, and its server has no tasks.
    #[error("the tool '{0}' can run as a task, and its server has no tasks: add `.extend(Tasks::new())`")]
    NoTasks(String),
    /// Request states have no audience.
    #[error("request states need an audience: name the server, or say `RequestState::audience`")]
    NoAudience,
    /// The server's identity cannot be rendered.
    #[error("the server's identity cannot be written as JSON")]
    Identity(#[source] serde_json::Error),
    /// A part of the server, such as one of its tools, is invalid.
    #[error(transparent)]
    Part(BoxError),
    /// Several faults, each of which fails the build.
    #[error("{}", lines(.0))]
    Several(Vec<BuildError>),
}

/// The text with its causes, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}

impl BuildError {
    /// Combines the faults of one build; `None` if there are none. A single fault stays what it is.
    pub(super) fn from_faults(mut faults: Vec<Self>) -> Option<Self> {
        match faults.len() {
            0 | 1 => faults.pop(),
            _ => Some(Self::Several(faults)),
        }
    }
}

fn lines(faults: &[BuildError]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn cacheable_names() -> String {
    capabilities::cacheable().map(Method::name).collect::<Vec<_>>().join(", ")
}
