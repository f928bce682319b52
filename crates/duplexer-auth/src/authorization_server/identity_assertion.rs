//! Identity assertion grant (ID-JAG): a signed assertion of another issuer replaces the consent page.

use std::time::Duration;

use duplexer_oauth_base::clock;
use serde_json::{Map, Value};

use super::AuthorizationServer;
use super::backend::{Assertion, Grant};
use super::client::{AuthMethod, RegisteredClient};
use super::form::Form;
use super::records::{RefreshToken, Renewal, Tokens};
use super::store::RecordKind;
use crate::error::OAuthError;
use crate::secret;
use crate::token::jwt::Jwt;
use crate::token::seconds;

/// Accepted values of `typ` in an identity assertion.
pub(super) const KINDS: &[&str] = &["oauth-id-jag+jwt"];

impl AuthorizationServer {
    pub(super) async fn assert(
        &self,
        client: &RegisteredClient,
        form: &Form,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        if client.metadata.token_endpoint_auth_method == AuthMethod::None {
            let text = "identity assertions are for clients that can keep a secret";
            return Err(OAuthError::new("unauthorized_client", text));
        }
        let Some(verifier) = &self.0.assertions else { return Err(OAuthError::server_error()) };
        let claims = self.claims(verifier, client, form.required("assertion")?).await?;
        let assertion = self.read(claims, form)?;
        self.spend(&assertion, verifier.skew).await?;
        let backend = &self.0.records.0;
        let user = backend.assertion(client, &assertion).await?;
        let Assertion { scopes, resource, .. } = assertion;
        let grant = Grant { client_id: client.id().to_owned(), user, scopes, resource };
        backend.approve(client, &grant).await?;
        // No refresh token: a renewal needs another assertion, so that the issuer keeps control.
        let id = secret::random_hex::<16>()?;
        self.create(&id, &grant, Renewal::Refused).await?;
        self.issue(&id, grant.scopes, RefreshToken::None, key).await
    }

    /// Verifies an assertion and returns its claims, if it addresses this server and this client.
    async fn claims(
        &self,
        verifier: &Jwt,
        client: &RegisteredClient,
        assertion: &str,
    ) -> Result<Map<String, Value>, OAuthError> {
        let wrong = || OAuthError::invalid_grant("the assertion is not valid");
        let claims = verifier
            .claims(assertion)
            .await
            .map_err(|error| OAuthError::hidden("the keys of the trusted issuer")(error.into()))?;
        let claims = claims.ok_or_else(wrong)?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let is_complete = ["sub", "jti", "resource"].iter().all(|name| text(name).is_some())
            && claims.get("iat").and_then(seconds).is_some();
        let is_ours = text("aud") == Some(self.issuer()) && text("client_id") == Some(client.id());
        if is_complete && is_ours { Ok(claims) } else { Err(wrong()) }
    }

    fn read(&self, claims: Map<String, Value>, form: &Form) -> Result<Assertion, OAuthError> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let resource = self.resource(Some(&text("resource")))?;
        if form.get("resource").is_some_and(|named| !crate::urls::is_same(named, &resource)) {
            return Err(OAuthError::invalid_target());
        }
        let stated: Vec<String> = text("scope").split_ascii_whitespace().map(Into::into).collect();
        let scopes = form.scopes().unwrap_or_else(|| stated.clone());
        let is_fine = |scope: &&String| stated.contains(scope) && self.0.settings.scopes.contains(scope);
        if let Some(wider) = scopes.iter().find(|scope| !is_fine(scope)) {
            return Err(OAuthError::invalid_scope(wider));
        }
        Ok(Assertion { issuer: text("iss"), subject: text("sub"), scopes, resource, claims })
    }

    /// Rejects an assertion that was used before.
    async fn spend(&self, assertion: &Assertion, skew: Duration) -> Result<(), OAuthError> {
        let claim = |name: &str| assertion.claims.get(name);
        let id = claim("jti").and_then(Value::as_str).unwrap_or_default();
        let until = clock::at(claim("exp").and_then(seconds).unwrap_or_default()).checked_add(skew);
        let until = until.unwrap_or_else(|| self.0.clock.now());
        let key = secret::digest(&format!("{} {id}", assertion.issuer));
        match self.0.records.put(RecordKind::Assertion, key, &Value::Null, until).await? {
            None => Ok(()),
            Some(_) => Err(OAuthError::invalid_grant("the assertion has been used")),
        }
    }
}
