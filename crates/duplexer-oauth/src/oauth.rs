//! The OAuth client, and what all its parts share.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use duplexer_core::dispatch::CallClock;
use duplexer_oauth_base::clock::Clock;
use url::Url;

use crate::dpop::DpopKey;
use crate::dpop::nonce::Nonces;
use crate::error::OAuthError;
use crate::event::Event;
use crate::flight::Tasks;
use crate::record::{Credentials, Entry};
use crate::server::{Active, Server, Standing};
use crate::settings::{OnEvent, Settings};
use crate::store::{CredentialStore, Generation, Record, Swapped};
use crate::token::{TokenKind, Tokens};

/// Maximum servers whose state is kept in memory.
const MAX_SERVERS: usize = 256;
/// Maximum attempts to change a record that others change at the same time.
const MAX_SWAPS: usize = 8;

/// OAuth for the requests of an HTTP transport: it obtains, stores, renews and sends tokens.
///
/// Cheap to clone; clones share everything. One value can serve transports to several servers.
///
/// ```
/// use std::sync::Arc;
///
/// use duplexer_http_client::HttpTransport;
/// use duplexer_oauth::OAuth;
///
/// let login = OAuth::login_with_browser("my-program").build()?;
/// // One login for both: the store has a token for each server.
/// let notes = HttpTransport::new("https://notes.example.com/mcp")?.authorization(Arc::new(login.clone()));
/// let mail = HttpTransport::new("https://mail.example.com/mcp")?.authorization(Arc::new(login));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct OAuth(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) parts: Parts,
    /// Stands still while a person logs in.
    pub(crate) patience: CallClock,
    /// Nonces of authorization servers.
    pub(crate) nonces: Nonces,
    /// Nonces of servers, which can have the same origin.
    pub(crate) server_nonces: Nonces,
    pub(crate) tasks: Tasks,
    servers: Mutex<HashMap<Url, Arc<Server>>>,
    /// Part of the margin before an expiry by which processes differ.
    pub(crate) jitter: u8,
}

/// Replaceable parts.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn CredentialStore>,
    pub(crate) time: Clock,
    pub(crate) on_event: Option<OnEvent>,
}

impl OAuth {
    pub(crate) fn new(settings: Settings, parts: Parts) -> Self {
        let jitter = duplexer_oauth_base::secret::random::<1>().map_or(0, |[byte]| byte);
        Self(Arc::new(Inner {
            settings,
            parts,
            patience: CallClock::new(),
            nonces: Nonces::default(),
            server_nonces: Nonces::default(),
            tasks: Tasks::default(),
            servers: Mutex::default(),
            jitter,
        }))
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("application", &self.0.settings.owner.application)
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) fn now(&self) -> u64 {
        self.parts.time.seconds()
    }

    pub(crate) fn emit(&self, event: &Event) {
        match event {
            // The URL of a login has its state.
            Event::Waiting { .. } | Event::Failed { error: OAuthError::LoginRequired { .. } } => {
                tracing::debug!("waiting for a login");
            }
            Event::Failed { error } => tracing::debug!(%error, "no token"),
            other => tracing::debug!(event = ?other, "authorization"),
        }
        if let Some(handler) = &self.parts.on_event {
            handler(event);
        }
    }

