//! Validation of the token of a request.

use std::sync::Arc;

use duplexer_core::error::Chain;
use duplexer_server::Principal;
use http::{HeaderMap, HeaderName, Method, StatusCode};

use super::Auth;
use super::bearer::{Credentials, credentials};
use super::challenge::{insufficient, invalid_token, no_token};
use crate::dpop::{self, ProofError, Proven};
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::token::AccessToken;
use crate::{secret, urls};

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Dpop,
}

/// A token, and the request for which it is presented.
struct Presented<'a> {
    method: &'a Method,
    path: &'a str,
    headers: &'a HeaderMap,
    token: &'a str,
    scheme: Scheme,
}

impl Auth {
    /// Returns the principal of a request, or the response that rejects it.
    pub(super) async fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Arc<Principal>, Reply> {
        let (text, scheme) = match credentials(headers) {
            Credentials::Token(token) => (token, Scheme::Bearer),
            Credentials::Bound(token) => (token, Scheme::Dpop),
            Credentials::Nothing => return Err(self.unauthenticated(&no_token())),
            Credentials::Malformed => {
                return Err(self.refused("the Authorization header holds no bearer token"));
            }
            Credentials::Ambiguous => {
                let error = OAuthError::invalid_request("more than one Authorization header");
                return Err(reply::challenged(&error, &self.challenge(&error, &self.needed(&[]))));
            }
        };
        let token = match self.0.verifier.verify(text).await {
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
        let presented = Presented { method, path, headers, token: text, scheme };
        self.check_binding(&token, &presented).map_err(|error| self.unproven(error))?;
        let principal = self.with_implied(token.principal);
        match self.missing(&principal, &[]) {
            None => Ok(Arc::new(principal)),
            Some(error) => Err(reply::challenged(&error, &self.challenge(&error, &self.needed(&[])))),
        }
    }

    /// Checks that a bound token comes with a proof of its key, and that no other token claims to be bound.
    fn check_binding(&self, token: &AccessToken, presented: &Presented<'_>) -> Result<(), ProofError> {
        let Some(thumbprint) = &token.key_thumbprint else {
            return match presented.scheme {
                Scheme::Dpop => Err(ProofError::Invalid("the token is not bound to a key")),
                Scheme::Bearer if self.0.dpop.is_required() => {
                    Err(ProofError::Invalid("only tokens that are bound to a key are accepted"))
                }
                Scheme::Bearer => Ok(()),
            };
        };
        if presented.scheme == Scheme::Bearer {
            return Err(ProofError::Invalid("the token is bound to a key: send it with the scheme DPoP"));
        }
        let url = format!("{}{}", self.0.site.origin, presented.path);
        let now = self.0.clock.seconds();
        let about = Proven { method: presented.method, url: &url, token: Some(presented.token), now };
        let found = self.0.dpop.proofs.check(presented.headers, &about)?;
        if secret::matches(&found, &secret::digest(thumbprint)) {
            return Ok(());
        }
        Err(ProofError::Invalid("the proof is of another key"))
    }

    /// Rejects a request whose token is not proven, with the nonce of the next proof.
    fn unproven(&self, error: ProofError) -> Reply {
        let (code, text) = match error {
            ProofError::Missing => ("invalid_dpop_proof", "there is no proof"),
            ProofError::Invalid(text) => ("invalid_dpop_proof", text),
            ProofError::Nonce => ("use_dpop_nonce", "the proof needs the nonce of this answer"),
            ProofError::Busy => {
                return reply::error(&OAuthError::unavailable("too many proofs; try again later"));
            }
        };
        let error = OAuthError::new(code, text).with_status(StatusCode::UNAUTHORIZED);
        let mut reply = reply::challenged(&error, &self.dpop_challenge(&error, &self.needed(&[])));
        if let Some(nonce) = self.0.dpop.proofs.nonce(self.0.clock.seconds()) {
            reply::with_header(&mut reply, HeaderName::from_static(dpop::NONCE), &nonce);
        }
        reply
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
