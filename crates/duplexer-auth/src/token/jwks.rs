//! The keys of an issuer: discovered through its metadata, cached, and fetched again when a token names an unknown key.
//!
//! Concurrent requests share one fetch, and keys that are due for a fetch are used while it runs. Tokens with unknown key
//! ids cause at most one fetch per 30 seconds, so that a client cannot use this server to flood the issuer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use url::Url;

use crate::error::AuthConfigError;
use crate::fetch::{FetchError, Fetcher};
use crate::urls;

/// Time after which cached keys are fetched again.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Time after which cached keys that could not be fetched again are not used any more.
const MAX_STALE: Duration = Duration::from_secs(24 * 3600);
/// Time for which the request that starts a fetch waits for it before it uses stale keys.
const STALE_WAIT: Duration = Duration::from_secs(1);
/// Minimum time between two fetches, successful or not.
const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(30);
const MAX_DOCUMENT: usize = 512 * 1024;
/// Maximum keys per issuer; more than any issuer has.
const MAX_KEYS: usize = 64;

/// The keys of one issuer.
#[derive(Debug)]
pub(crate) struct Keys {
    source: Source,
    cache: Arc<Cache>,
    /// The fetch, if one runs.
    tasks: Mutex<JoinSet<()>>,
}

/// Location of the keys.
#[derive(Clone, Debug)]
struct Source {
    issuer: String,
    /// Possible URLs of its metadata, in the order in which they are tried.
    metadata_urls: Vec<String>,
    /// Configured URL of its keys.
    jwks_uri: Option<String>,
    fetcher: Fetcher,
}

#[derive(Debug, Default)]
struct Cache {
    state: Mutex<State>,
    /// Held by the task that fetches the keys.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    keys: Vec<Key>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

/// Cached keys that can have signed a token.
enum Cached {
    Fresh(Vec<DecodingKey>),
    /// They are due for a fetch.
    Stale(Vec<DecodingKey>),
    Missing,
}

/// One public key and its permitted algorithms.
#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    verifies: DecodingKey,
}

/// Failure to get the keys of an issuer.
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
    #[error("the runtime stopped the fetch of the issuer's keys")]
    Stopped,
}

/// The used members of RFC 8414 and `OpenID` Connect Discovery metadata.
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
    pub(crate) fn new(issuer: &str, fetcher: Fetcher) -> Result<Self, AuthConfigError> {
        let metadata_urls = metadata_urls(&urls::issuer(issuer)?);
        let source = Source { issuer: issuer.to_owned(), metadata_urls, jwks_uri: None, fetcher };
        Ok(Self { source, cache: Arc::default(), tasks: Mutex::default() })
    }

    /// Sets the URL of the keys, which disables discovery.
    pub(crate) fn at(mut self, jwks_uri: &str) -> Result<Self, AuthConfigError> {
        urls::endpoint(jwks_uri)?;
        self.source.jwks_uri = Some(jwks_uri.to_owned());
        Ok(self)
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.source.issuer
    }

    /// Returns the keys that can have signed a token with this key id and algorithm.
    pub(crate) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, KeysError> {
        match self.cache.look_up(id, algorithm) {
            Cached::Fresh(found) => return Ok(found),
            Cached::Stale(found) => return Ok(self.renewed(id, algorithm).await.unwrap_or(found)),
            Cached::Missing => {}
        }
        // Concurrent requests wait here and use the keys that the first one fetches.
        let fetching = Arc::clone(&self.cache.fetching).lock_owned().await;
        if let Cached::Fresh(found) | Cached::Stale(found) = self.cache.look_up(id, algorithm) {
            return Ok(found);
        }
        match self.renew(fetching).await {
            Ok(()) => {}
            // The known keys are used while the issuer is unreachable; without any keys the verification fails.
            Err(error) if self.cache.is_usable() => {
                tracing::debug!(%error, issuer = self.issuer(), "an issuer's keys are not renewed");
            }
            Err(error) => return Err(error),
        }
        Ok(matching(&self.cache.lock().keys, id, algorithm))
    }

    /// Starts a fetch unless one runs, and returns its keys if they arrive soon.
    async fn renewed(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Vec<DecodingKey>> {
        let fetching = Arc::clone(&self.cache.fetching).try_lock_owned().ok()?;
        match tokio::time::timeout(STALE_WAIT, self.renew(fetching)).await {
            Ok(Ok(())) => Some(matching(&self.cache.lock().keys, id, algorithm)),
            Ok(Err(error)) => {
                tracing::debug!(%error, issuer = self.issuer(), "an issuer's keys are not renewed");
                None
            }
            Err(_) => None,
        }
    }

    async fn renew(&self, fetching: OwnedMutexGuard<()>) -> Result<(), KeysError> {
        let now = Instant::now();
        {
            let mut state = self.cache.lock();
            if state.tried.is_some_and(|tried| now - tried < MIN_FETCH_INTERVAL) {
                return Err(KeysError::TriedJustNow);
            }
            state.tried = Some(now);
        }
        self.start(fetching, now).await.unwrap_or(Err(KeysError::Stopped))
    }

    /// Fetches the keys in a task of its own: a client that disconnects does not end the fetch that others need.
    fn start(&self, fetching: OwnedMutexGuard<()>, now: Instant) -> oneshot::Receiver<Result<(), KeysError>> {
        let (source, cache) = (self.source.clone(), Arc::clone(&self.cache));
        let (done, outcome) = oneshot::channel();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // The earlier ones have ended: they held the lock.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let fetched = source.fetch().await.map(|keys| cache.store(keys, now));
            drop(fetching);
            // The request can have ended meanwhile.
            let _ = done.send(fetched);
        });
        outcome
    }
}

impl Cache {
    fn look_up(&self, id: Option<&str>, algorithm: Algorithm) -> Cached {
        let state = self.lock();
        let found = matching(&state.keys, id, algorithm);
        match state.age() {
            _ if found.is_empty() => Cached::Missing,
            Some(age) if age < MAX_AGE => Cached::Fresh(found),
            Some(age) if age < MAX_STALE => Cached::Stale(found),
            _ => Cached::Missing,
        }
    }

    fn store(&self, keys: Vec<Key>, now: Instant) {
        let mut state = self.lock();
        state.keys = keys;
        state.fetched = Some(now);
    }

    /// Returns whether there are keys that are not too old.
    fn is_usable(&self) -> bool {
        self.lock().age().is_some_and(|age| age < MAX_STALE)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the time since the keys were fetched.
    fn age(&self) -> Option<Duration> {
        self.fetched.map(|fetched| fetched.elapsed())
    }
}

impl Source {
    async fn fetch(&self) -> Result<Vec<Key>, KeysError> {
        let at = match &self.jwks_uri {
            Some(known) => known.clone(),
            None => self.discover().await?,
        };
        let set: KeySet = self.fetcher.json(&at, MAX_DOCUMENT).await.map_err(KeysError::Fetch)?;
        // Unsupported keys are ignored: an issuer can publish keys for other uses.
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

/// Returns the metadata URLs: RFC 8414 first, then both forms of `OpenID` Connect Discovery.
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

/// Without a key id every key of the algorithm matches.
fn matching(keys: &[Key], id: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
    let matches = |key: &&Key| {
        key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id || key.id.is_none())
    };
    keys.iter().filter(matches).map(|key| key.verifies.clone()).collect()
}

impl Key {
    /// Reads a signature key. The key type determines its algorithms, never the token.
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

/// Returns the algorithms of a key type. Shared secrets have none: they are not public keys.
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
