//! Encryption of states: AES-256-GCM under a ring of derived keys, or a custom codec.

use std::fmt;
use std::sync::OnceLock;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::RequestStateError;
use duplexer_core::error::BoxError;

const PREFIX: &str = "v1.";
const KEY_INFO: &[u8] = b"mcp/request-state/v1/aes-256-gcm";
const KEY_ID_LABEL: &[u8] = b"mcp/request-state/v1/kid:";
const SHORTEST_SECRET: usize = 32;
const KEY_ID: usize = 4;
const NONCE: usize = 12;

/// Encrypts and authenticates states on their way through the client.
///
/// `open` must refuse everything that `seal` has not made, because the claims inside are trusted. Both are called while
/// a request is handled and must not block; a codec with a remote key fetches the key beforehand.
pub trait RequestStateCodec: Send + Sync + 'static {
    /// Seals `plain` into a text that only [`RequestStateCodec::open`] can read.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be sealed. The request then fails.
    fn seal(&self, plain: &[u8]) -> Result<String, BoxError>;

    /// Opens a sealed text.
    ///
    /// # Errors
    ///
    /// Fails if the text was not sealed with this codec. The reason is only logged.
    fn open(&self, sealed: &str) -> Result<Vec<u8>, BoxError>;
}

/// A ring of keys: the first one seals, all of them open.
///
/// To rotate, put the new secret in front of the old one, and remove the old one when its last states have expired. Several
/// nodes that are updated one by one first get the new secret behind the old one, so that all of them can open what it seals.
/// Each AES-256 key is derived from its secret. Every seal uses a random nonce, so one key is safe for about 2^32
/// states.
///
/// ```
/// use duplexer::server::request_state::{KeyRing, RequestStateCodec};
///
/// let (old, new) = ([6_u8; 32], [7_u8; 32]);
/// let sealed = KeyRing::new([old])?.seal(b"state")?;
/// let rotated = KeyRing::new([new, old])?;
/// assert_eq!(rotated.open(&sealed)?, b"state");
/// # Ok::<_, duplexer::BoxError>(())
/// ```
pub struct KeyRing {
    keys: Vec<Key>,
}

struct Key {
    id: [u8; KEY_ID],
    cipher: Aes256Gcm,
}

impl KeyRing {
    /// Creates a ring of these secrets, each at least 32 random bytes.
    ///
    /// # Errors
    ///
    /// Fails without secrets, and if a secret is too short or repeated.
    pub fn new<T: AsRef<[u8]>>(secrets: impl IntoIterator<Item = T>) -> Result<Self, RequestStateError> {
        let mut derived: Vec<Zeroizing<[u8; 32]>> = Vec::new();
        for secret in secrets {
            let key = derive(secret.as_ref())?;
            if derived.iter().any(|earlier| bool::from(earlier.ct_eq(&*key))) {
                return Err(RequestStateError::RepeatedSecret);
            }
            derived.push(key);
        }
        if derived.is_empty() {
            return Err(RequestStateError::NoSecret);
        }
        Ok(Self { keys: derived.iter().map(|key| Key::new(key)).collect() })
    }

    /// Creates a ring with one random key. Without randomness the ring is empty, and nothing can be sealed.
    fn random() -> Self {
        let mut secret = Zeroizing::new([0; SHORTEST_SECRET]);
        let ring = match getrandom::fill(&mut *secret) {
            Ok(()) => Self::new([&*secret]).ok(),
            Err(error) => {
                tracing::error!(%error, "no randomness for a request state key: no state can be sealed");
                None
            }
        };
        ring.unwrap_or(Self { keys: Vec::new() })
    }
}

/// A random key of this process, made when it is first needed: most servers never seal a state.
#[derive(Default)]
pub(super) struct EphemeralKey(OnceLock<KeyRing>);

impl EphemeralKey {
    fn ring(&self) -> &KeyRing {
        self.0.get_or_init(KeyRing::random)
    }
}

impl RequestStateCodec for EphemeralKey {
    fn seal(&self, plain: &[u8]) -> Result<String, BoxError> {
        self.ring().seal(plain)
    }

    fn open(&self, sealed: &str) -> Result<Vec<u8>, BoxError> {
        self.ring().open(sealed)
    }
}

fn derive(secret: &[u8]) -> Result<Zeroizing<[u8; 32]>, RequestStateError> {
    if secret.len() < SHORTEST_SECRET {
        return Err(RequestStateError::ShortSecret { got: secret.len() });
    }
    let mut key = Zeroizing::new([0; 32]);
    let derivation = Hkdf::<Sha256>::new(None, secret).expand(KEY_INFO, &mut *key);
    derivation.map_err(|_| RequestStateError::Derivation)?;
    Ok(key)
}

impl Key {
    fn new(key: &[u8; 32]) -> Self {
        let digest: [u8; 32] = Sha256::new().chain_update(KEY_ID_LABEL).chain_update(key).finalize().into();
        let [a, b, c, d, ..] = digest;
        Self { id: [a, b, c, d], cipher: Aes256Gcm::new(key.into()) }
    }

    /// Returns the associated data. It authenticates the id of the key, so that no state can be moved to another key.
    fn associated(&self) -> Vec<u8> {
        [PREFIX.as_bytes(), &self.id].concat()
    }
}

impl RequestStateCodec for KeyRing {
    fn seal(&self, plain: &[u8]) -> Result<String, BoxError> {
        let key = self.keys.first().ok_or("there is no key to seal with")?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        let payload = Payload { msg: plain, aad: &key.associated() };
        let ciphertext = key.cipher.encrypt(&nonce.into(), payload).map_err(|_| "encryption failed")?;
        let token = [&key.id[..], &nonce, &ciphertext].concat();
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(token)))
    }

    fn open(&self, sealed: &str) -> Result<Vec<u8>, BoxError> {
        let text = sealed.strip_prefix(PREFIX).ok_or("it is of an unknown version")?;
        let token = URL_SAFE_NO_PAD.decode(text).map_err(|_| "it is not canonical base64url")?;
        let (id, rest) = token.split_first_chunk::<KEY_ID>().ok_or("it is too short")?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE>().ok_or("it is too short")?;
        let mut cause = "it was sealed with a key that is not in the ring";
        // Ids are short: two keys can share one, and then both are tried.
        for key in self.keys.iter().filter(|key| key.id == *id) {
            let payload = Payload { msg: ciphertext, aad: &key.associated() };
            match key.cipher.decrypt(nonce.into(), payload) {
                Ok(plain) => return Ok(plain),
                Err(_) => cause = "it was changed after it was sealed",
            }
        }
        Err(cause.into())
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.keys.len()).finish()
    }
}
