//! Errors: invalid settings, and OAuth error responses.

use std::borrow::Cow;

use duplexer_core::error::{BoxError, Chain};
use http::StatusCode;
use serde::Serialize;

/// Invalid settings. The text says what to change.
///
/// ```
/// use duplexer_auth::{Auth, StaticToken};
///
/// let token = StaticToken::new("a-long-random-text").client_id("ada").audience("https://mcp.example.com/mcp");
/// let error = Auth::static_tokens([token]).build().unwrap_err();
/// println!("{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthConfigError {
    /// The URL is not a valid issuer.
    #[error("'{url}' cannot be an issuer: {reason}")]
    Issuer {
        /// The configured text.
        url: String,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The URL is not a valid resource.
    #[error("'{url}' cannot name a protected server: {reason}")]
    Resource {
        /// The configured text.
        url: String,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The URL is not a valid endpoint.
    #[error("'{url}' cannot be called: {reason}")]
    Endpoint {
        /// The configured text.
        url: String,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// The URL of the protected server is missing.
    #[error("the URL of the protected server is missing: add `.audience(url)`")]
    NoAudience,
    /// A static token lacks a required field.
    #[error("a static token has no {0}: add `.{0}(..)`")]
    StaticToken(&'static str),
    /// The text is not a valid scope.
    #[error("'{0}' is not a scope: visible ASCII without quotes, backslashes and blanks")]
    Scope(String),
    /// The scope cannot be required by a server.
    #[error("'{0}' is for clients to ask for; no server requires it")]
    OfflineAccess(String),
    /// The algorithm does not use public keys.
    #[error("{0} cannot be allowed: tokens are verified with public keys only")]
    Algorithm(String),
    /// The authorization server has no resource.
    #[error(
        "an authorization server needs to know at least one server that it protects: add `.resource(url)`"
    )]
    NoResource,
    /// The authorization server does not know the resource.
    #[error("the authorization server does not issue tokens for '{0}': add it with `.resource(url)`")]
    UnknownResource(String),
    /// A configured client is invalid.
    #[error("the client '{id}' cannot be registered: {reason}")]
    Client {
        /// The client id.
        id: String,
        /// Why it is invalid.
        reason: Cow<'static, str>,
    },
    /// The HTTP client could not be set up.
    #[error("calls to other servers cannot be made: {0}")]
    Http(String),
}

/// OAuth error response: a code for programs and a description for people.
///
/// ```
/// use duplexer_auth::OAuthError;
///
/// let refusal = OAuthError::new("access_denied", "this user was removed");
/// assert_eq!(refusal.to_string(), "access_denied: this user was removed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{error}: {error_description}")]
#[non_exhaustive]
pub struct OAuthError {
    /// Error code.
    pub error: Cow<'static, str>,
    /// Description.
    pub error_description: Cow<'static, str>,
    #[serde(skip)]
    pub(crate) status: StatusCode,
}

impl OAuthError {
    /// Creates an error with status 400.
    pub fn new(error: impl Into<Cow<'static, str>>, description: impl Into<Cow<'static, str>>) -> Self {
        Self { error: error.into(), error_description: description.into(), status: StatusCode::BAD_REQUEST }
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn invalid_request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new("invalid_request", description)
    }

    pub(crate) fn invalid_grant(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new("invalid_grant", description)
    }

    pub(crate) fn invalid_scope(scope: &str) -> Self {
        Self::new("invalid_scope", format!("scope '{scope}' is not available to this client"))
    }

    pub(crate) fn invalid_target() -> Self {
        Self::new("invalid_target", "no tokens are issued for this resource")
    }

    /// Internal error. The cause is in the log.
    pub(crate) fn server_error() -> Self {
        Self::new("server_error", "the server failed").with_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The server cannot answer at the moment; the same request can succeed later.
    pub(crate) fn unavailable(description: &'static str) -> Self {
        Self::new("temporarily_unavailable", description).with_status(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Logs an internal failure and returns an error without its cause.
    pub(crate) fn hidden(what: &'static str) -> impl Fn(BoxError) -> Self {
        move |error| {
            tracing::error!(error = %Chain(&*error), what, "authorization failed");
            Self::server_error()
        }
    }
}
