//! Where a server of a configuration file is.

use std::fmt;

/// Where a server of a configuration file is, with the variables of the environment in place: see
/// [`ServerEntry::address`](super::ServerEntry::address).
///
/// `Debug` shows no values, which may be secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerAddress {
    /// A program that the client starts.
    Program {
        /// Name or path of the program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables in addition to the inherited ones.
        env: Vec<(String, String)>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// A server over HTTP.
    Url {
        /// The URL.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Program { .. } => "Program",
            Self::Url { .. } => "Url",
        };
        f.debug_struct(kind).finish_non_exhaustive()
    }
}
