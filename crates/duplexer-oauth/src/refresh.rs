//! Renewal of a token: once for all callers, in this process and in others that share the store.

use std::sync::Arc;
use std::time::Duration;

use duplexer_oauth_base::Secret;
use duplexer_types::text::shown;
use tokio::time::Instant;

use crate::acquire::check_binding;
use crate::client::authentication::Form;
use crate::error::OAuthError;
use crate::event::Event;
use crate::oauth::Inner;
use crate::record::{Credentials, Entry};
use crate::server::{Active, Server, Standing, State};
use crate::token::Tokens;

/// Time for which no renewal is tried after a failed one, while the access token is still valid.
const RETRY_AFTER: Duration = Duration::from_secs(10);

impl State {
    /// Has the next requests use the access token as it is.
    pub(crate) fn pause_renewal(&mut self) {
        self.no_renewal_before = Some(Instant::now() + RETRY_AFTER);
    }

    pub(crate) fn is_renewal_paused(&self) -> bool {
        self.no_renewal_before.is_some_and(|time| Instant::now() < time)
    }
}

impl Inner {
    /// Renews a token, or waits for the renewal that runs. It runs to its end: a refresh token can be spent once only.
    pub(crate) async fn refresh(
        self: &Arc<Self>,
        server: &Arc<Server>,
        stale: &Arc<Active>,
    ) -> Result<(), OAuthError> {
        let (inner, server_of_task, stale) = (Arc::clone(self), Arc::clone(server), Arc::clone(stale));
        let start = move || async move {
            let outcome = inner.renew(&server_of_task, &stale).await;
            if let Err(error) = &outcome {
                inner.emit(&Event::Failed { error: error.clone() });
            }
            outcome
        };
        server.flight.completed(&self.tasks, start).await
    }

    async fn renew(&self, server: &Server, stale: &Active) -> Result<(), OAuthError> {
        let unsaved = server.state().unsaved.take();
        if let Some((entry, tokens)) = unsaved {
            return self.adopt(server, entry, tokens, Standing::Refreshed).await;
        }
        let _lock = self.parts.store.lock(&server.key).await?;
        let (_, credentials) = self.load(server).await?;
        // Another process may have renewed it while this one waited for the lock.
        let Some(entry) =
            credentials.current().filter(|entry| holds(entry, &stale.entry.issuer, &stale.tokens))
        else {
            return self.take_over(server, &credentials);
        };
        let spent = entry.tokens.clone().unwrap_or_else(|| stale.tokens.clone());
        let entry = entry.clone();
        match self.request(server, &entry, &spent).await {
            Ok(tokens) => {
                self.emit(&Event::Refreshed { issuer: shown(&entry.issuer) });
                self.adopt(server, entry, tokens, Standing::Refreshed).await
            }
            Err(error) => {
                self.note_refusal(server, &entry, &spent, &error).await?;
                Err(error)
            }
        }
    }

    async fn request(&self, server: &Server, entry: &Entry, spent: &Tokens) -> Result<Tokens, OAuthError> {
        let missing = || OAuthError::Config("the client of the stored token is no longer configured".into());
        let identities = self.settings.grant.identities();
        let client = entry.client.resolve(identities, &entry.issuer).ok_or_else(missing)?;
        let dpop = self.dpop_key(entry, spent)?;
        let web = server.web(self.settings.network).await?;
        let endpoint = self.token_endpoint(web, entry, &client, dpop.as_ref())?;
        let mut form = Form::new("refresh_token");
        form.add("refresh_token", spent.refresh.as_ref().map(Secret::reveal).unwrap_or_default());
        form.add_if("resource", entry.resource.as_deref());
        let mut tokens = endpoint.tokens(endpoint.request(&form).await?, &spent.scopes)?;
        check_binding(self, &tokens)?;
        // An answer without a refresh token does not revoke the old one (OAC-48).
        tokens.refresh = tokens.refresh.or_else(|| spent.refresh.clone());
        Ok(tokens)
    }

    /// Uses a token that another process has stored since this one read the store, such as the end of a login that began
    /// here. Returns whether there is one: then no second login is required.
    pub(crate) fn take_over_newer(
        &self,
        server: &Server,
        credentials: &Credentials,
    ) -> Result<bool, OAuthError> {
        let Some(found) = self.stored_token(credentials)? else { return Ok(false) };
        let can_be_sent = !found.tokens.is_expired(self.now()) || found.tokens.refresh.is_some();
        let mut state = server.state();
        let is_refused = state.active.as_ref().is_some_and(|it| it.tokens.access == found.tokens.access);
        if !can_be_sent || is_refused {
            return Ok(false);
        }
        state.loaded = true;
        state.offered = None;
        state.active = Some(found);
        Ok(true)
    }

    /// Uses what another process has stored.
    fn take_over(&self, server: &Server, credentials: &Credentials) -> Result<(), OAuthError> {
        let found = self.stored_token(credentials)?;
        let mut state = server.state();
        let has_token = found.is_some();
        state.active = found;
        if has_token {
            return Ok(());
        }
        // It has been removed: a login is required.
        let gone = OAuthError::Authority { error: "invalid_grant".to_owned(), description: None };
        Err(gone)
    }

    /// Removes what the authorization server has declared invalid, and nothing else (OAC-49).
    async fn note_refusal(
        &self,
        server: &Server,
        entry: &Entry,
        spent: &Tokens,
        error: &OAuthError,
    ) -> Result<(), OAuthError> {
        let removes_client = match error.code() {
            Some("invalid_grant") => false,
            Some("invalid_client" | "unauthorized_client") => true,
            _ => return Ok(()),
        };
        let is_spent = |tokens: &Tokens| tokens.refresh == spent.refresh;
        let changed = self.update(server, |credentials| {
            let Some(found) = credentials.entry_mut(&entry.issuer) else { return };
            if !found.tokens.as_ref().is_some_and(is_spent) {
                return;
            }
            found.tokens = None;
            if removes_client && found.client.id == entry.client.id {
                credentials.remove(&entry.issuer);
            }
        });
        let credentials = changed.await?;
        let newer = self.stored_token(&credentials)?;
        server.state().active = newer;
        Ok(())
    }
}

/// Returns whether a stored entry still holds these tokens. An authorization server need not replace the refresh token, so the
/// access token counts too.
fn holds(entry: &Entry, issuer: &str, tokens: &Tokens) -> bool {
    let is_same = |stored: &Tokens| stored.refresh == tokens.refresh && stored.access == tokens.access;
    entry.issuer == issuer && entry.tokens.as_ref().is_some_and(is_same)
}
