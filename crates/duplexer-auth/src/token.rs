//! Access tokens: what one says once it is verified, and who can verify one.
//!
//! A verifier only says what a token stands for. That it is meant for this server, that its time is not over and that
//! it allows enough is checked in one place for all of them, by [`crate::Auth`].

pub(crate) mod introspection;
pub(crate) mod jwks;
pub(crate) mod jwt;
pub(crate) mod static_tokens;

use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::Principal;
use duplexer_types::json::{Json, JsonObject};
use serde_json::{Map, Value};

use crate::clock;

/// What a token stands for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessToken {
    /// On whose behalf its bearer acts, with which rights, and until when.
    pub principal: Principal,
    /// The servers it is meant for.
    pub audience: Vec<String>,
}

impl AccessToken {
    /// A token of this principal for these servers.
    pub fn new(principal: Principal, audience: Vec<String>) -> Self {
        Self { principal, audience }
    }

    /// What claims in the sense of RFC 7519, 7662 and 9068 say.
    pub(crate) fn from_claims(claims: &Map<String, Value>) -> Self {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).map(str::to_owned);
        // RFC 9068 has `client_id`; `azp` is what issuers of OpenID Connect write. Without either, the subject acts.
        let client = text("client_id").or_else(|| text("azp")).or_else(|| text("sub")).unwrap_or_default();
        let mut principal = Principal::new(client);
        principal.issuer = text("iss");
        principal.subject = text("sub");
        principal.scopes = scopes(claims);
        principal.expires_at = claims.get("exp").and_then(seconds).map(clock::at);
        principal.claims = members(claims);
        Self { principal, audience: audience(claims) }
    }
}

/// `scope` is a text of words, as RFC 8693 has it; some issuers write a list, or call it `scp`.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(words)) => words.split_ascii_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// One server, or a list of them.
fn audience(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn members(claims: &Map<String, Value>) -> JsonObject {
    let mut members = JsonObject::new();
    for (name, value) in claims {
        if let Ok(json) = Json::encode(value) {
            members.insert(name.clone(), json);
        }
    }
    members
}

/// A time as tokens write it: seconds since 1970, perhaps with a fraction.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and what is too large saturates"
    )]
    let rounded = |time: f64| (time >= 0.0).then_some(time as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(rounded))
}

/// Says what tokens stand for.
pub trait TokenVerifier: Send + Sync + 'static {
    /// What the token stands for. `None`: it is not one, or not one any more. An error: it could not be found out,
    /// so the caller is told to try again later.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>>;
}

impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        (**self).verify(token)
    }
}
