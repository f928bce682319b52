//! Private keys and signatures: the only file of this crate that calls the library for cryptography.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// Signature algorithm, by its name in RFC 7518 and RFC 8037.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// RSA-PSS with SHA-256.
    Ps256,
}

impl Algorithm {
    /// Returns the name in the header of a signed token.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
        }
    }
}

/// Signs texts with a key that can be elsewhere, such as in a key management service.
pub trait Signer: Send + Sync + 'static {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Signs a text. ECDSA signatures are the two numbers in their full length (RFC 7518), not DER.
    fn sign<'a>(&'a self, text: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, BoxError>>;

    /// Returns the public key as a JWK with public members only. DPoP requires it.
    fn public_jwk(&self) -> Option<Value> {
        None
    }

    /// Returns the id of the key, for `kid`.
    fn key_id(&self) -> Option<String> {
        None
    }
}

/// The key cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the key cannot be used: {0}")]
pub struct KeyError(String);

/// A private key in memory.
///
/// ```
/// use duplexer_oauth::{Algorithm, ClientIdentity, SigningKey};
///
/// # let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----";
/// let key = SigningKey::pem(Algorithm::EdDsa, pem)?.with_id("key-1");
/// let client = ClientIdentity::private_key_jwt("service-7", key).issuer("https://login.example.com");
/// # Ok::<_, duplexer_oauth::KeyError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey {
    algorithm: Algorithm,
    pair: Arc<Pair>,
    id: Option<String>,
}

enum Pair {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    /// Reads a PKCS#8 key in PEM form (`-----BEGIN PRIVATE KEY-----`).
    ///
    /// # Errors
    /// Fails if the text is not such a key, or is not one for the algorithm.
    pub fn pem(algorithm: Algorithm, text: &str) -> Result<Self, KeyError> {
        let wrong = || KeyError("it must begin with `-----BEGIN PRIVATE KEY-----` (PKCS#8)".to_owned());
        let (_, body) = text.split_once("-----BEGIN PRIVATE KEY-----").ok_or_else(wrong)?;
        let (body, _) = body.split_once("-----END PRIVATE KEY-----").ok_or_else(wrong)?;
        let body: Zeroizing<String> = Zeroizing::new(body.split_ascii_whitespace().collect());
        let der = Zeroizing::new(STANDARD.decode(&*body).map_err(|_| wrong())?);
        Self::der(algorithm, &der)
    }

