//! A login from the identity of the client to its tokens.

use std::time::Duration;

use duplexer_oauth_base::clock;
use duplexer_types::text::shown;
use tokio::time::{Instant, timeout};
use url::Url;

use super::loopback::Listener;
use super::present::Presenter;
use super::{Interaction, Login};
use crate::acquire::{Acquisition, check_binding};
use crate::client::identify::configured;
use crate::client::registration::Registration;
use crate::error::OAuthError;
use crate::event::Event;
use crate::flow::callback::Callback;
use crate::flow::pending::{LIFETIME, Pending};
use crate::oauth::Inner;
use crate::record::{ClientOrigin, Credentials, Entry, StoredClient};
use crate::scope;
use crate::server::Offer;
use crate::store::{Key, Record, Swapped};
use crate::token::Tokens;
use crate::web::Web;

/// Maximum time that a person has.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// Time for which a web application is given the same login page again.
const OFFER_TIME: Duration = Duration::from_secs(300);

impl Acquisition<'_> {
    /// Performs a login. The registration is stored before the browser opens, so that a crash does not lose it.
    pub(crate) async fn login(&self, login: &Login) -> Result<(Entry, Tokens), OAuthError> {
        let authority = &self.discovered.authority;
        authority.check_pkce(&self.inner.settings.issuers)?;
        let endpoint = authority.authorization_endpoint()?;
        authority.token_endpoint()?;
        let stored = self.stored.entry(&authority.issuer).map(|entry| &entry.client);
        let listener = match &login.interaction {
            Interaction::Web(_) => None,
            Interaction::Loopback(settings, _) => {
                let earlier = stored.and_then(|client| client.redirect_uri.as_deref());
                Some(settings.bind(earlier.and_then(|uri| settings.port_of(uri))).await?)
            }
        };
        let redirect_uri = match &login.interaction {
            Interaction::Web(redirect_uri) => redirect_uri.clone(),
            Interaction::Loopback(..) => listener.as_ref().map(Listener::redirect_uri).unwrap_or_default(),
        };
        let client = self.identify(login, stored, &redirect_uri).await?;
        let entry = self.entry(client)?;
        self.inner.update(self.server, |credentials| credentials.put_client(entry.clone())).await?;
        let now = self.inner.now();
        let pending = Pending::new(&self.server.url, self.discovered, entry, &redirect_uri, now)?;
        let thumbprint = self.dpop_key(&pending.entry)?.map(|key| key.thumbprint());
        let url = String::from(pending.url(&endpoint, thumbprint.as_deref()));
        match (&login.interaction, &listener) {
            (Interaction::Loopback(_, presenter), Some(listener)) => {
                self.inner.emit(&Event::Waiting { url: url.clone() });
                let callback = self.ask(&**presenter, listener, &pending, &url).await?;
                self.inner.redeem(self.web, pending, callback).await
            }
            _ => Err(self.offer(pending, url).await?),
        }
    }

    /// Returns the client of the login (OAC-22): configured, registered earlier, or registered now.
    async fn identify(
        &self,
        login: &Login,
        stored: Option<&StoredClient>,
        redirect_uri: &str,
    ) -> Result<StoredClient, OAuthError> {
        let authority = &self.discovered.authority;
        if let Some(identity) = configured(&login.identities, authority) {
            let client = identity.resolve(authority);
            client.check(authority)?;
            return Ok(identity.stored(client.method, Some(redirect_uri.to_owned())));
        }
        if let Some(client) = stored.filter(|client| client.fits(redirect_uri, self.inner.now())) {
            return Ok(client.clone());
        }
        let registration = Registration {
            document: &login.document,
            redirect_uri,
            scope: scope::joined(&self.scopes),
            dpop: self.inner.settings.dpop.is_required(),
        };
        let client = registration.register(self.web, authority).await?;
        self.inner
            .emit(&Event::Registered { issuer: shown(&authority.issuer), client_id: shown(&client.id) });
        Ok(client)
    }

    /// Shows the page and waits for the redirect. No timeout of a call runs meanwhile (OAC-06).
    async fn ask(
        &self,
        presenter: &dyn Presenter,
        listener: &Listener,
        pending: &Pending,
        url: &str,
    ) -> Result<Callback, OAuthError> {
        let _pause = self.inner.patience.pause();
        let by_presenter = async {
            match presenter.present(url).await {
                Ok(Some(text)) => Callback::parse(&text),
                // The redirect reaches the listener.
                Ok(None) => std::future::pending().await,
                Err(error) => Err(OAuthError::Present { reason: shown(&error.to_string()) }),
            }
        };
        let answered = async {
            tokio::select! {
                callback = by_presenter => callback,
                callback = listener.wait(pending) => Ok(callback),
            }
        };
        timeout(LOGIN_TIMEOUT, answered).await.map_err(|_| OAuthError::LoginTimedOut)?
    }

    /// Stores the login for another request of a web application, and returns the error with the URL of its page.
    async fn offer(&self, pending: Pending, url: String) -> Result<OAuthError, OAuthError> {
        let scopes = pending.entry.requested.clone();
        let earlier = self.server.state().offered.clone();
        let is_recent = |offer: &Offer| offer.scopes == scopes && offer.at.elapsed() < OFFER_TIME;
        if let Some(offer) = earlier.filter(is_recent) {
            return Ok(OAuthError::LoginRequired { url: offer.url });
        }
        self.inner.keep_pending(&pending).await?;
        self.inner.emit(&Event::Waiting { url: url.clone() });
        self.server.state().offered = Some(Offer { url: url.clone(), scopes, at: Instant::now() });
        Ok(OAuthError::LoginRequired { url })
    }
}

