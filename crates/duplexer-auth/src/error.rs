//! What goes wrong: settings that cannot work, and refusals in the words of OAuth.

use std::borrow::Cow;

use http::StatusCode;
use serde::Serialize;

/// Settings that cannot work; the text says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not a URL that can be an issuer.
    #[error("'{url}' cannot be an issuer: {reason}")]
    Issuer {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not a URL that can name a protected server.
    #[error("'{url}' cannot name a protected server: {reason}")]
    Resource {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not a URL that can be asked.
    #[error("'{url}' cannot be called: {reason}")]
    Endpoint {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Authorization without the URL of the protected server.
    #[error("the URL of the protected server is missing: add `.audience(url)`")]
    NoAudience,
    /// A static token that lacks a required field.
    #[error("a static token has no {0}: add `.{0}(..)`")]
    StaticToken(&'static str),
    /// Not the name of a scope.
    #[error("'{0}' is not a scope: visible ASCII without quotes, backslashes and blanks")]
    Scope(String),
    /// A scope that no server may ask for.
    #[error("'{0}' is for clients to ask for; no server requires it")]
    OfflineAccess(String),
    /// An algorithm that cannot be verified with a public key.
    #[error("{0} cannot be allowed: tokens are verified with public keys only")]
    Algorithm(String),
    /// An authorization server that protects nothing.
    #[error(
        "an authorization server needs to know at least one server that it protects: add `.resource(url)`"
    )]
    NoResource,
    /// A server that the authorization server does not know.
    #[error("the authorization server does not issue tokens for '{0}': add it with `.resource(url)`")]
    UnknownResource(String),
    /// A client that cannot be registered.
    #[error("the client '{id}' cannot be registered: {reason}")]
    Client {
        /// Which client.
        id: String,
        /// What is wrong with it.
        reason: Cow<'static, str>,
    },
    /// The TLS stack does not start.
    #[error("calls to other servers cannot be made: {0}")]
    Http(String),
}

/// A refusal in the words of OAuth: a code for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{error}: {error_description}")]
#[non_exhaustive]
pub struct OAuthError {
    /// The code.
    pub error: Cow<'static, str>,
    /// The sentence.
    pub error_description: Cow<'static, str>,
    #[serde(skip)]
    pub(crate) status: StatusCode,
}

impl OAuthError {
    /// A refusal with status 400.
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

    /// Something of ours failed; the log says what.
    pub(crate) fn server_error() -> Self {
        Self::new("server_error", "the server failed").with_status(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// There is no room at the moment.
    pub(crate) fn unavailable() -> Self {
        Self::new("temporarily_unavailable", "the server is full; try again later")
            .with_status(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// A failure of ours or of the application: logged, and not told.
    pub(crate) fn hidden(what: &'static str) -> impl Fn(duplexer_core::error::BoxError) -> Self {
        move |error| {
            tracing::error!(%error, what, "authorization failed");
            Self::server_error()
        }
    }
}