    /// Returns the state of the server of a URL.
    pub(crate) fn server(&self, url: &Url) -> Arc<Server> {
        let id = Server::identifier(url);
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&id) {
            return Arc::clone(server);
        }
        if servers.len() >= MAX_SERVERS {
            // What is removed is loaded from the store when it is needed again.
            servers.retain(|_, server| Arc::strong_count(server) > 1);
        }
        let server = Arc::new(Server::new(id.clone(), &self.settings.owner));
        if servers.len() < MAX_SERVERS {
            servers.insert(id, Arc::clone(&server));
        }
        server
    }

    /// Returns the token of a server. It is loaded from the store once.
    pub(crate) async fn active(&self, server: &Server) -> Result<Option<Arc<Active>>, OAuthError> {
        {
            let state = server.state();
            if state.loaded {
                return Ok(state.active.clone());
            }
        }
        let (_, credentials) = self.load(server).await?;
        let active = self.stored_token(&credentials)?;
        let mut state = server.state();
        if !state.loaded {
            state.loaded = true;
            state.active = active;
        }
        Ok(state.active.clone())
    }

    /// Returns the stored token, if the configuration still accepts it: its client, its issuer and its kind.
    pub(crate) fn stored_token(&self, credentials: &Credentials) -> Result<Option<Arc<Active>>, OAuthError> {
        let Some(entry) = credentials.current() else { return Ok(None) };
        let Settings { grant, issuers, dpop, .. } = &self.settings;
        let is_ours = entry.client.resolve(grant.identities(), &entry.issuer).is_some()
            && issuers.pinned.as_ref().is_none_or(|pinned| issuers.is_same(pinned, &entry.issuer));
        match (&entry.tokens, is_ours) {
            (Some(tokens), true) if tokens.kind == TokenKind::Dpop || !dpop.is_required() => {
                let dpop = self.dpop_key(entry, tokens)?;
                if tokens.kind == TokenKind::Dpop && dpop.is_none() {
                    // Without its key, a bound token is of no use.
                    return Ok(None);
                }
                Ok(Some(Arc::new(Active::new(entry.clone(), tokens.clone(), dpop, Standing::Stored))))
            }
            _ => Ok(None),
        }
    }

    /// Returns the key to which tokens are bound.
    pub(crate) fn dpop_key(&self, entry: &Entry, tokens: &Tokens) -> Result<Option<DpopKey>, OAuthError> {
        match tokens.kind {
            TokenKind::Dpop => self.settings.dpop.key_of(entry),
            TokenKind::Bearer => Ok(None),
        }
    }

    pub(crate) async fn load(
        &self,
        server: &Server,
    ) -> Result<(Option<Generation>, Credentials), OAuthError> {
        match self.parts.store.load(&server.key).await? {
            None => Ok((None, Credentials::default())),
            Some(record) => Ok((Some(record.generation()), Credentials::read(&record)?)),
        }
    }

    /// Changes the stored credentials. `change` is called again with what another process has written meanwhile.
    pub(crate) async fn update(
        &self,
        server: &Server,
        mut change: impl FnMut(&mut Credentials) + Send,
    ) -> Result<Credentials, OAuthError> {
        let (mut generation, mut credentials) = self.load(server).await?;
        for _ in 0..MAX_SWAPS {
            change(&mut credentials);
            let new = if credentials.is_empty() { None } else { Some(credentials.to_record()?) };
            if generation.is_none() && new.is_none() {
                return Ok(credentials);
            }
            match self.parts.store.swap(&server.key, generation, new).await? {
                Swapped::Done => return Ok(credentials),
                Swapped::Conflict(found) => {
                    generation = found.as_ref().map(Record::generation);
                    credentials =
                        found.as_ref().map_or_else(|| Ok(Credentials::default()), Credentials::read)?;
                }
            }
        }
        let text = "the record is changed all the time";
        Err(duplexer_core::error::StoreError::Unavailable(text.into()).into())
    }

    /// Stores new tokens, then uses them. Tokens that could not be stored are kept, and stored before the next use.
    pub(crate) async fn adopt(
        &self,
        server: &Server,
        entry: Entry,
        tokens: Tokens,
        standing: Standing,
    ) -> Result<(), OAuthError> {
        let mut full = entry.clone();
        full.tokens = Some(tokens.clone());
        if let Err(error) = self.update(server, |credentials| credentials.put(full.clone())).await {
            server.state().unsaved = Some((entry, tokens));
            return Err(error);
        }
        let dpop = self.dpop_key(&full, &tokens)?;
        let mut state = server.state();
        state.unsaved = None;
        state.offered = None;
        state.no_renewal_before = None;
        state.loaded = true;
        state.active = Some(Arc::new(Active::new(full, tokens, dpop, standing)));
        Ok(())
    }
}
