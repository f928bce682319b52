//! Proofs of possession (DPoP, RFC 9449): a signed statement about one HTTP request, by the key to which a token is bound.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_oauth_base::secret;
use http::{HeaderMap, Method};
use jsonwebtoken::{Algorithm, DecodingKey};
use ring::hmac;
use serde_json::{Map, Value};
use url::Url;

use crate::token::seconds;
use crate::token::signature::verified_claims;

/// Signature algorithms of proofs, for metadata and challenges.
pub(crate) const ALGORITHMS: [&str; 5] = ["ES256", "ES384", "EdDSA", "RS256", "PS256"];
/// Header of a proof.
pub(crate) const HEADER: &str = "dpop";
/// Header of a nonce for the next proof.
pub(crate) const NONCE: &str = "dpop-nonce";

/// Tolerated difference between the time of a proof and ours, in seconds.
const WINDOW: u64 = 60;
/// Maximum proofs that are remembered. They are forgotten when their time is over.
const MAX_SEEN: usize = 100_000;
const MAX_PROOF: usize = 8 * 1024;
/// Time for which a nonce is given out, in seconds. It is accepted for twice that time.
const NONCE_TIME: u64 = 300;

/// Why a proof is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProofError {
    /// There is no proof.
    Missing,
    Invalid(&'static str),
    /// It lacks a current nonce.
    Nonce,
    /// Too many proofs are remembered at the moment.
    Busy,
}

/// Checks proofs and remembers them, so that none is accepted twice.
pub(crate) struct Proofs {
    seen: Mutex<HashMap<String, u64>>,
    nonces: Option<hmac::Key>,
}

/// The request that a proof must be about.
pub(crate) struct Proven<'a> {
    pub(crate) method: &'a Method,
    /// The URL under which clients know the endpoint, without a query.
    pub(crate) url: &'a str,
    pub(crate) token: Option<&'a str>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

impl Proofs {
    pub(crate) fn new() -> Self {
        Self { seen: Mutex::default(), nonces: None }
    }

    /// Demands a nonce in every proof. The key is of this process: each replica gives out its own.
    pub(crate) fn with_nonces() -> Self {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new());
        Self { seen: Mutex::default(), nonces: key.ok() }
    }

    /// Returns the nonce for the next proof, if nonces are demanded.
    pub(crate) fn nonce(&self, now: u64) -> Option<String> {
        self.nonces.as_ref().map(|key| nonce_of(key, now / NONCE_TIME))
    }

    /// Returns the thumbprint of the key that has signed the proof of a request.
    pub(crate) fn check(&self, headers: &HeaderMap, about: &Proven<'_>) -> Result<String, ProofError> {
        let mut values = headers.get_all(HEADER).iter();
        let value = values.next().ok_or(ProofError::Missing)?;
        if values.next().is_some() {
            return Err(ProofError::Invalid("there is more than one proof"));
        }
        let proof = value.to_str().ok().filter(|proof| proof.len() <= MAX_PROOF);
        let proof = proof.ok_or(ProofError::Invalid("the proof cannot be read"))?;
        let (thumbprint, claims) =
            signed(proof).ok_or(ProofError::Invalid("the proof is not signed by its key"))?;
        self.check_claims(&claims, about)?;
        let id = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.ok_or(ProofError::Invalid("the proof has no id"))?;
        // A proof can be from the future by the window, and is valid for the window after that.
        let until = about.now.saturating_add(2 * WINDOW);
        self.spend(secret::digest(&format!("{thumbprint} {id}")), until, about.now)?;
        Ok(thumbprint)
    }

    fn check_claims(&self, claims: &Map<String, Value>, about: &Proven<'_>) -> Result<(), ProofError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("htm") != Some(about.method.as_str()) {
            return Err(ProofError::Invalid("the proof is for another method"));
        }
        if !text("htu").is_some_and(|url| is_same_url(url, about.url)) {
            return Err(ProofError::Invalid("the proof is for another URL"));
        }
        let issued = claims.get("iat").and_then(seconds).unwrap_or_default();
        if issued.abs_diff(about.now) > WINDOW {
            return Err(ProofError::Invalid("the proof is too old, or the clocks differ"));
        }
        if about.token.is_some_and(|token| text("ath") != Some(&secret::digest(token))) {
            return Err(ProofError::Invalid("the proof is for another token"));
        }
        let Some(key) = &self.nonces else { return Ok(()) };
        let slot = about.now / NONCE_TIME;
        let is_current =
            |nonce: &str| [slot, slot.saturating_sub(1)].iter().any(|slot| nonce_of(key, *slot) == nonce);
        if text("nonce").is_some_and(is_current) { Ok(()) } else { Err(ProofError::Nonce) }
    }

    /// Remembers the id of a proof or assertion until it is no longer valid. Fails if it is known.
    pub(crate) fn spend(&self, id: String, until: u64, now: u64) -> Result<(), ProofError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_SEEN {
            seen.retain(|_, until| *until >= now);
        }
        if seen.len() >= MAX_SEEN {
            return Err(ProofError::Busy);
        }
        match seen.insert(id, until) {
            Some(until) if until >= now => Err(ProofError::Invalid("the proof has been used before")),
            _ => Ok(()),
        }
    }
}

fn nonce_of(key: &hmac::Key, slot: u64) -> String {
    URL_SAFE_NO_PAD.encode(hmac::sign(key, &slot.to_be_bytes()))
}

/// Verifies a proof with the key that it contains. Returns the thumbprint of the key, and the claims.
fn signed(proof: &str) -> Option<(String, Map<String, Value>)> {
    let header = URL_SAFE_NO_PAD.decode(proof.split('.').next()?).ok()?;
    let header: Value = serde_json::from_slice(&header).ok()?;
    let name = header.get("alg")?.as_str().filter(|name| ALGORITHMS.contains(name))?;
    if header.get("typ")?.as_str()? != "dpop+jwt" || header.get("crit").is_some() {
        return None;
    }
    let jwk = header.get("jwk")?;
    let thumbprint = thumbprint(jwk)?;
    let key = DecodingKey::from_jwk(&serde_json::from_value(jwk.clone()).ok()?).ok()?;
    Some((thumbprint, verified_claims(proof, &key, name.parse::<Algorithm>().ok()?)?))
}

/// Returns the thumbprint of a public key (RFC 7638). A key with private members is refused.
fn thumbprint(jwk: &Value) -> Option<String> {
    let names: &[&str] = match jwk.get("kty")?.as_str()? {
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        "RSA" => &["e", "kty", "n"],
        _ => return None,
    };
    if jwk.get("d").is_some() {
        return None;
    }
    // Members of a `serde_json` object are sorted.
    let required: Option<Map<String, Value>> = names
        .iter()
        .map(|name| Some(((*name).to_owned(), jwk.get(*name).filter(|part| part.is_string())?.clone())))
        .collect();
    Some(secret::digest(&Value::Object(required?).to_string()))
}

fn is_same_url(one: &str, other: &str) -> bool {
    let parsed = |text: &str| {
        let mut url = Url::parse(text).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    parsed(one).is_some_and(|one| parsed(other) == Some(one))
}
