//! Signed tokens that the client makes: client assertions and DPoP proofs.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_oauth_base::secret;
use serde_json::{Value, json};

use crate::error::OAuthError;
use crate::key::Signer;

/// Lifetime of a client assertion.
const ASSERTION_LIFETIME: Duration = Duration::from_secs(120);

/// Signs a header and claims in the compact form.
pub(crate) async fn sign(header: &Value, claims: &Value, key: &dyn Signer) -> Result<String, OAuthError> {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let mut text = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(text.as_bytes()).await.map_err(OAuthError::source)?;
    text.push('.');
    text.push_str(&URL_SAFE_NO_PAD.encode(signature));
    Ok(text)
}

/// Makes the assertion of `private_key_jwt` (RFC 7523): a new one for every request.
pub(crate) async fn client_assertion(
    client_id: &str,
    issuer: &str,
    now: u64,
    key: &dyn Signer,
) -> Result<String, OAuthError> {
    let mut header = json!({"typ": "JWT", "alg": key.algorithm().name()});
    if let Some(id) = key.key_id() {
        header["kid"] = id.into();
    }
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "iat": now,
        "exp": now.saturating_add(ASSERTION_LIFETIME.as_secs()),
        "jti": secret::random_hex::<16>()?,
    });
    sign(&header, &claims, key).await
}

/// Returns the claims of a token without a check of its signature, for tokens that this client has made.
pub(crate) fn claims_of(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}
