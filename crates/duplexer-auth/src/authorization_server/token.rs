//! The token endpoint: authorization codes, refresh tokens and identity assertions.

use duplexer_oauth_base::clock;
use http::{HeaderMap, StatusCode};

use super::AuthorizationServer;
use super::backend::Grant;
use super::client::{AUTHORIZATION_CODE, JWT_BEARER, REFRESH_TOKEN, RegisteredClient};
use super::form::Form;
use super::records::{Code, Refresh, Renewal, Tokens, Use};
use super::store::RecordKind;
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::{secret, urls};

const NO_CODE: &str = "authorization code does not exist";
const NO_REFRESH: &str = "refresh token does not exist";

impl AuthorizationServer {
    pub(super) async fn token(&self, headers: &HeaderMap, body: &[u8]) -> Result<Reply, OAuthError> {
        let form = Form::posted(headers, body)?;
        let client = self.authenticate(headers, &form, "invalid_client").await?;
        let grant_type = form.required("grant_type")?;
        let is_known = match grant_type {
            AUTHORIZATION_CODE | REFRESH_TOKEN => true,
            JWT_BEARER => self.0.assertions.is_some(),
            _ => false,
        };
        if !is_known || !client.allows(grant_type) {
            let text = format!("grant type '{}' is not available to this client", grant_type.escape_debug());
            return Err(OAuthError::new("unsupported_grant_type", text));
        }
        let tokens = match grant_type {
            AUTHORIZATION_CODE => self.redeem(&client, &form).await?,
            REFRESH_TOKEN => self.refresh(&client, &form).await?,
            _ => self.assert(&client, &form).await?,
        };
        // The tokens are issued: a failure to extend the registration must not withhold them.
        if let Err(error) = self.keep(&client).await {
            tracing::warn!(%error, "the registration of a client could not be extended");
        }
        Ok(reply::json(StatusCode::OK, &tokens))
    }

    async fn redeem(&self, client: &RegisteredClient, form: &Form) -> Result<Tokens, OAuthError> {
        let digest = secret::digest(form.required("code")?);
        let verifier = form.required("code_verifier")?;
        let absent = || OAuthError::invalid_grant(NO_CODE);
        let stored = self.0.records.find::<Code>(RecordKind::Code, digest).await?.ok_or_else(absent)?;
        let code = stored.value.clone();
        let grant = self.grant(&code.grant, client).await?.ok_or_else(absent)?;
        if code.state == Use::Spent {
            return Err(self.reused(&code.grant, NO_CODE).await);
        }
        if code.expires_at <= self.0.clock.seconds() {
            return Err(OAuthError::invalid_grant("authorization code has expired"));
        }
        if code.redirect_uri.as_deref() != form.get("redirect_uri") {
            let text = "redirect_uri did not match the one used when creating auth code";
            return Err(OAuthError::invalid_request(text));
        }
        if !secret::matches(verifier, &code.challenge) {
            return Err(OAuthError::invalid_grant("incorrect code_verifier"));
        }
        check_resource(&grant, form)?;
        let tokens = self.granted(client, &code.grant, &grant, grant.scopes.clone()).await?;
        let until = clock::at(code.expires_at).checked_add(self.0.settings.lifetimes.access);
        let until = until.unwrap_or_else(|| self.0.clock.now());
        let spent = Code { state: Use::Spent, ..code.clone() };
        let replaced = self.0.records.replace(stored, &spent, until).await;
        self.spent(replaced, tokens, &code.grant, NO_CODE).await
    }

    async fn refresh(&self, client: &RegisteredClient, form: &Form) -> Result<Tokens, OAuthError> {
        let digest = secret::digest(form.required("refresh_token")?);
        let absent = || OAuthError::invalid_grant(NO_REFRESH);
        let found = self.0.records.find::<Refresh>(RecordKind::RefreshToken, digest).await?;
        let stored = found.ok_or_else(absent)?;
        let refresh = stored.value.clone();
        let grant = self.grant(&refresh.grant, client).await?.ok_or_else(absent)?;
        if refresh.state == Use::Spent {
            return Err(self.reused(&refresh.grant, NO_REFRESH).await);
        }
        if refresh.expires_at <= self.0.clock.seconds() {
            return Err(OAuthError::invalid_grant("refresh token has expired"));
        }
        let scopes = form.scopes().unwrap_or_else(|| grant.scopes.clone());
        if let Some(wider) = scopes.iter().find(|scope| !grant.scopes.contains(scope)) {
            return Err(OAuthError::invalid_scope(wider));
        }
        check_resource(&grant, form)?;
        let tokens = self.granted(client, &refresh.grant, &grant, scopes).await?;
        let until = clock::at(refresh.expires_at);
        let spent = Refresh { state: Use::Spent, ..refresh.clone() };
        let replaced = self.0.records.replace(stored, &spent, until).await;
        self.spent(replaced, tokens, &refresh.grant, NO_REFRESH).await
    }

    /// Returns the tokens if the code or refresh token of the client was spent for them.
    ///
    /// It is spent after its tokens are stored: a client that gets 503 can repeat its request.
    async fn spent(
        &self,
        replaced: Result<bool, OAuthError>,
        tokens: Tokens,
        grant: &str,
        text: &'static str,
    ) -> Result<Tokens, OAuthError> {
        let error = match replaced {
            Ok(true) => return Ok(tokens),
            // A concurrent request has spent it: one of the two holds a stolen one.
            Ok(false) => self.reused(grant, text).await,
            Err(error) => error,
        };
        self.discard(&tokens).await;
        Err(error)
    }

    /// Returns the grant, if it belongs to this client.
    async fn grant(&self, id: &str, client: &RegisteredClient) -> Result<Option<Grant>, OAuthError> {
        let grant: Option<Grant> = self.0.records.get(RecordKind::Grant, id).await?;
        Ok(grant.filter(|grant| grant.client_id == client.id()))
    }

    /// Issues tokens after the approval of the backend, unless the grant was revoked meanwhile.
    async fn granted(
        &self,
        client: &RegisteredClient,
        id: &str,
        grant: &Grant,
        scopes: Vec<String>,
    ) -> Result<Tokens, OAuthError> {
        self.0.records.0.approve(client, grant).await?;
        let renewal = if client.allows(REFRESH_TOKEN) { Renewal::Allowed } else { Renewal::Refused };
        if !self.prolong(id, renewal).await? {
            return Err(OAuthError::invalid_grant("the grant has been revoked"));
        }
        self.issue(id, scopes, renewal).await
    }

    /// Revokes the grant of a reused code or refresh token: one of its two users holds a stolen one.
    async fn reused(&self, grant: &str, text: &'static str) -> OAuthError {
        tracing::warn!("a code or refresh token was used twice; all tokens of its grant are revoked");
        match self.0.records.revoke(grant).await {
            Ok(()) => OAuthError::invalid_grant(text),
            Err(error) => error,
        }
    }
}

/// Rejects a resource other than the one in the grant.
fn check_resource(grant: &Grant, form: &Form) -> Result<(), OAuthError> {
    match form.get("resource") {
        Some(named) if !urls::is_same(named, &grant.resource) => Err(OAuthError::invalid_target()),
        _ => Ok(()),
    }
}
