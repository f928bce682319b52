//! Failures of a login or of a token request. Each says what can be done.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use duplexer_core::error::{BoxError, StoreError};
use duplexer_oauth_base::fetch::{FetchError, is_not_public};
use duplexer_oauth_base::secret::RandomError;
use duplexer_types::text::shown;

/// Why a request has no valid token.
///
/// A failed call contains it as its cause: [`OAuthError::find`] returns it.
///
/// ```
/// use duplexer_oauth::OAuthError;
///
/// /// Returns the page to which a web application redirects its user.
/// fn page<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a str> {
///     OAuthError::find(error).and_then(OAuthError::login_url)
/// }
/// assert_eq!(page(&OAuthError::LoginDenied), None);
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A person has to log in, and this program has no way to ask one. The login is finished with `OAuth::finish`.
    #[error("a login is required: open {url}")]
    LoginRequired {
        /// Where the person logs in.
        url: String,
    },
    /// The person, or the authorization server, denied the login.
    #[error("the login was denied")]
    LoginDenied,
    /// The person did not finish the login.
    #[error("the login was not finished in time: call again to start another one")]
    LoginTimedOut,
    /// The login URL could not be shown.
    #[error("the login page could not be opened: {reason}")]
    Present {
        /// What failed.
        reason: String,
    },
    /// The configured port of the redirect URI is in use.
    #[error(
        "port {port} for the redirect URI is not available: close the program that uses it, or configure another one"
    )]
    Port {
        /// The port.
        port: u16,
    },
    /// The client has no id at this issuer and cannot get one.
    #[error(
        "'{issuer}' does not register clients: configure a client id that it knows, or the URL of a client metadata document"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The authorization server refused to register the client.
    #[error("'{issuer}' refused to register this client ({reason}): configure a client id that it knows")]
    RegistrationRefused {
        /// The authorization server.
        issuer: String,
        /// Its reason, or what cannot be used in its answer.
        reason: String,
    },
    /// The metadata of the server describes another server.
    #[error("the metadata of '{server}' is about '{published}': check the URL of the server")]
    ResourceMismatch {
        /// The URL that was called.
        server: String,
        /// The URL in the metadata.
        published: String,
    },
    /// Metadata or an answer is of another issuer.
    #[error("the issuer is '{found}' in {place}, but must be '{expected}'")]
    IssuerMismatch {
        /// The issuer that was expected.
        expected: String,
        /// The issuer that was found.
        found: String,
        /// Where it was found.
        place: &'static str,
    },
    /// The authorization server does not declare PKCE with S256.
    #[error(
        "'{issuer}' does not declare PKCE with S256, without which a login can be stolen: allow it with `without_pkce_check` if you know better"
    )]
    NoPkce {
        /// The authorization server.
        issuer: String,
    },
    /// The token lacks scopes, and another login would not change that.
    #[error("the server requires the scopes '{}', which were not granted", .required.join(" "))]
    InsufficientScope {
        /// All scopes that the request requires.
        required: Vec<String>,
    },
    /// The authorization server answered with an error.
    #[error("the authorization server refused: {error}{}", described(.description.as_deref()))]
    Authority {
        /// Error code of OAuth.
        error: String,
        /// Its description.
        description: Option<String>,
    },
    /// A URL is neither https nor on this machine.
    #[error("'{url}' is neither https nor on this machine: no credentials are sent there")]
    InsecureEndpoint {
        /// The URL.
        url: String,
    },
    /// A server on the public network names an address on a private one.
    #[error(
        "'{url}' is on a private network, but the server that named it is not: use `allow_private` if you trust it"
    )]
    PrivateAddress {
        /// The URL.
        url: String,
    },
    /// The server does not say where to log in.
    #[error("'{server}' names no authorization server that can be used: {reason}")]
    NoAuthority {
        /// The server.
        server: String,
        /// What is wrong.
        reason: String,
    },
    /// An answer of a server violates its specification.
    #[error("the answer of '{url}' cannot be used: {reason}")]
    Answer {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The redirect after a login cannot be used.
    #[error("the redirect after the login cannot be used: {0}")]
    Callback(Cow<'static, str>),
    /// The configuration does not fit this server.
    #[error("{0}")]
    Config(Cow<'static, str>),
    /// The credential store failed.
    #[error("the stored credentials cannot be used")]
    Store(#[source] Arc<StoreError>),
    /// A function or key of the application failed.
    #[error("the application gives no credential")]
    Source(#[source] Arc<dyn Error + Send + Sync>),
    /// The same request can succeed later. No credential was lost.
    #[error("'{url}' is not available at the moment ({reason}): try again later")]
    Temporary {
        /// The URL.
        url: String,
        /// What happened.
        reason: String,
    },
}

impl OAuthError {
    /// Finds the OAuth failure among the causes of an error, such as a failed call.
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let shared = error.downcast_ref::<Arc<dyn Error + Send + Sync>>();
            let found = shared.map_or_else(|| error.downcast_ref(), |shared| shared.downcast_ref());
            if found.is_some() {
                return found;
            }
            next = error.source();
        }
        None
    }

    /// Returns the URL at which a person has to log in, if that is the failure.
    pub fn login_url(&self) -> Option<&str> {
        match self {
            Self::LoginRequired { url } => Some(url),
            _ => None,
        }
    }

    /// Returns whether the same request can succeed later, without a login.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Temporary { .. } => true,
            Self::Store(error) => matches!(**error, StoreError::Unavailable(_) | StoreError::Full),
            _ => false,
        }
    }

    pub(crate) fn answer(url: &str, reason: impl Into<String>) -> Self {
        Self::Answer { url: shown(url), reason: reason.into() }
    }

    pub(crate) fn temporary(url: &str, reason: impl Into<String>) -> Self {
        Self::Temporary { url: shown(url), reason: reason.into() }
    }

    pub(crate) fn source(error: BoxError) -> Self {
        Self::Source(Arc::from(error))
    }

    /// Returns the failure of a request to `url`.
    pub(crate) fn of_fetch(url: &str, error: &FetchError) -> Self {
        if is_not_public(error) {
            return Self::PrivateAddress { url: shown(url) };
        }
        match error {
            FetchError::TooLarge(_) | FetchError::Malformed(_) => Self::answer(url, error.to_string()),
            // The text of the HTTP library contains the URL, which can have parameters.
            _ => Self::temporary(url, error.to_string()),
        }
    }

    /// Returns the error code of the authorization server.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Authority { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<RandomError> for OAuthError {
    fn from(error: RandomError) -> Self {
        Self::Config(error.to_string().into())
    }
}

