//! The authorization endpoint: validates the request of a client and shows the consent page.
//!
//! Errors are shown here until client and redirect URI are known to match. Later errors redirect the browser to the
//! client.

use http::header::{HOST, LOCATION};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::RegisteredClient;
use super::form::Form;
use super::{AuthorizationServer, Hosts, IssParameter};
use crate::error::OAuthError;
use crate::reply::{self, Reply};

/// A validated authorization request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AuthorizationRequest {
    pub(super) client_id: String,
    /// Target of the redirect back to the client.
    pub(super) redirect: String,
    /// The redirect URI as the client sent it. If it did, the token request must repeat it.
    pub(super) redirect_given: Option<String>,
    pub(super) state: Option<String>,
    pub(super) challenge: CodeChallenge,
    pub(super) scopes: Vec<String>,
    pub(super) resource: String,
}

/// What the token request of a code has to prove.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CodeChallenge {
    /// Digest of the PKCE verifier.
    pub(super) verifier: String,
    /// Thumbprint of the key to which the tokens are bound (`dpop_jkt`).
    #[serde(default)]
    pub(super) key: Option<String>,
}

/// Redirect target for errors after client and redirect URI are validated.
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
        if client.skips_consent() {
            let code = self.code(wanted, user).await;
            let code = code.map_err(|error| self.back(&back, &refusal_pairs(&error)))?;
            return Ok(self.back(&back, &[("code", code.reveal())]));
        }
        let asked = self.ask(parts, &client, &user, wanted).await;
        asked.map_err(|error| self.back(&back, &refusal_pairs(&error)))
    }

    fn wanted(
        &self,
        form: &Form,
        client: &RegisteredClient,
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
            challenge: CodeChallenge {
                verifier: challenge.to_owned(),
                key: form.get("dpop_jkt").map(Into::into),
            },
            scopes: self.scopes(form, client)?,
            resource: self.resource(form.get("resource"))?,
        })
    }

    /// Returns the requested scopes, or those of the registration, or all. The registration is not a limit: a client
    /// learns from later challenges which scopes it needs.
    fn scopes(&self, form: &Form, client: &RegisteredClient) -> Result<Vec<String>, OAuthError> {
        let known = &self.0.settings.scopes;
        let wanted = form.scopes().or_else(|| client.scopes()).unwrap_or_else(|| known.clone());
        match wanted.iter().find(|scope| !known.contains(scope)) {
            None => Ok(wanted),
            Some(scope) => Err(OAuthError::invalid_scope(scope)),
        }
    }

    /// Returns the requested resource. An older client can omit it if there is only one.
    pub(super) fn resource(&self, named: Option<&str>) -> Result<String, OAuthError> {
        let known = &self.0.settings.resources;
        let found = match named {
            Some(named) => known.iter().find(|known| crate::urls::is_same(known, named)),
            None => known.first().filter(|_| known.len() == 1),
        };
        found.cloned().ok_or_else(OAuthError::invalid_target)
    }

    /// Checks that the page is requested under the host of the issuer: under another name a foreign page could read it
    /// and submit its form.
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

    /// Redirects the browser to the client.
    fn back(&self, back: &ClientRedirect<'_>, pairs: &[(&str, &str)]) -> Reply {
        self.redirected(back.redirect, back.state, pairs)
    }

    /// Builds the redirect. All values are percent-encoded, so that none can leave its parameter.
    pub(super) fn redirected(&self, redirect: &str, state: Option<&str>, pairs: &[(&str, &str)]) -> Reply {
        let Ok(mut url) = Url::parse(redirect) else {
            return reply::error(&OAuthError::server_error());
        };
        let state = state.map(|state| ("state", state));
        let iss = (self.0.settings.iss == IssParameter::Sent).then(|| ("iss", self.issuer()));
        let own = pairs.iter().copied().chain(state).chain(iss);
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
