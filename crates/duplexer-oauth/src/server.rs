//! State of one server: the token that is sent, and what has been tried.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use duplexer_oauth_base::fetch::{Reach, is_public_host};
use tokio::sync::OnceCell;
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
use crate::web::Web;

/// One server that requests are sent to.
pub(crate) struct Server {
    /// Without query and fragment.
    pub(crate) url: Url,
    pub(crate) key: Key,
    /// The one login or refresh that runs.
    pub(crate) flight: SingleFlight,
    web: OnceCell<Web>,
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
        Self { url, key, flight: SingleFlight::default(), web: OnceCell::new(), state: Mutex::default() }
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

    /// Returns the HTTP client for URLs that this server names (OAC-90).
    pub(crate) async fn web(&self, network: Network) -> Result<&Web, OAuthError> {
        let make = || async {
            let is_public = network == Network::LikeServer && is_public_host(&self.url).await;
            Web::new(if is_public { Reach::Public } else { Reach::Any })
        };
        self.web.get_or_try_init(make).await
    }
}
