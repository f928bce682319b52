//! The keys of an issuer: found through its metadata, kept, and fetched again when a token names an unknown one.
//!
//! However many requests wait, one fetch is under way. A token with an invented key id causes at most one fetch per
//! half minute, so that nobody can turn this server against its issuer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use crate::error::ConfigError;
use crate::fetch::{FetchError, Fetcher};
use crate::urls;

/// How long keys are used before they are looked at again.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// The shortest time between two fetches, whatever tokens say and however the last one went.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(30);
const MAX_DOCUMENT: usize = 512 * 1024;
/// More keys than any issuer has.
const MAX_KEYS: usize = 64;

/// The keys of one issuer.
#[derive(Debug)]
pub(crate) struct Keys {
    issuer: String,
    /// Where its metadata may be, in the order in which it is asked for.
    metadata_urls: Vec<String>,
    /// Where its keys are, if that is known from the configuration.
    jwks_uri: Option<String>,
    fetcher: Fetcher,
    state: Mutex<State>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    keys: Vec<Key>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

/// One public key, and what it may be used with.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    verifies: DecodingKey,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("the issuer's metadata or keys could not be fetched")]
    Fetch(#[source] FetchError),
    #[error("the issuer's metadata names another issuer")]
    ForeignIssuer,
    #[error("the issuer's metadata has no usable address of its keys")]
    NoKeys,
    #[error("the issuer could not be asked a moment ago")]
    TriedJustNow,
}

/// What is needed of RFC 8414 and `OpenID` Connect Discovery.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: Option<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    pub(crate) fn new(issuer: &str, fetcher: Fetcher) -> Result<Self, ConfigError> {
        let metadata_urls = metadata_urls(&urls::issuer(issuer)?);
        Ok(Self {
            issuer: issuer.to_owned(),
            metadata_urls,
            jwks_uri: None,
            fetcher,
            state: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// The same keys, at an address that need not be discovered.
    pub(crate) fn at(mut self, jwks_uri: &str) -> Result<Self, ConfigError> {
        urls::endpoint(jwks_uri)?;
        self.jwks_uri = Some(jwks_uri.to_owned());
        Ok(self)
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The keys that may have signed a token which names this key and algorithm.
    pub(crate) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, KeysError> {
        if let Some(found) = self.known(id, algorithm) {
            return Ok(found);
        }
        // Whoever comes second waits here and finds what the first has fetched.
        let _fetching = self.fetching.lock().await;
        if let Some(found) = self.known(id, algorithm) {
            return Ok(found);
        }
        match self.renew().await {
            Ok(()) => {}
            // Old keys are better than none while the issuer is away; without any, nothing can be said.
            Err(error) if self.lock().fetched.is_some() => {
                tracing::debug!(%error, issuer = self.issuer, "an issuer's keys are not renewed");
            }
            Err(error) => return Err(error),
        }
        Ok(matching(&self.lock().keys, id, algorithm))
    }

    /// Keys that are there and fresh.
    fn known(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Vec<DecodingKey>> {
        let state = self.lock();
        let is_fresh = state.fetched.is_some_and(|fetched| fetched.elapsed() < MAX_AGE);
        let found = matching(&state.keys, id, algorithm);
        (is_fresh && !found.is_empty()).then_some(found)
    }

    async fn renew(&self) -> Result<(), KeysError> {
        let now = Instant::now();
        {
            let mut state = self.lock();
            if state.tried.is_some_and(|tried| now - tried < MIN_FETCH_INTERVAL) {
                return Err(KeysError::TriedJustNow);
            }
            state.tried = Some(now);
        }
        let keys = self.fetch().await?;
        let mut state = self.lock();
        state.keys = keys;
        state.fetched = Some(now);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) -> Result<Vec<Key>, KeysError> {
        let at = match &self.jwks_uri {
            Some(known) => known.clone(),
            None => self.discover().await?,
        };
        let set: KeySet = self.fetcher.json(&at, MAX_DOCUMENT).await.map_err(KeysError::Fetch)?;
        // What is not understood is passed over: an issuer may have keys for others.
        Ok(set.keys.into_iter().take(MAX_KEYS).filter_map(Key::read).collect())
    }

    async fn discover(&self) -> Result<String, KeysError> {
        let mut last = KeysError::NoKeys;
        for url in &self.metadata_urls {
            match self.fetcher.json::<Metadata>(url, MAX_DOCUMENT).await {
                Ok(metadata) if metadata.issuer != self.issuer => return Err(KeysError::ForeignIssuer),
                Ok(metadata) => {
                    let uri = metadata.jwks_uri.filter(|uri| urls::endpoint(uri).is_ok());
                    return uri.ok_or(KeysError::NoKeys);
                }
                Err(error) => last = KeysError::Fetch(error),
            }
        }
        Err(last)
    }
}

/// RFC 8414 first, then `OpenID` Connect in both of its spellings.
fn metadata_urls(issuer: &Url) -> Vec<String> {
    let origin = urls::origin(issuer);
    let path = issuer.path().strip_suffix('/').unwrap_or(issuer.path());
    let mut urls = vec![
        format!("{origin}{}", urls::well_known("oauth-authorization-server", issuer)),
        format!("{origin}{}", urls::well_known("openid-configuration", issuer)),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

/// Without a key id every key of the right kind may be the one.
fn matching(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
    let matches = |key: &&Key| {
        key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id || key.id.is_none())
    };
    keys.iter().filter(matches).map(|key| key.verifies.clone()).collect()
}

impl Key {
    /// A key for signatures with its algorithms; a key's kind decides them, never the token.
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|use_| *use_ != PublicKeyUse::Signature) {
            return None;
        }
        let possible = possible(&jwk.algorithm);
        let algorithms = match jwk.common.key_algorithm {
            None => possible,
            Some(named) => possible.into_iter().filter(|algorithm| is_named(named, *algorithm)).collect(),
        };
        if algorithms.is_empty() {
            return None;
        }
        let verifies = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, algorithms, verifies })
    }
}

/// Shared secrets are not public keys: none of their algorithms is possible.
fn possible(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
    match parameters {
        AlgorithmParameters::RSA(_) => vec![RS256, RS384, RS512, PS256, PS384, PS512],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![ES256],
            EllipticCurve::P384 => vec![ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => vec![EdDSA],
        _ => Vec::new(),
    }
}

fn is_named(named: KeyAlgorithm, algorithm: Algorithm) -> bool {
    named.to_string() == format!("{algorithm:?}")
}
