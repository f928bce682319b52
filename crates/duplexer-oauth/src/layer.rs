//! The seam to the HTTP transport: headers of every request, and what follows from a refusal.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallClock};
use duplexer_core::error::BoxError;
use duplexer_http_client::{Authorization, OutgoingRequest, ResponseHead, Verdict};
use duplexer_oauth_base::Secret;
use duplexer_oauth_base::address::is_protected;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::acquire::Purpose;
use crate::challenge::Challenge;
use crate::dpop::proof::{Proof, has_nonce};
use crate::error::OAuthError;
use crate::grant::Grant;
use crate::oauth::{Inner, OAuth};
use crate::server::{Active, Server, Standing};
use crate::token::TokenKind;

/// Header with the proof of possession.
const DPOP: HeaderName = HeaderName::from_static("dpop");
/// Attempts of one request after which its refusal is final: nonce, refresh, login and two step-ups have been tried.
const MAX_ATTEMPTS: u32 = 5;

impl Authorization for OAuth {
    fn authorize<'a>(&'a self, request: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.0.authorize(request).await?) })
    }

    fn on_response<'a>(
        &'a self,
        request: &'a OutgoingRequest,
        response: ResponseHead<'a>,
    ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
        Box::pin(async move { Ok(self.0.judge(request, response).await?) })
    }

    fn clock(&self) -> Option<CallClock> {
        Some(self.0.patience.clone())
    }
}

impl Inner {
    async fn authorize(self: &Arc<Self>, request: &mut OutgoingRequest) -> Result<(), OAuthError> {
        if request.headers().contains_key(AUTHORIZATION) {
            let text =
                "the transport has an `Authorization` header of its own: remove it, or the OAuth client";
            return Err(OAuthError::Config(text.into()));
        }
        // A token never leaves without TLS, whatever the store has (OAC-46).
        if !is_protected(request.url()) {
            return Ok(());
        }
        let server = self.server(request.url());
        let Some(active) = self.usable(&server).await? else { return Ok(()) };
        let scheme = active.tokens.kind.scheme();
        let value = format!("{scheme} {}", active.tokens.access.reveal());
        let invalid = |_| OAuthError::Config("the token cannot be sent in a header".into());
        let mut value = HeaderValue::try_from(value).map_err(invalid)?;
        value.set_sensitive(true);
        if let (TokenKind::Dpop, Some(key)) = (active.tokens.kind, &active.dpop) {
            let proof = Proof {
                method: request.method().as_str(),
                url: request.url(),
                token: Some(&active.tokens.access),
                nonce: self.server_nonces.of(request.url()),
                now: self.now(),
            };
            let proof = HeaderValue::try_from(proof.sign(key).await?);
            let invalid = |_| OAuthError::Config("the proof cannot be sent in a header".into());
            request.headers_mut().insert(DPOP, proof.map_err(invalid)?);
        }
        request.headers_mut().insert(AUTHORIZATION, value);
        Ok(())
    }

    /// Returns the token to send, renewed if it is about to expire, or `None` without a valid one.
    pub(crate) async fn usable(
        self: &Arc<Self>,
        server: &Arc<Server>,
    ) -> Result<Option<Arc<Active>>, OAuthError> {
        let Some(active) = self.active(server).await? else {
            if !matches!(self.settings.grant, Grant::Function(_)) {
                return Ok(None);
            }
            self.acquire(server, Challenge::default(), Purpose::Access).await?;
            return self.active(server).await;
        };
        let is_valid = || !active.tokens.is_expired(self.now());
        let is_due = active.tokens.is_due(self.now(), self.jitter);
        if !is_due || is_valid() && server.state().is_renewal_paused() {
            return Ok(Some(active));
        }
        let is_login = self.settings.grant.is_login();
        let renewed = match &active.tokens.refresh {
            Some(_) => self.refresh(server, &active).await,
            // The challenge of the server starts a login.
            None if is_login => Ok(()),
            None => {
                let challenge = server.state().challenge.clone();
                self.acquire(server, challenge, Purpose::Access).await
            }
        };
        match renewed {
            Ok(()) => {}
            // The access token is used while it lives.
            Err(_) if is_valid() => {
                server.state().pause_renewal();
                return Ok(Some(active));
            }
            // The server is asked without a token, and its challenge starts a login.
            Err(error) if error.code().is_some() && is_login => {}
            Err(error) => return Err(error),
        }
        let current = self.active(server).await?;
        Ok(current.filter(|active| !active.tokens.is_expired(self.now())))
    }

