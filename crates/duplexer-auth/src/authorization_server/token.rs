//! The token endpoint: authorization codes, refresh tokens, identity assertions and client credentials.

use duplexer_oauth_base::clock;
use http::{HeaderMap, Method, StatusCode};

use super::AuthorizationServer;
use super::backend::{Grant, User};
use super::client::{
    AUTHORIZATION_CODE, AuthMethod, CLIENT_CREDENTIALS, JWT_BEARER, REFRESH_TOKEN, RegisteredClient,
};
use super::form::Form;
use super::records::{Code, Refresh, RefreshToken, Renewal, Successor, Tokens, Use};
use super::store::RecordKind;
use crate::dpop::{ProofError, Proven};
use crate::error::OAuthError;
use crate::reply::{self, Reply};
use crate::{secret, urls};

const NO_CODE: &str = "authorization code does not exist";
const NO_REFRESH: &str = "refresh token does not exist";
/// Seconds in which a spent refresh token gets its successor again: the first response can have been lost.
const REPEATABLE_FOR: u64 = 10;

impl AuthorizationServer {
    pub(super) async fn token(&self, headers: &HeaderMap, body: &[u8]) -> Result<Reply, OAuthError> {
        let form = Form::posted(headers, body)?;
        let client = self.authenticate(headers, &form, "invalid_client").await?;
        let grant_type = form.required("grant_type")?;
        let is_known = match grant_type {
            AUTHORIZATION_CODE | REFRESH_TOKEN => true,
            JWT_BEARER => self.0.assertions.is_some(),
            CLIENT_CREDENTIALS => client.metadata.token_endpoint_auth_method != AuthMethod::None,
            _ => false,
        };
        if !is_known || !client.allows(grant_type) {
            let text = format!("grant type '{}' is not available to this client", grant_type.escape_debug());
            return Err(OAuthError::new("unsupported_grant_type", text));
        }
        let key = self.proven_key(headers)?;
        let key = key.as_deref();
        let tokens = match grant_type {
            AUTHORIZATION_CODE => self.redeem(&client, &form, key).await?,
            REFRESH_TOKEN => self.refresh(&client, &form, key).await?,
            CLIENT_CREDENTIALS => self.client_credentials(&client, &form, key).await?,
            _ => self.assert(&client, &form, key).await?,
        };
        // The tokens are issued: a failure to extend the registration must not withhold them.
        if let Err(error) = self.keep(&client).await {
            tracing::warn!(%error, "the registration of a client could not be extended");
        }
        Ok(reply::json(StatusCode::OK, &tokens))
    }

    async fn redeem(
        &self,
        client: &RegisteredClient,
        form: &Form,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
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
        if !secret::matches(verifier, &code.challenge.verifier) {
            return Err(OAuthError::invalid_grant("incorrect code_verifier"));
        }
        check_key(code.challenge.key.as_deref(), key)?;
        check_resource(&grant, form)?;
        let refresh = if client.allows(REFRESH_TOKEN) {
            RefreshToken::New(secret::token()?)
        } else {
            RefreshToken::None
        };
        let tokens = self.granted(client, &code.grant, &grant, grant.scopes.clone(), refresh, key).await?;
        let until = clock::at(code.expires_at).checked_add(self.0.settings.lifetimes.access);
        let until = until.unwrap_or_else(|| self.0.clock.now());
        let spent = Code { state: Use::Spent, ..code.clone() };
        let replaced = self.0.records.replace(stored, &spent, until).await;
        self.spent(replaced, tokens, &code.grant).await
    }

    async fn refresh(
        &self,
        client: &RegisteredClient,
        form: &Form,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let token = form.required("refresh_token")?;
        let absent = || OAuthError::invalid_grant(NO_REFRESH);
        let mut attempts = 0;
        loop {
            let found =
                self.0.records.find::<Refresh>(RecordKind::RefreshToken, secret::digest(token)).await?;
            let stored = found.ok_or_else(absent)?;
            let refresh = stored.value.clone();
            let grant = self.grant(&refresh.grant, client).await?.ok_or_else(absent)?;
            let successor = match refresh.state {
                Use::Open => Successor::new(self.0.clock.seconds())?,
                Use::Spent => self.unused_successor(&refresh, token).await?,
            };
            let scopes = self.renewed_scopes(&refresh, &grant, form, key)?;
            let next = successor.token(token);
            if refresh.state == Use::Spent {
                let next = RefreshToken::Stored(next);
                return self.granted(client, &refresh.grant, &grant, scopes, next, key).await;
            }
            let next = RefreshToken::New(next);
            let tokens = self.granted(client, &refresh.grant, &grant, scopes, next, key).await?;
            let until = clock::at(refresh.expires_at);
            let spent = Refresh { state: Use::Spent, successor: Some(successor), ..refresh.clone() };
            // Where the outcome is unknown the tokens stay: a client that repeats its request can get them.
            if self.0.records.replace(stored, &spent, until).await? {
                return Ok(tokens);
            }
            // A concurrent request has spent it, and the record says how.
            self.discard(&tokens).await;
            attempts += 1;
            if attempts > 1 {
                return Err(self.reused(&refresh.grant, NO_REFRESH).await);
            }
        }
    }

