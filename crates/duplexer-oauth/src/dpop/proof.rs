//! Proofs of possession: a new one for every HTTP request.

use duplexer_oauth_base::{Secret, secret};
use serde_json::json;
use url::Url;

use super::DpopKey;
use crate::error::OAuthError;
use crate::jws;

/// The request that a proof is for.
pub(crate) struct Proof<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a Url,
    /// The token that is sent, if any.
    pub(crate) token: Option<&'a Secret>,
    pub(crate) nonce: Option<String>,
    /// Seconds since 1970.
    pub(crate) now: u64,
}

impl Proof<'_> {
    pub(crate) async fn sign(self, key: &DpopKey) -> Result<String, OAuthError> {
        let mut target = self.url.clone();
        target.set_query(None);
        target.set_fragment(None);
        let header = json!({"typ": "dpop+jwt", "alg": key.signer.algorithm().name(), "jwk": key.jwk});
        let mut claims = json!({
            "jti": secret::random_hex::<16>()?,
            "htm": self.method,
            "htu": target.as_str(),
            "iat": self.now,
        });
        if let Some(token) = self.token {
            claims["ath"] = token.digest().into();
        }
        if let Some(nonce) = self.nonce {
            claims["nonce"] = nonce.into();
        }
        jws::sign(&header, &claims, &*key.signer).await
    }
}

/// Returns whether a proof that this client has sent contained a nonce.
pub(crate) fn has_nonce(proof: &str) -> bool {
    jws::claims_of(proof).is_some_and(|claims| claims.get("nonce").is_some())
}