    async fn judge(
        self: &Arc<Self>,
        request: &OutgoingRequest,
        response: ResponseHead<'_>,
    ) -> Result<Verdict, OAuthError> {
        self.server_nonces.learn(request.url(), response.headers);
        let server = self.server(request.url());
        server.note_peer(response.peer);
        let active = server.state().active.clone();
        let sent = sent_token(request);
        let is_current =
            matches!((&active, &sent), (Some(active), Some(sent)) if active.tokens.access == *sent);
        let status = response.status;
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            if let Some(active) = active.filter(|_| is_current && status.is_success()) {
                active.accept();
                server.state().step_ups.accepted();
            }
            return Ok(Verdict::Accept);
        }
        let challenge = Challenge::select(response.challenges());
        if request.attempt() >= MAX_ATTEMPTS {
            return Ok(Verdict::Accept);
        }
        if challenge.error() == Some("use_dpop_nonce") {
            return nonce_verdict(request, self.server_nonces.of(request.url()).as_deref());
        }
        if status == StatusCode::FORBIDDEN {
            return match (challenge.error(), active) {
                (Some("insufficient_scope"), Some(active)) if is_current => {
                    self.step_up(&server, &active, challenge).await
                }
                // The token has been replaced meanwhile.
                (Some("insufficient_scope"), Some(_)) if sent.is_some() => Ok(Verdict::SendAgain),
                _ => Ok(Verdict::Accept),
            };
        }
        match active {
            Some(active) if is_current => self.replace(&server, &active, challenge).await,
            // Another request has obtained it meanwhile.
            Some(active) if !active.tokens.is_expired(self.now()) => Ok(Verdict::SendAgain),
            // It was obtained for this request and has expired at once: another one would, too.
            Some(active) if active.standing() == Standing::Granted && request.attempt() > 1 => {
                Ok(Verdict::Accept)
            }
            _ => {
                self.acquire(&server, challenge, Purpose::Access).await?;
                Ok(Verdict::SendAgain)
            }
        }
    }

    /// Replaces a token that the server refuses: by a refresh, then by a new grant. A new token is not replaced.
    async fn replace(
        self: &Arc<Self>,
        server: &Arc<Server>,
        active: &Arc<Active>,
        challenge: Challenge,
    ) -> Result<Verdict, OAuthError> {
        if active.standing() == Standing::Granted {
            return Ok(Verdict::Accept);
        }
        if active.standing() != Standing::Refreshed && active.tokens.refresh.is_some() {
            match self.refresh(server, active).await {
                Ok(()) => return Ok(Verdict::SendAgain),
                // The authorization server refuses it: only a login helps.
                Err(error) if error.code().is_some() => {}
                Err(error) => return Err(error),
            }
        }
        self.acquire(server, challenge, Purpose::Access).await?;
        Ok(Verdict::SendAgain)
    }
}

/// Returns the token that a request was sent with.
fn sent_token(request: &OutgoingRequest) -> Option<Secret> {
    let value = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    value.split_once(' ').map(|(_, token)| Secret::new(token))
}

/// Sends a request again with the nonce that the server demands, once (OAC-74).
fn nonce_verdict(request: &OutgoingRequest, nonce: Option<&str>) -> Result<Verdict, OAuthError> {
    let proof = request.headers().get(DPOP).and_then(|proof| proof.to_str().ok());
    let wrong = |reason: &str| Err(OAuthError::answer(request.url().as_str(), reason));
    match (proof, nonce) {
        (None, _) => Ok(Verdict::Accept),
        (Some(_), None) => wrong("it demands a nonce, and gives none"),
        // The nonce of an earlier answer can be outdated.
        (Some(proof), Some(_)) if !has_nonce(proof) || request.attempt() == 1 => Ok(Verdict::SendAgain),
        (Some(_), Some(_)) => wrong("it does not accept its own nonce"),
    }
}
