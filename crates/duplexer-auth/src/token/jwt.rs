//! Tokens that are signed by their issuer (RFC 9068 and what is near to it).
//!
//! The signature is the library's business. Which algorithms count, which key may be meant and what the claims must
//! say is decided here, always all of it: `iss`, `exp`, `nbf`, and (by [`crate::Auth`], as for every token) `aud`.

use std::time::{Duration, SystemTime};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};

use super::jwks::{Keys, KeysError};
use super::{AccessToken, TokenVerifier, seconds};
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::fetch::Fetcher;

/// How far the clocks of issuer and server may be apart, unless told otherwise.
const DEFAULT_SKEW: Duration = Duration::from_secs(60);
/// The largest token that is looked at.
const MAX_TOKEN: usize = 16 * 1024;

/// Verifies what an issuer has signed. Its keys are found through its metadata, kept, and renewed.
#[derive(Debug)]
pub struct Jwt {
    keys: Keys,
    algorithms: Vec<Algorithm>,
    pub(crate) skew: Duration,
    clock: Clock,
    /// What `typ` must be, without `application/` and in small letters.
    pub(crate) kinds: &'static [&'static str],
}

/// Kinds of access tokens. Many issuers say `JWT`, or nothing.
const ACCESS_TOKEN: &[&str] = &["at+jwt", "jwt", ""];

impl Jwt {
    /// The tokens of an issuer, signed with any algorithm of public keys.
    pub fn new(issuer: &str) -> Result<Self, ConfigError> {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let keys = Keys::new(issuer, Fetcher::new()?)?;
        // With two backends compiled in, the library cannot choose; whoever installs one first has chosen.
        let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
        let algorithms = vec![ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512];
        Ok(Self { keys, algorithms, skew: DEFAULT_SKEW, clock: Clock::default(), kinds: ACCESS_TOKEN })
    }

    /// Allows these algorithms only, by their names in RFC 7518.
    pub fn algorithms(mut self, names: &[&str]) -> Result<Self, ConfigError> {
        let wrong = |name: &&str| ConfigError::Algorithm((*name).to_owned());
        let read = |name: &&str| {
            let algorithm = name.parse::<Algorithm>().map_err(|_| wrong(name))?;
            let is_public = self.algorithms.contains(&algorithm);
            if is_public { Ok(algorithm) } else { Err(wrong(name)) }
        };
        self.algorithms = names.iter().map(read).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The issuer's keys are there, and its metadata need not be asked for.
    pub fn jwks_uri(mut self, url: &str) -> Result<Self, ConfigError> {
        self.keys = self.keys.at(url)?;
        Ok(self)
    }

    /// How far the clocks of issuer and server may be apart. A minute if not given.
    #[must_use]
    pub fn skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// Where the time comes from. For tests.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// The claims of a token, if it is genuine, in time, and its issuer's.
    pub(crate) async fn claims(&self, token: &str) -> Result<Option<Map<String, Value>>, KeysError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let Some(header) = jsonwebtoken::decode_header(token).ok().filter(|header| self.is_fine(header))
        else {
            return Ok(None);
        };
        let candidates = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let validation = unchecked(header.alg);
        let genuine = candidates.iter().find_map(|key| {
            jsonwebtoken::decode::<Map<String, Value>>(token, key, &validation).ok().map(|token| token.claims)
        });
        Ok(genuine.filter(|claims| self.is_current(claims) && self.is_issuers(claims)))
    }

    fn is_fine(&self, header: &jsonwebtoken::Header) -> bool {
        let kind = header.typ.as_deref().unwrap_or_default().to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        // What is critical would have to be understood, and nothing is.
        self.algorithms.contains(&header.alg) && self.kinds.contains(&kind) && header.crit.is_none()
    }

    fn is_issuers(&self, claims: &Map<String, Value>) -> bool {
        claims.get("iss").and_then(Value::as_str) == Some(self.keys.issuer())
    }

    fn is_current(&self, claims: &Map<String, Value>) -> bool {
        let (now, skew) = (self.clock.seconds(), self.skew.as_secs());
        let ends = claims.get("exp").and_then(seconds);
        let begins = match claims.get("nbf") {
            None => Some(0),
            Some(time) => seconds(time),
        };
        ends.is_some_and(|ends| now < ends.saturating_add(skew))
            && begins.is_some_and(|begins| begins <= now.saturating_add(skew))
    }
}

/// The library looks at the signature only.
fn unchecked(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}

impl TokenVerifier for Jwt {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(async move {
            let claims = self.claims(token).await?;
            Ok(claims.map(|claims| {
                let mut token = AccessToken::from_claims(&claims);
                // The skew counts here already; whoever looks later knows nothing of it.
                token.principal.expires_at =
                    token.principal.expires_at.and_then(|end| end.checked_add(self.skew));
                token
            }))
        })
    }
}
