//! The beginning of a flow: a client sends its user's browser here and says what it wants.
//!
//! Until client and redirect URI are known to belong together, refusals are shown here; only then is the browser sent
//! back to the client with them.

use http::header::{HOST, LOCATION};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::Client;
use super::form::Form;
use super::{AuthorizationServer, Hosts};
use crate::error::OAuthError;
use crate::reply::{self, Reply};

/// What a client wants, once everything about it is fine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AuthorizationRequest {
    pub(super) client_id: String,
    /// Where the browser goes back to.
    pub(super) redirect: String,
    /// Whether the client named it; then it must do so again.
    pub(super) redirect_given: Option<String>,
    pub(super) state: Option<String>,
    pub(super) challenge: String,
    pub(super) scopes: Vec<String>,
    pub(super) resource: String,
}

/// Where refusals go once the client is known.
struct ClientRedirect<'a> {
    redirect: &'a str,
    state: Option<&'a str>,
}

impl AuthorizationServer {
    pub(super) async fn authorize(&self, parts: &Parts, body: &[u8]) -> Reply {
        reply::no_store(self.begin(parts, body).await.unwrap_or_else(|refusal| refusal))
    }

    async fn begin(&self, parts: &Parts, body: &[u8]) -> Result<Reply, Reply> {
        let here = |error: OAuthError| reply::error(&error);
        self.check_host(parts).map_err(here)?;
        let form = match parts.method {
            Method::GET => Form::parse(parts.uri.query().unwrap_or_default().as_bytes()),
            _ => Form::posted(&parts.headers, body),
        };
        let form = form.map_err(here)?;
        let id = form.required("client_id").map_err(here)?;
        let client = self.client(id).await.map_err(here)?.ok_or_else(|| here(unknown(id)))?;
        let redirect = client.redirect(form.get("redirect_uri")).map_err(here)?;
        let back = ClientRedirect { redirect: &redirect, state: form.get("state") };
        let wanted = self.wanted(&form, &client, &back);
        let wanted = wanted.map_err(|error| self.back(&back, &refusal_pairs(&error)))?;
        let user = self.0.records.0.user(parts).await?;
        let asked = self.ask(parts, &client, &user, wanted).await;
        asked.map_err(|error| self.back(&back, &refusal_pairs(&error)))
    }

    fn wanted(
        &self,
        form: &Form,
        client: &Client,
        back: &ClientRedirect<'_>,
    ) -> Result<AuthorizationRequest, OAuthError> {
        if form.required("response_type")? != "code" {
            return Err(OAuthError::new("unsupported_response_type", "response_type must be code"));
        }
        let challenge = form.required("code_challenge")?;
        if form.get("code_challenge_method").unwrap_or("S256") != "S256" {
            return Err(OAuthError::invalid_request("code_challenge_method must be S256"));
        }
        if challenge.len() != 43 || !challenge.bytes().all(is_base64url) {
            return Err(OAuthError::invalid_request("code_challenge is not a SHA-256 in base64url"));
        }
        Ok(AuthorizationRequest {
            client_id: client.id().to_owned(),
            redirect: back.redirect.to_owned(),
            redirect_given: form.get("redirect_uri").map(Into::into),
            state: back.state.map(Into::into),
            challenge: challenge.to_owned(),
            scopes: self.scopes(form, client)?,
            resource: self.resource(form.get("resource"))?,
        })
    }

    /// The scopes asked for, or those that the client registered with, or all. What it registered with is no limit:
    /// a client learns by challenges what it needs, long after that.
    fn scopes(&self, form: &Form, client: &Client) -> Result<Vec<String>, OAuthError> {
        let known = &self.0.settings.scopes;
        let wanted = form.scopes().or_else(|| client.scopes()).unwrap_or_else(|| known.clone());
        match wanted.iter().find(|scope| !known.contains(scope)) {
            None => Ok(wanted),
            Some(scope) => Err(OAuthError::invalid_scope(scope)),
        }
    }

    /// The server that tokens are wanted for; a client of old need not name it if there is only one.
    pub(super) fn resource(&self, named: Option<&str>) -> Result<String, OAuthError> {
        let known = &self.0.settings.resources;
        let found = match named {
            Some(named) => known.iter().find(|known| crate::urls::is_same(known, named)),
            None => known.first().filter(|_| known.len() == 1),
        };
        found.cloned().ok_or_else(OAuthError::invalid_target)
    }

    /// Pages for people are served under the issuer's name only: under another one, a page of somebody else could
    /// read them and press their buttons.
    pub(super) fn check_host(&self, parts: &Parts) -> Result<(), OAuthError> {
        if self.0.settings.hosts == Hosts::Any {
            return Ok(());
        }
        let named = parts.uri.authority().map(http::uri::Authority::as_str);
        let named = named.or_else(|| parts.headers.get(HOST).and_then(|host| host.to_str().ok()));
        let issuer = &self.0.issuer.url;
        let ours = named.and_then(|named| Url::parse(&format!("{}://{named}/", issuer.scheme())).ok());
        if ours.is_some_and(|ours| ours.origin() == issuer.origin()) {
            return Ok(());
        }
        let refusal = OAuthError::invalid_request("this page is not served under this name");
        Err(refusal.with_status(StatusCode::FORBIDDEN))
    }

    /// Sends the browser back to the client.
    fn back(&self, back: &ClientRedirect<'_>, pairs: &[(&str, &str)]) -> Reply {
        self.redirected(back.redirect, back.state, pairs)
    }

    /// Everything is percent-encoded, so nothing that a client says can leave its parameter.
    pub(super) fn redirected(&self, redirect: &str, state: Option<&str>, pairs: &[(&str, &str)]) -> Reply {
        let Ok(mut url) = Url::parse(redirect) else {
            return reply::error(&OAuthError::server_error());
        };
        let state = state.map(|state| ("state", state));
        let own = pairs.iter().copied().chain(state).chain([("iss", self.issuer())]);
        url.query_pairs_mut().extend_pairs(own);
        let mut reply = reply::empty(StatusCode::FOUND);
        reply::with_header(&mut reply, LOCATION, url.as_str());
        reply
    }
}

pub(super) fn refusal_pairs(error: &OAuthError) -> [(&str, &str); 2] {
    [("error", &error.error), ("error_description", &error.error_description)]
}

fn unknown(id: &str) -> OAuthError {
    OAuthError::invalid_request(format!("Client ID '{id}' not found"))
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}
