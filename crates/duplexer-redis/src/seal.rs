//! Encryption of what is stored: AES-256-GCM under a ring of secrets. Each session, task and inbox has a key of its own, and
//! what is sealed is bound to its place, so that it cannot be moved to another one.
//!
//! The nonce is made of the content: the same content at the same place is sealed into the same bytes, so that the store
//! recognises a repeated operation.

use std::fmt;

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes256Gcm, KeyInit};
use duplexer_core::error::StoreError;
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::ConnectError;
use crate::value::unreadable;

const VERSION: u8 = 1;
const INFO: &[u8] = b"duplexer/store/v1/";
const SHORTEST_SECRET: usize = 32;
const KEY_ID: usize = 4;
const NONCE: usize = 12;
const HEAD: usize = 1 + KEY_ID + NONCE;

/// A ring of secrets: the first one seals, all of them open.
pub(crate) struct Seal {
    secrets: Vec<Secret>,
}

struct Secret {
    id: [u8; KEY_ID],
    bytes: Zeroizing<Vec<u8>>,
}

/// The keys of one scope.
struct ScopeKeys {
    cipher: Aes256Gcm,
    nonce: Zeroizing<[u8; 32]>,
}

impl Seal {
    /// Creates a ring of secrets, each at least 32 random bytes.
    pub(crate) fn new(secrets: Vec<Zeroizing<Vec<u8>>>) -> Result<Self, ConnectError> {
        if secrets.is_empty() {
            return Err(ConnectError::Seal("it has no secret"));
        }
        let mut ring: Vec<Secret> = Vec::with_capacity(secrets.len());
        for bytes in secrets {
            if bytes.len() < SHORTEST_SECRET {
                return Err(ConnectError::Seal("a secret has less than 32 bytes"));
            }
            let id = expand(&bytes, b"id", "")?;
            let id = [id[0], id[1], id[2], id[3]];
            if ring.iter().any(|secret| secret.id == id) {
                return Err(ConnectError::Seal("it has a secret twice"));
            }
            ring.push(Secret { id, bytes });
        }
        Ok(Self { secrets: ring })
    }

    /// Seals content for its place: a scope, which has a key of its own, and a context within it.
    pub(crate) fn seal(&self, scope: &str, context: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let failed = |reason: &'static str| StoreError::Failed(reason.into());
        let secret = self.secrets.first().ok_or_else(|| failed("there is no secret to seal with"))?;
        let keys = secret.keys(scope)?;
        let hashed = Sha256::new()
            .chain_update(*keys.nonce)
            .chain_update((context.len() as u64).to_be_bytes())
            .chain_update(context)
            .chain_update(plain);
        let digest: [u8; 32] = hashed.finalize().into();
        let mut sealed = Vec::with_capacity(HEAD + plain.len() + 16);
        sealed.push(VERSION);
        sealed.extend(secret.id);
        sealed.extend(&digest[..NONCE]);
        let nonce: [u8; NONCE] =
            sealed[HEAD - NONCE..].try_into().map_err(|_| failed("a nonce is too short"))?;
        let payload = Payload { msg: plain, aad: context.as_bytes() };
        sealed.extend(keys.cipher.encrypt(&nonce.into(), payload).map_err(|_| failed("encryption failed"))?);
        Ok(sealed)
    }

    /// Opens what was sealed for this place.
    pub(crate) fn open(&self, scope: &str, context: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        let (head, ciphertext) =
            sealed.split_first_chunk::<HEAD>().ok_or_else(|| unreadable("what is stored is not sealed"))?;
        let [VERSION, id @ .., _, _, _, _, _, _, _, _, _, _, _, _] = head else {
            return Err(unreadable("what is stored is not sealed, or by a later version"));
        };
        let secret = self.secrets.iter().find(|secret| secret.id == *id);
        let secret =
            secret.ok_or_else(|| unreadable("it was sealed with a secret that is not in the ring"))?;
        let nonce: [u8; NONCE] =
            head[HEAD - NONCE..].try_into().map_err(|_| unreadable("a nonce is too short"))?;
        let payload = Payload { msg: ciphertext, aad: context.as_bytes() };
        let opened = secret.keys(scope)?.cipher.decrypt(&nonce.into(), payload);
        opened.map_err(|_| unreadable("it was changed or moved after it was sealed"))
    }
}

impl Secret {
    fn keys(&self, scope: &str) -> Result<ScopeKeys, StoreError> {
        let expanded =
            |label| expand(&self.bytes, label, scope).map_err(|error| StoreError::Failed(error.into()));
        let key = expanded(b"key")?;
        Ok(ScopeKeys { cipher: Aes256Gcm::new((&*key).into()), nonce: expanded(b"mac")? })
    }
}

/// Derives bytes of a secret for a purpose.
fn expand(secret: &[u8], label: &[u8], scope: &str) -> Result<Zeroizing<[u8; 32]>, ConnectError> {
    let mut bytes = Zeroizing::new([0; 32]);
    let info = [INFO, label, b"/", scope.as_bytes()].concat();
    let derived = Hkdf::<Sha256>::new(None, secret).expand(&info, &mut *bytes);
    derived.map_err(|_| ConnectError::Seal("a key cannot be derived from it"))?;
    Ok(bytes)
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("secrets", &self.secrets.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(secrets: &[u8]) -> Seal {
        Seal::new(secrets.iter().map(|byte| Zeroizing::new(vec![*byte; 32])).collect()).unwrap()
    }

    /// SCL-86: what is sealed opens at its place only, and only unchanged.
    #[test]
    fn sealed_content_is_bound_to_its_place() {
        let seal = ring(&[1]);
        let sealed = seal.seal("session", "7", b"text").unwrap();
        assert!(!sealed.windows(4).any(|window| window == b"text"));
        assert_eq!(seal.open("session", "7", &sealed).unwrap(), b"text");
        assert_eq!(seal.seal("session", "7", b"text").unwrap(), sealed, "a repetition");
        assert_ne!(seal.seal("session", "8", b"text").unwrap()[HEAD - NONCE..], sealed[HEAD - NONCE..]);
        assert!(seal.open("session", "8", &sealed).is_err());
        assert!(seal.open("other", "7", &sealed).is_err());
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(seal.open("session", "7", &changed).is_err(), "byte {index}");
            assert!(seal.open("session", "7", &sealed[..index]).is_err(), "the first {index} bytes");
        }
    }

    /// SCL-86: the first secret seals, all of them open.
    #[test]
    fn a_ring_is_rotated() {
        let sealed = ring(&[1]).seal("s", "", b"text").unwrap();
        assert_eq!(ring(&[2, 1]).open("s", "", &sealed).unwrap(), b"text");
        assert!(ring(&[2]).open("s", "", &sealed).is_err());
        let text = |secrets: Vec<Vec<u8>>| {
            Seal::new(secrets.into_iter().map(Zeroizing::new).collect()).unwrap_err().to_string()
        };
        assert!(text(vec![]).contains("it has no secret"));
        assert!(text(vec![vec![1; 31]]).contains("less than 32 bytes"));
        assert!(text(vec![vec![1; 32], vec![1; 32]]).contains("twice"));
    }
}
