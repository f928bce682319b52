//! State of one server: the token that is sent, and what has been tried.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use duplexer_oauth_base::address::is_public;
use duplexer_oauth_base::fetch::{Reach, is_public_host};
use tokio::time::Instant;
use url::Url;

use crate::challenge::Challenge;
use crate::dpop::DpopKey;
use crate::error::OAuthError;
use crate::flight::SingleFlight;
use crate::record::Entry;
use crate::settings::{Network, Owner};
use crate::step_up::StepUps;
use crate::store::Key;
use crate::token::Tokens;
use crate::web::{Peer, Web};

/// One server that requests are sent to.
pub(crate) struct Server {
    /// Without query and fragment.
    pub(crate) url: Url,
    pub(crate) key: Key,
    /// The one login or refresh that runs.
    pub(crate) flight: SingleFlight,
    public_web: OnceLock<Web>,
    any_web: OnceLock<Web>,
    /// Whether the server is on the public network. It stays there.
    is_public: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) loaded: bool,
    pub(crate) active: Option<Arc<Active>>,
    /// The last challenge, for grants that need no person.
    pub(crate) challenge: Challenge,
    /// After a failure, the next renewal of a valid token waits until then.
    pub(crate) no_renewal_before: Option<Instant>,
    pub(crate) step_ups: StepUps,
    /// Login page of a web application that has been offered, and its scopes.
    pub(crate) offered: Option<Offer>,
    /// Tokens that were received and could not be stored.
    pub(crate) unsaved: Option<(Entry, Tokens)>,
}

/// A login page that a web application has been given.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) url: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) at: Instant,
}

/// The token that is sent.
pub(crate) struct Active {
    pub(crate) entry: Entry,
    pub(crate) tokens: Tokens,
    pub(crate) dpop: Option<DpopKey>,
    standing: AtomicU8,
}

/// What is known of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Standing {
    /// From the store: it can be outdated.
    Stored,
    /// From a refresh, not used yet.
    Refreshed,
    /// From a login or grant, not used yet. If the server refuses it, another one would not help.
    Granted,
    /// The server has accepted it.
    Accepted,
}

impl Active {
    pub(crate) fn new(entry: Entry, tokens: Tokens, dpop: Option<DpopKey>, standing: Standing) -> Self {
        Self { entry, tokens, dpop, standing: AtomicU8::new(standing as u8) }
    }

    pub(crate) fn standing(&self) -> Standing {
        let number = self.standing.load(Ordering::Relaxed);
        let all = [Standing::Stored, Standing::Refreshed, Standing::Granted, Standing::Accepted];
        all.into_iter().find(|standing| *standing as u8 == number).unwrap_or(Standing::Stored)
    }

    pub(crate) fn accept(&self) {
        self.standing.store(Standing::Accepted as u8, Ordering::Relaxed);
    }
}

impl Server {
    pub(crate) fn new(url: Url, owner: &Owner) -> Self {
        let key = Key::new(&["credentials", &owner.application, &owner.account, url.as_str()]);
        Self {
            url,
            key,
            flight: SingleFlight::default(),
            public_web: OnceLock::new(),
            any_web: OnceLock::new(),
            is_public: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Returns the URL by which servers are distinguished: without query, fragment and last slash.
    pub(crate) fn identifier(url: &Url) -> Url {
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        url
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes where a response came from. A name that leads to a private address later, when discovery resolves it, does not
    /// make the server private.
    pub(crate) fn note_peer(&self, peer: Peer) {
        if peer.is_some_and(|peer| is_public(peer.ip())) {
            self.is_public.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the HTTP client for URLs that this server names (OAC-90).
    pub(crate) async fn web(&self, network: Network) -> Result<&Web, OAuthError> {
        let is_public = network == Network::LikeServer
            && (self.is_public.load(Ordering::Relaxed) || is_public_host(&self.url).await);
        let (cell, reach) =
            if is_public { (&self.public_web, Reach::Public) } else { (&self.any_web, Reach::Any) };
        if is_public {
            self.is_public.store(true, Ordering::Relaxed);
        }
        if let Some(web) = cell.get() {
            return Ok(web);
        }
        let web = Web::new(reach)?;
        Ok(cell.get_or_init(|| web))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-90: the owner of a public name cannot change what it resolves to, and so make this machine reachable.
    #[tokio::test]
    async fn a_server_that_answered_from_the_public_network_stays_public() {
        let owner = Owner { application: "test".to_owned(), account: String::new() };
        let private = Url::parse("http://127.0.0.1:1/metadata").unwrap();
        for (peer, is_refused) in [("1.1.1.1:443", true), ("127.0.0.1:443", false)] {
            let server = Server::new(Url::parse("https://localhost/mcp").unwrap(), &owner);
            server.note_peer(Some(peer.parse().unwrap()));
            let web = server.web(Network::LikeServer).await.unwrap();
            let failed = web.document(&private, 1024).await.err().unwrap();
            assert_eq!(matches!(failed, OAuthError::PrivateAddress { .. }), is_refused, "{peer}: {failed:?}");
        }
    }
}
