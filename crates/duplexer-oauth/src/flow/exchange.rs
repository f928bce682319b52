//! Requests to a token endpoint, and their answers (RFC 6749, sections 4 and 5).

use duplexer_oauth_base::Secret;
use duplexer_oauth_base::clock::Clock;
use duplexer_oauth_base::fetch::Answer;
use duplexer_types::text::shown;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::client::authentication::{Client, Form};
use crate::dpop::DpopKey;
use crate::dpop::nonce::Nonces;
use crate::dpop::proof::Proof;
use crate::error::OAuthError;
use crate::scope;
use crate::token::{TokenKind, Tokens};
use crate::web::{Web, unavailable};

/// A token endpoint, and who calls it.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) url: Url,
    pub(crate) issuer: &'a str,
    pub(crate) client: &'a Client,
    pub(crate) dpop: Option<&'a DpopKey>,
    pub(crate) web: &'a Web,
    pub(crate) nonces: &'a Nonces,
    pub(crate) time: &'a Clock,
}

/// Answer of a token endpoint.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    pub(crate) issued_token_type: Option<String>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
    error_description: Option<String>,
}

impl TokenEndpoint<'_> {
    /// Sends a form. A demanded nonce is sent in a second request; the grant is still unused then (OAC-74).
    pub(crate) async fn request(&self, form: &Form) -> Result<TokenAnswer, OAuthError> {
        for attempt in 1.. {
            let answer = self.send(form).await?;
            let is_new = self.nonces.learn(&self.url, &answer.headers);
            let failure = match self.read(form, &answer) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let wants_nonce = failure.code() == Some("use_dpop_nonce") && self.dpop.is_some();
            if attempt > 1 || !wants_nonce || !is_new {
                return Err(failure);
            }
        }
        Err(OAuthError::answer(self.url.as_str(), "it demands nonces without end"))
    }

    async fn send(&self, form: &Form) -> Result<Answer, OAuthError> {
        let (mut form, now) = (form.clone(), self.time.seconds());
        let authorization = self.client.authenticate(&mut form, self.issuer, now).await?;
        let proof = match self.dpop {
            None => None,
            Some(key) => {
                let nonce = self.nonces.of(&self.url);
                Some(Proof { method: "POST", url: &self.url, token: None, nonce, now }.sign(key).await?)
            }
        };
        let post = |mut request: reqwest::RequestBuilder| {
            if let Some(value) = authorization {
                request = request.header("authorization", value);
            }
            if let Some(proof) = proof {
                request = request.header("dpop", proof);
            }
            request.header("content-type", "application/x-www-form-urlencoded").body(form.encoded())
        };
        self.web.post(&self.url, post).await
    }

    fn read(&self, form: &Form, answer: &Answer) -> Result<TokenAnswer, OAuthError> {
        let secrets: Vec<_> = form.secrets().chain(self.client.secret.as_ref().map(Secret::reveal)).collect();
        // Some servers send an error with status 200 (OAC-43). It has no token.
        let is_error = || answer.status >= 400 || !has_token(&answer.body);
        if let Some(error) = read_error(&answer.body, &secrets).filter(|_| is_error()) {
            // The same request can succeed later.
            let is_temporary = matches!(error.code(), Some("temporarily_unavailable" | "server_error"));
            let text = error.to_string();
            return Err(if is_temporary { OAuthError::temporary(self.url.as_str(), text) } else { error });
        }
        match answer.status {
            200 | 201 => {}
            429 | 500.. => return Err(unavailable(self.url.as_str(), answer.status)),
            status => return Err(OAuthError::answer(self.url.as_str(), format!("status {status}"))),
        }
        let malformed = |_| OAuthError::answer(self.url.as_str(), "it is not an answer of a token endpoint");
        serde_json::from_slice(&answer.body).map_err(malformed)
    }

    /// Checks the answer of a grant and computes when its token expires (OAC-43, OAC-44). `asked` are the requested
    /// scopes, which apply if the answer names none (OAC-32).
    pub(crate) fn tokens(&self, answer: TokenAnswer, asked: &[String]) -> Result<Tokens, OAuthError> {
        let wrong = |reason: &str| OAuthError::answer(self.url.as_str(), reason);
        let is_visible = answer.access_token.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
        if answer.access_token.is_empty() || !is_visible {
            return Err(wrong("its access token is not visible ASCII"));
        }
        let kind = match (answer.token_type.to_ascii_lowercase().as_str(), self.dpop.is_some()) {
            ("bearer", _) => TokenKind::Bearer,
            ("dpop", true) => TokenKind::Dpop,
            _ => return Err(wrong("its type of token was not requested")),
        };
        let now = self.time.seconds();
        Ok(Tokens {
            access: Secret::new(answer.access_token),
            kind,
            refresh: answer.refresh_token.filter(|token| !token.is_empty()).map(Secret::new),
            received_at: now,
            expires_at: answer.expires_in.as_ref().and_then(seconds).map(|life| now.saturating_add(life)),
            scopes: answer.scope.map_or_else(|| asked.to_vec(), |scopes| scope::split(&scopes)),
        })
    }
}

impl TokenAnswer {
    /// Returns the assertion of a token exchange (RFC 8693), which is in the place of an access token.
    pub(crate) fn into_assertion(self) -> Secret {
        Secret::new(self.access_token)
    }
}

/// Reads an error answer (RFC 6749, section 5.2). The secrets of the request are removed: some servers repeat them.
pub(crate) fn read_error(body: &[u8], secrets: &[&str]) -> Option<OAuthError> {
    let read: ErrorAnswer = serde_json::from_slice(body).ok()?;
    let without_secrets = |text: String| {
        let secrets = secrets.iter().filter(|secret| !secret.is_empty());
        shown(&secrets.fold(text, |text, secret| text.replace(secret, "[secret]")))
    };
    let description = read.error_description.map(without_secrets);
    Some(OAuthError::Authority { error: without_secrets(read.error), description })
}

fn has_token(body: &[u8]) -> bool {
    serde_json::from_slice::<TokenAnswer>(body).is_ok()
}

/// Reads a number of seconds, which some servers write as text.
fn seconds(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and what is too large saturates"
    )]
    let rounded = |time: f64| (time >= 0.0).then_some(time as u64);
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(rounded)),
        Value::String(text) => text.trim().parse::<f64>().ok().and_then(rounded),
        _ => None,
    }
}
