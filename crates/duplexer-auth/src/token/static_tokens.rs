//! Tokens from the configuration: for tests, benchmarks and servers with few clients.

use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::Principal;
use subtle::{Choice, ConstantTimeEq};

use super::{AccessToken, TokenVerifier};
use crate::error::AuthConfigError;
use crate::secret;

/// Token from the configuration. [`Self::client_id`] and [`Self::audience`] are required.
///
/// ```
/// use duplexer_auth::{Auth, StaticToken};
///
/// let url = "http://127.0.0.1:8000/mcp";
/// let token = StaticToken::new("a-long-random-text").client_id("ada").audience(url).scopes(["mcp"]);
/// let auth = Auth::static_tokens([token]).audience(url).build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[doc(alias("bearer", "api key"))]
#[derive(Clone, Debug)]
pub struct StaticToken {
    digest: String,
    client_id: Option<String>,
    subject: Option<String>,
    issuer: Option<String>,
    audience: Vec<String>,
    scopes: Vec<String>,
    expires_at: Option<SystemTime>,
}

impl StaticToken {
    /// Creates a token from its text. Only the digest of the text is kept.
    pub fn new(token: &str) -> Self {
        Self {
            digest: secret::digest(token),
            client_id: None,
            subject: None,
            issuer: None,
            audience: Vec::new(),
            scopes: Vec::new(),
            expires_at: None,
        }
    }

    /// Sets the client that the token belongs to. It is the subject of the requests too, unless there is another one.
    #[must_use]
    pub fn client_id(mut self, client: impl Into<String>) -> Self {
        self.client_id = Some(client.into());
        self
    }

    /// Sets the user that the client acts for.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets the issuer that handlers see. Two users of the same name are distinct if their issuers are.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Adds a server, by its URL, for which the token is valid.
    #[must_use]
    pub fn audience(mut self, url: impl Into<String>) -> Self {
        self.audience.push(url.into());
        self
    }

    /// Sets the scopes of the token.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the time at which the token expires. Default: never.
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    fn known(self) -> Result<Known, AuthConfigError> {
        let client = self
            .client_id
            .filter(|client| !client.is_empty())
            .ok_or(AuthConfigError::StaticToken("client_id"))?;
        if self.audience.is_empty() {
            return Err(AuthConfigError::StaticToken("audience"));
        }
        let mut principal = Principal::new(client.clone());
        principal.subject = self.subject.or(Some(client));
        principal.issuer = self.issuer;
        principal.scopes = self.scopes;
        principal.expires_at = self.expires_at;
        Ok(Known { digest: self.digest, token: AccessToken::new(principal, self.audience) })
    }
}

/// Verifier over a list of tokens.
#[derive(Debug)]
pub(crate) struct StaticTokens(Vec<Known>);

#[derive(Debug)]
struct Known {
    digest: String,
    token: AccessToken,
}

impl StaticTokens {
    pub(crate) fn new(tokens: impl IntoIterator<Item = StaticToken>) -> Result<Self, AuthConfigError> {
        tokens.into_iter().map(StaticToken::known).collect::<Result<_, _>>().map(Self)
    }

    /// Compares with every token, also after a match, so that the duration reveals nothing.
    fn find(&self, presented: &str) -> Option<&AccessToken> {
        let digest = secret::digest(presented);
        let mut found = None;
        for known in &self.0 {
            let same: Choice = digest.as_bytes().ct_eq(known.digest.as_bytes());
            if same.into() {
                found = Some(&known.token);
            }
        }
        found
    }
}

impl TokenVerifier for StaticTokens {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(std::future::ready(Ok(self.find(token).cloned())))
    }
}
