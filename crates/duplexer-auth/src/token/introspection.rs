//! Token introspection (RFC 7662): the issuer verifies each token. Responses can be cached.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;
use duplexer_oauth_base::clock::Clock;
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::{AccessToken, DEFAULT_SKEW, TokenVerifier, has_begun};
use crate::error::AuthConfigError;
use crate::fetch::{self, FetchError, Fetcher};
use crate::secret;
use crate::urls;

const MAX_ANSWER: usize = 64 * 1024;
/// Maximum cached responses.
const MAX_CACHED: usize = 4096;

/// Verifies tokens at the introspection endpoint of their issuer.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_auth::{Auth, Introspection, Secret};
///
/// let endpoint = "https://login.example.com/introspect";
/// let introspection = Introspection::new(endpoint, "notes", Secret::new("from the environment"))?.keep(Duration::from_secs(30));
/// let auth = Auth::introspection("https://login.example.com", introspection)
///     .audience("https://mcp.example.com/mcp")
///     .build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[derive(Debug)]
pub struct Introspection {
    endpoint: Url,
    client_id: String,
    secret: Secret,
    fetcher: Fetcher,
    /// Issuer that responses name, where they name one.
    issuer: Option<String>,
    skew: Duration,
    clock: Clock,
    /// Lifetime of a cached response. Zero disables the cache.
    keep: Duration,
    /// By the digest of the token.
    cached: Mutex<HashMap<String, (Instant, AccessToken)>>,
}

impl Introspection {
    /// Creates a verifier for an endpoint and the credentials of this server there.
    ///
    /// # Errors
    ///
    /// Fails if the endpoint is neither https nor on this machine.
    pub fn new(endpoint: &str, client_id: &str, secret: Secret) -> Result<Self, AuthConfigError> {
        let endpoint = urls::endpoint(endpoint)?;
        Ok(Self {
            endpoint,
            client_id: client_id.to_owned(),
            secret,
            fetcher: fetch::fetcher()?,
            issuer: None,
            skew: DEFAULT_SKEW,
            clock: Clock::default(),
            keep: Duration::ZERO,
            cached: Mutex::default(),
        })
    }

    /// Caches positive responses for this time, during which a revoked token is still accepted. Default: no cache.
    #[must_use]
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    /// Sets the tolerated difference between the clocks of issuer and server, for the beginning of a token. Default: one
    /// minute.
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

    /// Sets the issuer to which `iss` is compared.
    pub(crate) fn issued_by(mut self, issuer: &str) -> Self {
        self.issuer = Some(issuer.to_owned());
        self
    }

    async fn introspect(&self, token: &str) -> Result<Option<AccessToken>, FetchError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let request = self
            .fetcher
            .post(&self.endpoint)?
            .header("authorization", self.credentials())
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        let answer = fetch::read(request, MAX_ANSWER).await?;
        let claims: Map<String, Value> = serde_json::from_slice(&answer).map_err(FetchError::Malformed)?;
        Ok(if self.is_valid(&claims) { AccessToken::from_claims(&claims) } else { None })
    }

    /// Checks a response. Issuer and beginning are compared where they are given: RFC 7662 requires `active` only.
    fn is_valid(&self, claims: &Map<String, Value>) -> bool {
        let is_active = claims.get("active").and_then(Value::as_bool) == Some(true);
        let is_issuers = match (claims.get("iss"), &self.issuer) {
            (Some(named), Some(issuer)) => named.as_str() == Some(issuer),
            _ => true,
        };
        is_active && is_issuers && has_begun(claims, self.clock.seconds(), self.skew)
    }

    /// Builds `Basic` credentials. Id and secret are form-encoded before they are joined (RFC 6749).
    fn credentials(&self) -> http::HeaderValue {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(self.secret.reveal()));
        let text = format!("Basic {}", STANDARD.encode(pair));
        let mut value = http::HeaderValue::try_from(text).unwrap_or(http::HeaderValue::from_static("Basic"));
        value.set_sensitive(true);
        value
    }

    fn cached(&self, digest: &str) -> Option<AccessToken> {
        let cached = self.lock();
        let (asked, answer) = cached.get(digest)?;
        (asked.elapsed() < self.keep).then(|| answer.clone())
    }

    fn cache(&self, digest: String, answer: AccessToken) {
        let mut cached = self.lock();
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, (asked, _)| asked.elapsed() < self.keep);
        }
        if cached.len() < MAX_CACHED {
            cached.insert(digest, (Instant::now(), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, AccessToken)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenVerifier for Introspection {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(async move {
            if self.keep.is_zero() {
                return Ok(self.introspect(token).await?);
            }
            let digest = secret::digest(token);
            if let Some(known) = self.cached(&digest) {
                return Ok(Some(known));
            }
            let answer = self.introspect(token).await?;
            // Invalid tokens are not cached: their number is unbounded.
            if let Some(token) = &answer {
                self.cache(digest, token.clone());
            }
            Ok(answer)
        })
    }
}