impl Inner {
    /// Returns the name of a stored login. The state itself is a secret.
    pub(crate) fn pending_key(&self, state: &duplexer_oauth_base::Secret) -> Key {
        let owner = &self.settings.owner;
        Key::new(&["login", &owner.application, &owner.account, &state.digest()])
    }

    async fn keep_pending(&self, pending: &Pending) -> Result<(), OAuthError> {
        let failed = |error: serde_json::Error| duplexer_core::error::StoreError::Failed(error.into());
        let content = serde_json::to_vec(pending).map_err(failed)?;
        let until = clock::at(pending.started_at.saturating_add(LIFETIME.as_secs()));
        let record = Record::new(content)?.until(until);
        match self.parts.store.swap(&self.pending_key(&pending.state), None, Some(record)).await? {
            Swapped::Done => Ok(()),
            Swapped::Conflict(_) => Err(OAuthError::Callback("its state is in use".into())),
        }
    }

    /// Exchanges the code of a login for tokens (OAC-42).
    pub(crate) async fn redeem(
        &self,
        web: &Web,
        pending: Pending,
        callback: Callback,
    ) -> Result<(Entry, Tokens), OAuthError> {
        let code = callback.code(&pending)?;
        let Pending { server, verifier, entry, redirect_uri, .. } = pending;
        let missing = || OAuthError::Config("the client of this login is no longer configured".into());
        let identities = self.settings.grant.identities();
        let client = entry.client.resolve(identities, &entry.issuer).ok_or_else(missing)?;
        let dpop = self.settings.dpop.key_of(&entry)?;
        let endpoint = self.token_endpoint(web, &entry, &client, dpop.as_ref())?;
        let mut form = crate::client::authentication::Form::new("authorization_code");
        form.add("code", code.reveal());
        form.add("redirect_uri", &redirect_uri);
        form.add("code_verifier", verifier.reveal());
        form.add_if("resource", entry.resource.as_deref());
        let answer = match endpoint.request(&form).await {
            Ok(answer) => answer,
            Err(error) => {
                self.forget_client(&server, &entry, &error).await?;
                return Err(error);
            }
        };
        let tokens = endpoint.tokens(answer, &entry.requested)?;
        check_binding(self, &tokens)?;
        Ok((entry, tokens))
    }

    /// Removes a registration that the authorization server no longer knows, so that the next login makes another one.
    async fn forget_client(&self, server: &str, entry: &Entry, error: &OAuthError) -> Result<(), OAuthError> {
        let is_unknown = matches!(error.code(), Some("invalid_client" | "unauthorized_client"));
        let Some(url) = Url::parse(server).ok().filter(|_| is_unknown) else { return Ok(()) };
        // Tokens that the client still has are not lost with it.
        let is_only_registered = |found: &Entry| {
            let is_same = found.client.id == entry.client.id;
            is_same && found.client.origin == ClientOrigin::Registered && found.tokens.is_none()
        };
        let forget = |credentials: &mut Credentials| {
            if credentials.entry(&entry.issuer).is_some_and(is_only_registered) {
                credentials.remove(&entry.issuer);
            }
        };
        self.update(&self.server(&url), forget).await.map(drop)
    }
}
