//! Tokens that are bound to a key (DPoP, RFC 9449).

pub(crate) mod nonce;
pub(crate) mod proof;

use std::fmt;
use std::sync::Arc;

use duplexer_oauth_base::secret;
use serde_json::Value;

use crate::discovery::authority::Authority;
use crate::error::OAuthError;
use crate::key::{Signer, SigningKey};
use crate::record::Entry;

/// Whether tokens are bound to a key. The default binds them where the server challenges with `DPoP`.
///
/// ```
/// use duplexer_oauth::{Dpop, OAuth};
///
/// let login = OAuth::login_with_browser("my-program").dpop(Dpop::require()).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Default)]
pub struct Dpop {
    policy: Policy,
    key: Option<Arc<dyn Signer>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Policy {
    Off,
    #[default]
    Challenged,
    Preferred,
    Required,
}

impl Dpop {
    /// Uses bearer tokens only.
    pub fn off() -> Self {
        Self { policy: Policy::Off, key: None }
    }

    /// Binds tokens where the authorization server supports it, or where the server challenges with `DPoP`.
    pub fn prefer() -> Self {
        Self { policy: Policy::Preferred, key: None }
    }

    /// Binds every token. An authorization server that issues a bearer token is an error.
    pub fn require() -> Self {
        Self { policy: Policy::Required, key: None }
    }

    /// Uses this key instead of a generated one. It must be able to give its public part.
    #[must_use]
    pub fn key(mut self, key: impl Signer) -> Self {
        self.key = Some(Arc::new(key));
        self
    }

    pub(crate) fn is_required(&self) -> bool {
        self.policy == Policy::Required
    }

    /// Returns whether tokens of this authorization server are bound. `scheme` is the one of the challenge.
    pub(crate) fn applies(&self, authority: &Authority, scheme: &str) -> bool {
        let name = self.key.as_ref().map_or("ES256", |key| key.algorithm().name());
        let is_listed = authority.dpop_signing_alg_values_supported.iter().any(|listed| listed == name);
        match self.policy {
            Policy::Off => false,
            Policy::Challenged => scheme == "dpop",
            Policy::Preferred => scheme == "dpop" || is_listed,
            Policy::Required => true,
        }
    }

    /// Returns the configured key, or the stored one of an entry.
    pub(crate) fn key_of(&self, entry: &Entry) -> Result<Option<DpopKey>, OAuthError> {
        if self.policy == Policy::Off {
            return Ok(None);
        }
        match (&self.key, &entry.dpop_key) {
            (Some(key), _) => DpopKey::new(Arc::clone(key)).map(Some),
            (None, Some(stored)) => {
                let key = SigningKey::stored(stored).map_err(|error| OAuthError::source(error.into()))?;
                DpopKey::new(Arc::new(key)).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns whether a key has to be generated and stored.
    pub(crate) fn generates(&self) -> bool {
        self.key.is_none()
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dpop").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A key with its public part.
#[derive(Clone)]
pub(crate) struct DpopKey {
    signer: Arc<dyn Signer>,
    jwk: Value,
}

impl DpopKey {
    fn new(signer: Arc<dyn Signer>) -> Result<Self, OAuthError> {
        let missing = || OAuthError::Config("the key for DPoP does not give its public part".into());
        let jwk = signer.public_jwk().ok_or_else(missing)?;
        Ok(Self { signer, jwk })
    }

    /// Returns the thumbprint of the key (RFC 7638): the digest of its required members in order.
    pub(crate) fn thumbprint(&self) -> String {
        let names: &[&str] = match self.jwk["kty"].as_str() {
            Some("EC") => &["crv", "kty", "x", "y"],
            Some("OKP") => &["crv", "kty", "x"],
            _ => &["e", "kty", "n"],
        };
        // Members of a `serde_json` object are sorted.
        let required: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), self.jwk[*name].clone())).collect();
        secret::digest(&Value::Object(required).to_string())
    }
}