fn described(description: Option<&str>) -> String {
    description.map(|text| format!(" ({text})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-99: every failure is a variant of its own, and its text names what was found or what to do.
    #[test]
    fn every_failure_says_what_to_do() {
        let text = |text: &str| text.to_owned();
        let store = StoreError::Denied("no".into());
        let cases = [
            (OAuthError::LoginRequired { url: text("https://a/login") }, "open https://a/login"),
            (OAuthError::LoginDenied, "denied"),
            (OAuthError::LoginTimedOut, "call again"),
            (OAuthError::Present { reason: text("no display") }, "no display"),
            (OAuthError::Port { port: 3118 }, "port 3118"),
            (OAuthError::NoRegistration { issuer: text("https://a") }, "configure a client id"),
            (
                OAuthError::RegistrationRefused { issuer: text("https://a"), reason: text("no") },
                "configure a client id",
            ),
            (
                OAuthError::ResourceMismatch { server: text("https://a"), published: text("https://b") },
                "check the URL",
            ),
            (
                OAuthError::IssuerMismatch {
                    expected: text("https://a"),
                    found: text("https://b"),
                    place: "its metadata",
                },
                "'https://b' in its metadata, but must be 'https://a'",
            ),
            (OAuthError::NoPkce { issuer: text("https://a") }, "`without_pkce_check`"),
            (OAuthError::InsufficientScope { required: vec![text("a"), text("b")] }, "'a b'"),
            (
                OAuthError::Authority { error: text("invalid_grant"), description: Some(text("gone")) },
                "invalid_grant (gone)",
            ),
            (OAuthError::InsecureEndpoint { url: text("http://a") }, "neither https"),
            (OAuthError::PrivateAddress { url: text("https://a") }, "`allow_private`"),
            (OAuthError::from(store), "stored credentials"),
            (OAuthError::temporary("https://a", "status 503"), "try again later"),
        ];
        for (error, fragment) in cases {
            assert!(error.to_string().contains(fragment), "{error}");
            let is_temporary = matches!(error, OAuthError::Temporary { .. });
            assert_eq!(error.is_temporary(), is_temporary, "{error}");
        }
    }
}
