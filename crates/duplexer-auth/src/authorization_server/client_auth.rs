//! Client authentication at the token and revocation endpoints.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::AuthorizationServer;
use super::client::{AuthMethod, RegisteredClient};
use super::form::Form;
use super::store::RecordKind;
use crate::error::OAuthError;

/// Client id and secret of a `Basic` `Authorization` header.
struct Basic {
    id: String,
    secret: Zeroizing<String>,
}

impl AuthorizationServer {
    /// Finds a client by id: configured, described by a metadata document, or registered.
    pub(super) async fn client(&self, id: &str) -> Result<Option<RegisteredClient>, OAuthError> {
        if let Some(known) = self.0.clients.get(id) {
            return Ok(Some(known.clone()));
        }
        if let Some(documents) = self.0.documents.as_ref().filter(|_| id.starts_with("https://")) {
            return documents.client(self, id).await;
        }
        self.0.records.get(RecordKind::Client, id).await
    }

    /// Authenticates the client that sent a form. `code` is the OAuth error code of a failure.
    pub(super) async fn authenticate(
        &self,
        headers: &HeaderMap,
        form: &Form,
        code: &'static str,
    ) -> Result<RegisteredClient, OAuthError> {
        let refusal = |reason| OAuthError::new(code, reason).with_status(StatusCode::UNAUTHORIZED);
        let basic = basic(headers)?;
        if basic.is_some() && form.get("client_secret").is_some() {
            return Err(OAuthError::invalid_request("credentials are given in the header and in the body"));
        }
        if let Some(assertion) = form.get("client_assertion") {
            return self.asserted(form, assertion, code).await;
        }
        let id = match (form.get("client_id"), &basic) {
            (Some(id), Some(basic)) if basic.id != id => return Err(refusal("client_id mismatch")),
            (Some(id), _) => id,
            (None, Some(basic)) => &basic.id,
            (None, None) => return Err(refusal("client_id is missing")),
        };
        let client = self.client(id).await?.ok_or_else(|| refusal("invalid client_id"))?;
        let presented = match client.metadata.token_endpoint_auth_method {
            AuthMethod::None => return Ok(client),
            AuthMethod::PrivateKeyJwt => return Err(refusal("client_assertion is missing")),
            AuthMethod::ClientSecretPost => form.get("client_secret"),
            AuthMethod::ClientSecretBasic => basic.as_ref().map(|basic| basic.secret.as_str()),
        };
        match presented {
            None => Err(refusal("client_secret is missing")),
            Some(presented) if client.has_secret(presented) => Ok(client),
            Some(_) => Err(refusal("invalid client_secret")),
        }
    }
}

/// Reads `Basic` credentials. Both parts are form-encoded before they are joined (RFC 6749, section 2.3.1).
fn basic(headers: &HeaderMap) -> Result<Option<Basic>, OAuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        let several = || OAuthError::invalid_request("more than one Authorization header");
        return if headers.contains_key(AUTHORIZATION) { Err(several()) } else { Ok(None) };
    };
    let wrong = || OAuthError::invalid_request("the Authorization header is not Basic");
    let (scheme, encoded) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(wrong)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(wrong());
    }
    let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = Zeroizing::new(decoded.ok_or_else(wrong)?);
    let (id, secret) = decoded.split_once(':').ok_or_else(wrong)?;
    Ok(Some(Basic { id: unescaped(id), secret: Zeroizing::new(unescaped(secret)) }))
}

fn unescaped(text: &str) -> String {
    form_urlencoded::parse(text.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}
