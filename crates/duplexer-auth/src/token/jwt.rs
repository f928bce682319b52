//! Signed tokens (RFC 9068 and similar).
//!
//! `signature` checks the signature. This module selects algorithms and keys and checks `iss`, `exp` and `nbf`;
//! [`crate::Auth`] checks `aud`, as for every token.

use std::time::{Duration, SystemTime};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::clock::Clock;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};

use super::jwks::{Keys, KeysError};
use super::signature::verified_claims;
use super::{AccessToken, DEFAULT_SKEW, TokenVerifier, has_begun, seconds};
use crate::error::AuthConfigError;
use crate::fetch;

/// Maximum size of a token.
const MAX_TOKEN: usize = 16 * 1024;

/// Verifies tokens that an issuer has signed. Its keys are discovered through its metadata, cached and renewed.
///
/// ```
/// use duplexer_auth::{Auth, Jwt};
///
/// let issuer = "https://login.example.com";
/// let verifier = Jwt::new(issuer)?.algorithms(&["ES256"])?.jwks_uri("https://keys.example.com/jwks.json")?;
/// let auth = Auth::verifier(issuer, verifier).audience("https://mcp.example.com/mcp").build()?;
/// assert!(Jwt::new(issuer)?.algorithms(&["HS256"]).is_err(), "shared secrets are not accepted");
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[derive(Debug)]
pub struct Jwt {
    keys: Keys,
    algorithms: Vec<Algorithm>,
    pub(crate) skew: Duration,
    clock: Clock,
    /// Accepted values of `typ`, in lower case and without `application/`.
    pub(crate) kinds: &'static [&'static str],
}

/// Accepted `typ` of access tokens. Many issuers write `JWT`, or omit it.
const ACCESS_TOKEN: &[&str] = &["at+jwt", "jwt", ""];

impl Jwt {
    /// Creates a verifier for an issuer that accepts all public-key algorithms.
    ///
    /// # Errors
    /// Fails if the issuer is invalid, or if the HTTP client cannot be set up.
    pub fn new(issuer: &str) -> Result<Self, AuthConfigError> {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let keys = Keys::new(issuer, fetch::fetcher()?)?;
        let algorithms = vec![ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512];
        Ok(Self { keys, algorithms, skew: DEFAULT_SKEW, clock: Clock::default(), kinds: ACCESS_TOKEN })
    }

    /// Restricts the algorithms, by their names in RFC 7518.
    ///
    /// # Errors
    /// Fails for an algorithm that is unknown or uses shared secrets.
    pub fn algorithms(mut self, names: &[&str]) -> Result<Self, AuthConfigError> {
        let wrong = |name: &&str| AuthConfigError::Algorithm((*name).to_owned());
        let read = |name: &&str| {
            let algorithm = name.parse::<Algorithm>().map_err(|_| wrong(name))?;
            let is_public = self.algorithms.contains(&algorithm);
            if is_public { Ok(algorithm) } else { Err(wrong(name)) }
        };
        self.algorithms = names.iter().map(read).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Sets the URL of the keys, which disables discovery.
    ///
    /// # Errors
    /// Fails if the URL is neither https nor on this machine.
    pub fn jwks_uri(mut self, url: &str) -> Result<Self, AuthConfigError> {
        self.keys = self.keys.at(url)?;
        Ok(self)
    }

    /// Sets the tolerated difference between the clocks of issuer and server. Default: one minute.
    #[must_use]
    pub fn skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// Sets the source of the current time. For tests.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// Returns the claims of a token, if signature, time and issuer are valid.
    pub(crate) async fn claims(&self, token: &str) -> Result<Option<Map<String, Value>>, KeysError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let Some(header) = jsonwebtoken::decode_header(token).ok().filter(|header| self.is_fine(header))
        else {
            return Ok(None);
        };
        let candidates = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let genuine = candidates.iter().find_map(|key| verified_claims(token, key, header.alg));
        Ok(genuine.filter(|claims| self.is_current(claims) && self.is_issuers(claims)))
    }

    fn is_fine(&self, header: &jsonwebtoken::Header) -> bool {
        let kind = header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        // No critical extension is supported.
        self.algorithms.contains(&header.alg) && self.kinds.contains(&kind) && header.crit.is_none()
    }

    fn is_issuers(&self, claims: &Map<String, Value>) -> bool {
        claims.get("iss").and_then(Value::as_str) == Some(self.keys.issuer())
    }

    fn is_current(&self, claims: &Map<String, Value>) -> bool {
        let now = self.clock.seconds();
        let ends = claims.get("exp").and_then(seconds);
        ends.is_some_and(|ends| now < ends.saturating_add(self.skew.as_secs()))
            && has_begun(claims, now, self.skew)
    }
}

impl TokenVerifier for Jwt {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(async move {
            let claims = self.claims(token).await?;
            Ok(claims.and_then(|claims| AccessToken::from_claims(&claims)).map(|mut token| {
                // Later expiry checks do not know the skew, so it is added here.
                token.principal.expires_at =
                    token.principal.expires_at.and_then(|end| end.checked_add(self.skew));
                token
            }))
        })
    }
}
