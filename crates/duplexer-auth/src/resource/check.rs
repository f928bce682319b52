//! Validation of the token of a request.

use std::sync::Arc;

use duplexer_core::error::Chain;
use duplexer_server::Principal;
use http::{HeaderMap, StatusCode};

use super::Auth;
use super::bearer::{Credentials, credentials};
use super::challenge::{insufficient, invalid_token, no_token};
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::token::AccessToken;
use crate::urls;

impl Auth {
    /// Returns the principal of a request, or the response that rejects it.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Reply> {
        let token = match credentials(headers) {
            Credentials::Token(token) => token,
            Credentials::Nothing => return Err(self.unauthenticated(&no_token())),
            Credentials::Malformed => {
                return Err(self.refused("the Authorization header holds no bearer token"));
            }
            Credentials::Ambiguous => {
                let error = OAuthError::invalid_request("more than one Authorization header");
                return Err(reply::challenged(&error, &self.challenge(&error, &self.needed(&[]))));
            }
        };
        let token = match self.0.verifier.verify(token).await {
            Ok(Some(token)) => token,
            Ok(None) => return Err(self.refused("the token is unknown, expired or revoked")),
            Err(error) => {
                tracing::error!(error = %Chain(&*error), "a token could not be verified");
                return Err(reply::error(&unverifiable()));
            }
        };
        if !token.is_named() {
            return Err(self.refused("the token names neither a subject nor a client"));
        }
        if token.principal.expires_at.is_some_and(|end| end <= self.0.clock.now()) {
            return Err(self.refused("the token has expired"));
        }
        if !self.audience_matches(&token) {
            return Err(self.refused("the token is for another audience"));
        }
        let principal = self.with_implied(token.principal);
        match self.missing(&principal, &[]) {
            None => Ok(Arc::new(principal)),
            Some(error) => Err(reply::challenged(&error, &self.challenge(&error, &self.needed(&[])))),
        }
    }

    /// Rejects a token. The cause is no secret to its bearer.
    fn refused(&self, reason: &'static str) -> Reply {
        self.unauthenticated(&invalid_token(reason))
    }

    fn unauthenticated(&self, error: &OAuthError) -> Reply {
        tracing::debug!(reason = &*error.error_description, "a request is refused");
        reply::challenged(error, &self.challenge(error, &self.needed(&[])))
    }

    /// Returns whether the audience of a token includes this server.
    fn audience_matches(&self, token: &AccessToken) -> bool {
        let is_ours =
            |name: &String| urls::is_same(name, &self.0.site.resource) || self.0.audiences.contains(name);
        token.audience.iter().any(is_ours)
    }

    /// Returns all scopes of an operation: those of every request and its own.
    pub(super) fn needed<'a>(&'a self, own: &'a [String]) -> Vec<&'a str> {
        let mut needed: Vec<&str> = self.0.required.iter().map(String::as_str).collect();
        for scope in own {
            if !needed.contains(&scope.as_str()) {
                needed.push(scope);
            }
        }
        needed
    }

    /// Returns the error of a principal that lacks one of these scopes.
    pub(super) fn missing(&self, principal: &Principal, own: &[String]) -> Option<OAuthError> {
        self.needed(own).into_iter().find(|scope| !principal.has_scope(scope)).map(insufficient)
    }

    /// Adds all implied scopes. Each scope is visited once, so that cycles terminate.
    fn with_implied(&self, mut principal: Principal) -> Principal {
        let mut at = 0;
        while let Some(scope) = principal.scopes.get(at) {
            for other in self.0.implied.get(scope).into_iter().flatten() {
                if !principal.has_scope(other) {
                    principal.scopes.push(other.clone());
                }
            }
            at += 1;
        }
        principal
    }
}

fn unverifiable() -> OAuthError {
    OAuthError::new("temporarily_unavailable", "the token cannot be verified at the moment")
        .with_status(StatusCode::SERVICE_UNAVAILABLE)
}
