//! Events for a host while tokens are obtained.

/// A step of a login or a renewal. It contains no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The authorization server of a server was found.
    Discovered {
        /// The server.
        server: String,
        /// Its authorization server.
        issuer: String,
    },
    /// The client was registered.
    Registered {
        /// The authorization server.
        issuer: String,
        /// The new client id.
        client_id: String,
    },
    /// A person has to log in.
    Waiting {
        /// The page of the login.
        url: String,
    },
    /// A token was obtained.
    Authorized {
        /// The authorization server.
        issuer: String,
        /// The granted scopes.
        scopes: Vec<String>,
    },
    /// A token was renewed.
    Refreshed {
        /// The authorization server.
        issuer: String,
    },
    /// More scopes are requested, because a request needs them.
    SteppingUp {
        /// All requested scopes.
        scopes: Vec<String>,
    },
    /// No token could be obtained or renewed.
    Failed {
        /// The error.
        error: crate::OAuthError,
    },
}
