//! Clients that sign an assertion for each token request (`private_key_jwt`, RFC 7523).

use http::StatusCode;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::AuthorizationServer;
use super::client::{AuthMethod, RegisteredClient};
use super::form::Form;
use crate::dpop;
use crate::error::OAuthError;
use crate::token::seconds;
use crate::token::signature::verified_claims;

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const MAX_ASSERTION: usize = 8 * 1024;
/// Maximum remaining lifetime of an assertion, in seconds: it is remembered for that time.
const MAX_LIFETIME: u64 = 600;

impl AuthorizationServer {
    /// Authenticates a client by its assertion, which is accepted once.
    pub(super) async fn asserted(
        &self,
        form: &Form,
        assertion: &str,
        code: &'static str,
    ) -> Result<RegisteredClient, OAuthError> {
        let refusal = |reason| OAuthError::new(code, reason).with_status(StatusCode::UNAUTHORIZED);
        if form.get("client_assertion_type") != Some(ASSERTION_TYPE) || assertion.len() > MAX_ASSERTION {
            return Err(refusal("the type of the client assertion is not supported"));
        }
        let id = form.get("client_id").ok_or_else(|| refusal("client_id is missing"))?;
        let client = self.client(id).await?.ok_or_else(|| refusal("invalid client_id"))?;
        if client.metadata.token_endpoint_auth_method != AuthMethod::PrivateKeyJwt {
            return Err(refusal("this client does not sign assertions"));
        }
        let claims = verified(&client, assertion)
            .ok_or_else(|| refusal("the assertion is not signed by this client"))?;
        let (id, until) = self.checked(&client, &claims).map_err(refusal)?;
        let key = crate::secret::digest(&format!("{} {id}", client.id()));
        self.0.proofs.spend(key, until, self.0.clock.seconds()).map_err(|error| match error {
            dpop::ProofError::Busy => OAuthError::unavailable("too many assertions; try again later"),
            _ => refusal("the assertion has been used before"),
        })?;
        Ok(client)
    }

    /// Checks who made an assertion, for whom, and until when it is valid. Returns its id and its end.
    fn checked<'a>(
        &self,
        client: &RegisteredClient,
        claims: &'a Map<String, Value>,
    ) -> Result<(&'a str, u64), &'static str> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(client.id()) || text("sub") != Some(client.id()) {
            return Err("the assertion is about another client");
        }
        let token_endpoint = self.0.issuer.url_of("token");
        let is_ours = |name: &str| name == self.issuer() || name == token_endpoint;
        let is_audience = match claims.get("aud") {
            Some(Value::String(one)) => is_ours(one),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_ours),
            _ => false,
        };
        if !is_audience {
            return Err("the assertion is for another server");
        }
        let (now, end) = (self.0.clock.seconds(), claims.get("exp").and_then(seconds).unwrap_or_default());
        if end <= now || end > now.saturating_add(MAX_LIFETIME) {
            return Err("the assertion has expired, or lives too long");
        }
        text("jti").filter(|id| !id.is_empty()).map(|id| (id, end)).ok_or("the assertion has no id")
    }
}

/// Returns the claims of an assertion that a key of the client has signed.
fn verified(client: &RegisteredClient, assertion: &str) -> Option<Map<String, Value>> {
    let header = jsonwebtoken::decode_header(assertion).ok()?;
    let is_known = |name: &&str| name.parse::<Algorithm>().is_ok_and(|known| known == header.alg);
    if !dpop::ALGORITHMS.iter().any(is_known) || header.crit.is_some() {
        return None;
    }
    client.public_keys().iter().find_map(|jwk| {
        let key = DecodingKey::from_jwk(&serde_json::from_value(jwk.clone()).ok()?).ok()?;
        verified_claims(assertion, &key, header.alg)
    })
}
