//! Who the client is: configured, described by a document, or registered.

pub(crate) mod authentication;
pub(crate) mod document;
pub(crate) mod identify;
pub(crate) mod registration;

use std::fmt;
use std::sync::Arc;

use duplexer_oauth_base::Secret;

use crate::key::Signer;

/// Identity of a client that is known before the login.
///
/// ```
/// use duplexer_oauth::{ClientIdentity, OAuth, Secret};
///
/// let secret = Secret::new("from the environment");
/// let client = ClientIdentity::secret("service-7", secret).issuer("https://login.example.com");
/// let service = OAuth::client_credentials(client).scopes(["mcp"]).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone)]
pub struct ClientIdentity {
    pub(crate) id: String,
    pub(crate) credential: Credential,
    pub(crate) issuer: Option<String>,
}

#[derive(Clone)]
pub(crate) enum Credential {
    Public,
    Secret(Secret),
    Key(Arc<dyn Signer>),
    /// The id is the URL of a client metadata document.
    Document,
}

impl ClientIdentity {
    /// Creates a client that is registered without a secret.
    pub fn public(id: impl Into<String>) -> Self {
        Self { id: id.into(), credential: Credential::Public, issuer: None }
    }

    /// Creates a client that is registered with a secret.
    pub fn secret(id: impl Into<String>, secret: Secret) -> Self {
        Self { id: id.into(), credential: Credential::Secret(secret), issuer: None }
    }

    /// Creates a client that signs an assertion for each token request (`private_key_jwt`, RFC 7523).
    pub fn private_key_jwt(id: impl Into<String>, key: impl Signer) -> Self {
        Self { id: id.into(), credential: Credential::Key(Arc::new(key)), issuer: None }
    }

    /// Creates a client whose id is the URL of its metadata document. It is used where the authorization server
    /// supports that; elsewhere the client registers.
    pub fn document(url: impl Into<String>) -> Self {
        Self { id: url.into(), credential: Credential::Document, issuer: None }
    }

    /// Restricts the identity to one issuer.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Returns whether the identity can be used at an issuer.
    pub(crate) fn is_for(&self, issuer: &str) -> bool {
        self.issuer.as_deref().is_none_or(|own| own == issuer)
    }

    pub(crate) fn is_document(&self) -> bool {
        matches!(self.credential, Credential::Document)
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("id", &self.id).finish_non_exhaustive()
    }
}
