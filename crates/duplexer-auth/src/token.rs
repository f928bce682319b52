//! Access tokens and their verifiers.
//!
//! A verifier returns the content of a token. [`crate::Auth`] checks audience, expiry and scopes for all verifiers.

pub(crate) mod introspection;
pub(crate) mod jwks;
pub(crate) mod jwt;
pub(crate) mod signature;
pub(crate) mod static_tokens;

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::clock;
use duplexer_server::Principal;
use duplexer_types::json::{Json, JsonObject};
use serde_json::{Map, Value};

/// Default tolerated difference between the clocks of issuer and server.
const DEFAULT_SKEW: Duration = Duration::from_secs(60);

/// Content of a verified token.
///
/// ```
/// use duplexer_auth::AccessToken;
/// use duplexer_server::Principal;
///
/// let mut ada = Principal::new("ada");
/// ada.scopes = vec!["mcp".to_owned()];
/// let token = AccessToken::new(ada, vec!["https://mcp.example.com/mcp".to_owned()]);
/// assert!(token.key_thumbprint.is_none());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AccessToken {
    /// Client, subject, scopes and expiry.
    pub principal: Principal,
    /// Servers for which the token is valid.
    pub audience: Vec<String>,
    /// Thumbprint of the key to which the token is bound (DPoP, `cnf.jkt`). Without one it is a bearer token.
    pub key_thumbprint: Option<String>,
}

impl AccessToken {
    /// Creates a token of a principal for these servers.
    pub fn new(principal: Principal, audience: Vec<String>) -> Self {
        Self { principal, audience, key_thumbprint: None }
    }

    /// Reads claims of RFC 7519, 7662 and 9068. `None` if they name neither a subject nor a client: all users of such an
    /// issuer would be the same principal.
    pub(crate) fn from_claims(claims: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| {
            let text = claims.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        // RFC 9068 has `client_id`; OpenID Connect issuers write `azp`. Without either, the subject is the client.
        let Some(client) = text("client_id").or_else(|| text("azp")).or_else(|| text("sub")) else {
            tracing::warn!(
                "a token is refused: it names neither a subject (`sub`) nor a client (`client_id`)"
            );
            return None;
        };
        let mut principal = Principal::new(client);
        principal.issuer = text("iss");
        principal.subject = text("sub");
        principal.scopes = scopes(claims);
        principal.expires_at = claims.get("exp").and_then(seconds).map(clock::at);
        principal.claims = members(claims);
        let confirmation = claims.get("cnf").and_then(|confirmation| confirmation.get("jkt"));
        let key_thumbprint = confirmation.and_then(Value::as_str).map(str::to_owned);
        Some(Self { principal, audience: audience(claims), key_thumbprint })
    }

    /// Returns whether the token names a subject or a client.
    pub(crate) fn is_named(&self) -> bool {
        !self.principal.client_id.is_empty()
            || self.principal.subject.as_ref().is_some_and(|subject| !subject.is_empty())
    }
}

/// Reads `scope`, a space-separated text (RFC 8693). Some issuers write a list, or name it `scp`.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(words)) => words.split_ascii_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// Reads `aud`: one server, or a list.
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

/// Returns whether the time in `nbf`, if there is one, has come. A time that cannot be read has not.
fn has_begun(claims: &Map<String, Value>, now: u64, skew: Duration) -> bool {
    let begins = claims.get("nbf").map_or(Some(0), seconds);
    begins.is_some_and(|begins| begins <= now.saturating_add(skew.as_secs()))
}

/// Reads a time in seconds since 1970, with or without a fraction.
pub(crate) fn seconds(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and what is too large saturates"
    )]
    let rounded = |time: f64| (time >= 0.0).then_some(time as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(rounded))
}

/// Verifies tokens. Implemented for async functions and closures of the token: `async fn(String) -> Result<Option<AccessToken>, E>`.
///
/// ```
/// use duplexer_auth::{AccessToken, Auth};
/// use duplexer_server::{BoxError, Principal};
///
/// async fn verify(token: String) -> Result<Option<AccessToken>, BoxError> {
///     if token != "a-long-random-text" {
///         return Ok(None);
///     }
///     Ok(Some(AccessToken::new(Principal::new("ada"), vec!["https://mcp.example.com/mcp".to_owned()])))
/// }
///
/// let auth = Auth::verifier("https://login.example.com", verify).audience("https://mcp.example.com/mcp").build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
pub trait TokenVerifier: Send + Sync + 'static {
    /// Returns the content of a token, or `None` if it is invalid, expired or revoked. A token whose principal has neither
    /// a client id nor a subject is refused.
    ///
    /// # Errors
    /// Fails if the token could not be checked. The client gets 503 and can retry later.
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>>;
}

impl<F, Fut, E> TokenVerifier for F
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<AccessToken>, E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        let verifying = self(token.to_owned());
        Box::pin(async move { verifying.await.map_err(Into::into) })
    }
}

impl<V: TokenVerifier + ?Sized> TokenVerifier for Arc<V> {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        (**self).verify(token)
    }
}