    /// Returns how the successor of a spent refresh token was made, if its client can get it again: shortly after it was
    /// issued, and before anything was issued for it. The response was lost then. Otherwise the grant is revoked.
    async fn unused_successor(&self, spent: &Refresh, token: &str) -> Result<Successor, OAuthError> {
        let is_recent = |successor: &Successor| {
            self.0.clock.seconds().saturating_sub(successor.issued_at) <= REPEATABLE_FOR
        };
        if let Some(successor) = spent.successor.clone().filter(is_recent) {
            let digest = successor.token(token).digest();
            let next: Option<Refresh> = self.0.records.get(RecordKind::RefreshToken, digest).await?;
            if next.is_some_and(|next| next.state == Use::Open) {
                return Ok(successor);
            }
        }
        Err(self.reused(&spent.grant, NO_REFRESH).await)
    }

    /// Checks a renewal, and returns its scopes.
    fn renewed_scopes(
        &self,
        refresh: &Refresh,
        grant: &Grant,
        form: &Form,
        key: Option<&str>,
    ) -> Result<Vec<String>, OAuthError> {
        if refresh.expires_at <= self.0.clock.seconds() {
            return Err(OAuthError::invalid_grant("refresh token has expired"));
        }
        check_key(refresh.key.as_deref(), key)?;
        let scopes = form.scopes().unwrap_or_else(|| grant.scopes.clone());
        if let Some(wider) = scopes.iter().find(|scope| !grant.scopes.contains(scope)) {
            return Err(OAuthError::invalid_scope(wider));
        }
        check_resource(grant, form)?;
        Ok(scopes)
    }

    /// Returns the tokens if the code of the client was spent for them.
    ///
    /// It is spent after its tokens are stored: a client that gets 503 can repeat its request.
    async fn spent(
        &self,
        replaced: Result<bool, OAuthError>,
        tokens: Tokens,
        grant: &str,
    ) -> Result<Tokens, OAuthError> {
        let error = match replaced {
            Ok(true) => return Ok(tokens),
            // A concurrent request has spent it: one of the two holds a stolen one.
            Ok(false) => self.reused(grant, NO_CODE).await,
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
        refresh: RefreshToken,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        self.0.records.0.approve(client, grant).await?;
        if !self.prolong(id, refresh.renewal()).await? {
            return Err(OAuthError::invalid_grant("the grant has been revoked"));
        }
        self.issue(id, scopes, refresh, key).await
    }

    /// Issues a token to a client that acts for itself (RFC 6749, section 4.4).
    async fn client_credentials(
        &self,
        client: &RegisteredClient,
        form: &Form,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let allowed = client.scopes().unwrap_or_default();
        let scopes = form.scopes().unwrap_or_else(|| allowed.clone());
        if let Some(wider) = scopes.iter().find(|scope| !allowed.contains(scope)) {
            return Err(OAuthError::invalid_scope(wider));
        }
        let resource = self.resource(form.get("resource"))?;
        let id = client.id().to_owned();
        let grant = Grant { client_id: id.clone(), user: User::new(id), scopes, resource };
        self.0.records.0.approve(client, &grant).await?;
        let id = secret::random_hex::<16>()?;
        self.create(&id, &grant, Renewal::Refused).await?;
        self.issue(&id, grant.scopes, RefreshToken::None, key).await
    }

    /// Returns the key to which the client wants its tokens bound.
    fn proven_key(&self, headers: &HeaderMap) -> Result<Option<String>, OAuthError> {
        let url = self.0.issuer.url_of("token");
        let about = Proven { method: &Method::POST, url: &url, token: None, now: self.0.clock.seconds() };
        match self.0.proofs.check(headers, &about) {
            Ok(key) => Ok(Some(key)),
            Err(ProofError::Missing) => Ok(None),
            Err(ProofError::Invalid(text)) => Err(OAuthError::new("invalid_dpop_proof", text)),
            Err(ProofError::Nonce) => Err(OAuthError::new("use_dpop_nonce", "the proof needs a nonce")),
            Err(ProofError::Busy) => Err(OAuthError::unavailable("too many proofs; try again later")),
        }
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

/// Rejects a request without the key to which a code or refresh token is bound.
fn check_key(bound: Option<&str>, proven: Option<&str>) -> Result<(), OAuthError> {
    if bound.is_none() || bound == proven {
        return Ok(());
    }
    Err(OAuthError::new("invalid_dpop_proof", "the proof is not of the key to which this is bound"))
}

/// Rejects a resource other than the one in the grant.
fn check_resource(grant: &Grant, form: &Form) -> Result<(), OAuthError> {
    match form.get("resource") {
        Some(named) if !urls::is_same(named, &grant.resource) => Err(OAuthError::invalid_target()),
        _ => Ok(()),
    }
}
