//! Tokens whose issuer is asked about each of them (RFC 7662). Answers may be kept for a moment.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use serde_json::{Map, Value};
use tokio::time::Instant;
use url::form_urlencoded;

use super::{AccessToken, TokenVerifier};
use crate::address;
use crate::error::ConfigError;
use crate::fetch::{self, FetchError, Fetcher};
use crate::secret::{self, Secret};

const MAX_ANSWER: usize = 64 * 1024;
/// Answers that are kept, at most.
const MAX_KEPT: usize = 4096;

/// Asks an issuer about its tokens.
#[derive(Debug)]
pub struct Introspection {
    endpoint: String,
    client_id: String,
    secret: Secret,
    fetcher: Fetcher,
    /// How long an answer counts; nothing is kept if it does not.
    keep: Duration,
    /// By the digest of the token.
    kept: Mutex<HashMap<String, (Instant, AccessToken)>>,
}

impl Introspection {
    /// Asks at this endpoint, and shows these credentials there.
    pub fn new(endpoint: &str, client_id: &str, secret: Secret) -> Result<Self, ConfigError> {
        address::endpoint(endpoint)?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            client_id: client_id.to_owned(),
            secret,
            fetcher: Fetcher::new()?,
            keep: Duration::ZERO,
            kept: Mutex::default(),
        })
    }

    /// Believes an answer for so long. A token that is revoked meanwhile counts until then; if not given, every
    /// request asks.
    #[must_use]
    pub fn keep(mut self, time: Duration) -> Self {
        self.keep = time;
        self
    }

    async fn ask(&self, token: &str) -> Result<Option<AccessToken>, FetchError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let request = self
            .fetcher
            .post(&self.endpoint)
            .header("authorization", self.credentials())
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        let answer = fetch::read(request, MAX_ANSWER).await?;
        let claims: Map<String, Value> = serde_json::from_slice(&answer).map_err(FetchError::Malformed)?;
        let active = claims.get("active").and_then(Value::as_bool) == Some(true);
        Ok(active.then(|| AccessToken::from_claims(&claims)))
    }

    /// RFC 6749: id and secret are form-encoded before they are put together.
    fn credentials(&self) -> http::HeaderValue {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(self.secret.reveal()));
        let text = format!("Basic {}", STANDARD.encode(pair));
        let mut value = http::HeaderValue::try_from(text).unwrap_or(http::HeaderValue::from_static("Basic"));
        value.set_sensitive(true);
        value
    }

    fn known(&self, digest: &str) -> Option<AccessToken> {
        let kept = self.lock();
        let (asked, answer) = kept.get(digest)?;
        (asked.elapsed() < self.keep).then(|| answer.clone())
    }

    fn remember(&self, digest: String, answer: AccessToken) {
        let mut kept = self.lock();
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, (asked, _)| asked.elapsed() < self.keep);
        }
        if kept.len() < MAX_KEPT {
            kept.insert(digest, (Instant::now(), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, AccessToken)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenVerifier for Introspection {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(async move {
            if self.keep.is_zero() {
                return Ok(self.ask(token).await?);
            }
            let digest = secret::digest(token);
            if let Some(known) = self.known(&digest) {
                return Ok(Some(known));
            }
            let answer = self.ask(token).await?;
            // What is not a token is not kept: there is no end of it.
            if let Some(token) = &answer {
                self.remember(digest, token.clone());
            }
            Ok(answer)
        })
    }
}