    /// Reads a PKCS#8 key in DER form.
    ///
    /// # Errors
    /// Fails if the bytes are not such a key, or are not one for the algorithm.
    pub fn der(algorithm: Algorithm, der: &[u8]) -> Result<Self, KeyError> {
        let rejected = |error: ring::error::KeyRejected| KeyError(error.to_string());
        let random = SystemRandom::new();
        let pair = match algorithm {
            Algorithm::Es256 => EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
                .map(Pair::Ecdsa)
                .map_err(rejected)?,
            Algorithm::Es384 => EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der, &random)
                .map(Pair::Ecdsa)
                .map_err(rejected)?,
            Algorithm::EdDsa => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Pair::Ed25519).map_err(rejected)?
            }
            Algorithm::Rs256 | Algorithm::Ps256 => {
                RsaKeyPair::from_pkcs8(der).map(Pair::Rsa).map_err(rejected)?
            }
        };
        Ok(Self { algorithm, pair: Arc::new(pair), id: None })
    }

    /// Reads a private JWK (RFC 7517) with its `kid`. An RSA key needs its primes.
    ///
    /// # Errors
    /// Fails if the value is not such a key, or is not one for the algorithm.
    pub fn jwk(algorithm: Algorithm, jwk: &Value) -> Result<Self, KeyError> {
        let part = |name: &str| {
            let text = jwk.get(name).and_then(Value::as_str);
            let bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).map(Zeroizing::new);
            bytes.ok_or_else(|| KeyError(format!("the member `{name}` is missing or not base64url")))
        };
        let rejected = |error: ring::error::KeyRejected| KeyError(error.to_string());
        let random = SystemRandom::new();
        let ecdsa = |curve| {
            let public = [&[4], part("x")?.as_slice(), part("y")?.as_slice()].concat();
            EcdsaKeyPair::from_private_key_and_public_key(curve, &part("d")?, &public, &random)
                .map(Pair::Ecdsa)
                .map_err(rejected)
        };
        let pair = match algorithm {
            Algorithm::Es256 => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)?,
            Algorithm::Es384 => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING)?,
            Algorithm::EdDsa => Ed25519KeyPair::from_seed_and_public_key(&part("d")?, &part("x")?)
                .map(Pair::Ed25519)
                .map_err(rejected)?,
            Algorithm::Rs256 | Algorithm::Ps256 => {
                let (modulus, exponent) = (part("n")?, part("e")?);
                let [secret, first, second] = [part("d")?, part("p")?, part("q")?];
                let [first_exponent, second_exponent, inverse] = [part("dp")?, part("dq")?, part("qi")?];
                let components = KeyPairComponents {
                    public_key: PublicKeyComponents { n: modulus.as_slice(), e: exponent.as_slice() },
                    d: secret.as_slice(),
                    p: first.as_slice(),
                    q: second.as_slice(),
                    dP: first_exponent.as_slice(),
                    dQ: second_exponent.as_slice(),
                    qInv: inverse.as_slice(),
                };
                RsaKeyPair::from_components(&components).map(Pair::Rsa).map_err(rejected)?
            }
        };
        let id = jwk.get("kid").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { algorithm, pair: Arc::new(pair), id })
    }

    /// Sets the id of the key, which is sent as `kid`.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Generates a key for DPoP, in a form that can be stored: PKCS#8 in base64url.
    pub(crate) fn generate() -> Result<Secret, KeyError> {
        let failed = |_| KeyError("the system gives no random numbers".to_owned());
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(der.map_err(failed)?.as_ref())))
    }

    /// Reads a key that [`Self::generate`] made.
    pub(crate) fn stored(text: &Secret) -> Result<Self, KeyError> {
        let der = URL_SAFE_NO_PAD.decode(text.reveal()).map_err(|error| KeyError(error.to_string()))?;
        Self::der(Algorithm::Es256, &Zeroizing::new(der))
    }

    fn signature(&self, text: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        let random = SystemRandom::new();
        match &*self.pair {
            Pair::Ecdsa(pair) => pair.sign(&random, text).map(|signature| signature.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(text).as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let padding: &dyn RsaEncoding =
                    if self.algorithm == Algorithm::Ps256 { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(padding, &random, text, &mut signature).map(|()| signature)
            }
        }
    }
}

impl Signer for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn sign<'a>(&'a self, text: &'a [u8]) -> BoxFuture<'a, Result<Vec<u8>, BoxError>> {
        let signature = self.signature(text).map_err(|_| BoxError::from("the key does not sign"));
        Box::pin(std::future::ready(signature))
    }

    fn public_jwk(&self) -> Option<Value> {
        match &*self.pair {
            Pair::Ecdsa(pair) => {
                // An uncompressed point: 4, x, y.
                let point = pair.public_key().as_ref().get(1..)?;
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if self.algorithm == Algorithm::Es384 { "P-384" } else { "P-256" };
                let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
                Some(json!({"kty": "EC", "crv": curve, "x": x, "y": y}))
            }
            Pair::Ed25519(pair) => {
                let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
                Some(json!({"kty": "OKP", "crv": "Ed25519", "x": x}))
            }
            Pair::Rsa(pair) => {
                let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
                let public: PublicKeyComponents<Vec<u8>> = pair.public().into();
                Some(json!({"kty": "RSA", "n": number(&public.n), "e": number(&public.e)}))
            }
        }
    }

    fn key_id(&self) -> Option<String> {
        self.id.clone()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
