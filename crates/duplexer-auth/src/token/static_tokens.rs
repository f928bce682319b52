//! Tokens from a list: for tests, benchmarks and servers with a handful of callers.

use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::Principal;
use subtle::{Choice, ConstantTimeEq};

use super::{AccessToken, TokenVerifier};
use crate::secret;

/// A token that is known ahead.
#[derive(Clone, Debug)]
pub struct StaticToken {
    digest: String,
    token: AccessToken,
}

impl StaticToken {
    /// A token of this subject for this server (its URL).
    pub fn new(token: &str, subject: impl Into<String>, audience: impl Into<String>) -> Self {
        let subject = subject.into();
        let mut principal = Principal::new(subject.clone());
        principal.subject = Some(subject);
        let known = AccessToken::new(principal, vec![audience.into()]);
        Self { digest: secret::digest(token), token: known }
    }

    /// What it allows.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.token.principal.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// When it ends.
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.token.principal.expires_at = Some(time);
        self
    }
}

/// Tokens from a list.
#[derive(Debug)]
pub(crate) struct StaticTokens(Vec<StaticToken>);

impl StaticTokens {
    pub(crate) fn new(tokens: impl IntoIterator<Item = StaticToken>) -> Self {
        Self(tokens.into_iter().collect())
    }

    /// Looks at every token, whether or not one has matched: the time it takes tells nothing.
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
