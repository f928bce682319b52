//! An issuer of signed tokens that counts its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};

use crate::support::Site;

/// A key pair and its name.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) id: String,
    pub(crate) public: Vec<u8>,
    pair: Arc<EcdsaKeyPair>,
}

impl Signer {
    pub(crate) fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        Self { id: id.into(), public: pair.public_key().as_ref().to_vec(), pair: Arc::new(pair) }
    }

    pub(crate) fn jwk(&self) -> Value {
        let part = |range| URL_SAFE_NO_PAD.encode(&self.public[range]);
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "use": "sig", "x": part(1..33), "y": part(33..65)})
    }

    pub(crate) fn sign(&self, kind: &str, claims: &Value) -> String {
        self.sign_with(&json!({"alg": "ES256", "typ": kind, "kid": self.id}), claims)
    }

    pub(crate) fn sign_with(&self, header: &Value, claims: &Value) -> String {
        token(header, claims, |text| {
            let signature = self.pair.sign(&SystemRandom::new(), text).unwrap();
            signature.as_ref().to_vec()
        })
    }
}

/// A token with the signature that `sign` makes.
pub(crate) fn token(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// What an issuer publishes.
pub(crate) struct Published {
    pub(crate) keys: Mutex<Vec<Value>>,
    pub(crate) asked: AtomicUsize,
    is_hanging: AtomicBool,
}

impl Published {
    pub(crate) fn publish(&self, jwk: Value) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).push(jwk);
    }

    /// Sets whether requests for the keys are left without a response.
    pub(crate) fn hang(&self, is_hanging: bool) {
        self.is_hanging.store(is_hanging, Ordering::SeqCst);
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An issuer on a socket. `named` replaces its own URL in the metadata.
pub(crate) async fn issuer(named: Option<&str>) -> (Site, Arc<Published>) {
    let published = Arc::new(Published {
        keys: Mutex::default(),
        asked: AtomicUsize::new(0),
        is_hanging: AtomicBool::new(false),
    });
    let shared = Arc::clone(&published);
    let site = Site::routes(|base| {
        let metadata =
            json!({"issuer": named.unwrap_or(base), "jwks_uri": format!("{base}/keys")}).to_string();
        let keys = move || {
            let shared = Arc::clone(&shared);
            async move {
                shared.asked.fetch_add(1, Ordering::SeqCst);
                if shared.is_hanging.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let keys = shared.keys.lock().unwrap_or_else(PoisonError::into_inner);
                json!({ "keys": *keys }).to_string()
            }
        };
        // Only the second metadata URL exists: discovery must try both.
        Router::new()
            .route("/.well-known/openid-configuration", get(|| async { metadata }))
            .route("/keys", get(keys))
    });
    (site.await, published)
}
