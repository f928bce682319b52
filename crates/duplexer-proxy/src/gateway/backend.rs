//! One server of a gateway: its lists, its sessions and its health, apart from all other servers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use duplexer_client::{Change, Changes, Client};
use duplexer_core::dispatch::{Latch, lock};
use duplexer_server::RunningServer;
use duplexer_server::subscriptions::Event;
use duplexer_types::subscription::SubscriptionFilter;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::lists::{self, Item, List};
use super::names::BackendSettings;
use crate::bridge::listen::accepted;
use crate::link::Link;
use crate::pool::Pool;
use crate::remote::Remote;

/// Back-off before a server that has failed is tried again: doubled with each attempt in a row, up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Maximum time that lists wait for a server that has just been started.
const FIRST_LISTING: Duration = Duration::from_secs(5);
/// Minimum time between two requests for the lists of a server that reports changes. Equal changes are merged meanwhile.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of resources whose changes are passed on.
const MAX_WATCHED: usize = 1024;

/// A server of a gateway.
pub(crate) struct Backend {
    settings: BackendSettings,
    pool: Arc<Pool>,
    offered: Mutex<Offered>,
    /// Resources that clients are subscribed to.
    watched: Mutex<BTreeSet<String>>,
    signals: Signals,
    /// When its work started.
    begun: OnceLock<Instant>,
}

/// What the server offers, and whether it is there.
#[derive(Default)]
struct Offered {
    lists: [Arc<Vec<Item>>; 4],
    state: State,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    Starting,
    Up,
    Down(String),
}

#[derive(Default)]
struct Signals {
    /// Set after the first attempt to list what the server offers.
    first: Latch,
    /// Set when the server was removed from the gateway.
    ended: Latch,
    watched: Notify,
    health: Notify,
    /// Notified when a list was requested again.
    listed: Notify,
}

/// Health of one server of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Name of the server.
    pub name: String,
    /// Whether it was reached the last time.
    pub is_up: bool,
    /// Why it was not reached, if it was not.
    pub failure: Option<String>,
    /// Number of tools, prompts, resources and templates that it offers.
    pub items: usize,
}

impl Backend {
    pub(crate) fn new(settings: BackendSettings, remote: Remote) -> Arc<Self> {
        Arc::new(Self {
            settings,
            pool: Arc::new(Pool::new(Arc::new(remote.reach))),
            offered: Mutex::default(),
            watched: Mutex::default(),
            signals: Signals::default(),
            begun: OnceLock::new(),
        })
    }

    pub(crate) fn settings(&self) -> &BackendSettings {
        &self.settings
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns whether its work is to start now: once.
    pub(crate) fn begin(&self) -> bool {
        self.begun.set(Instant::now()).is_ok()
    }

    /// Returns what the server has last listed.
    pub(crate) fn list(&self, list: List) -> Arc<Vec<Item>> {
        lock(&self.offered).lists.get(list as usize).cloned().unwrap_or_default()
    }

    /// Waits until the server was asked for its lists for the first time, or has had the time for it: a server that hangs
    /// delays nothing after that.
    pub(crate) async fn first(&self) {
        let begun = self.begun.get().copied().unwrap_or_else(Instant::now);
        let _ = timeout_at(begun + FIRST_LISTING, self.signals.first.wait()).await;
    }

    pub(crate) fn health(&self) -> Health {
        let offered = lock(&self.offered);
        let failure = match &offered.state {
            State::Down(reason) => Some(reason.clone()),
            State::Starting | State::Up => None,
        };
        let items = offered.lists.iter().map(|list| list.len()).sum();
        let is_up = matches!(offered.state, State::Up);
        Health { name: self.settings.name().to_owned(), is_up, failure, items }
    }

    /// Waits until a list was requested again. For one reader.
    pub(crate) async fn relisted(&self) {
        self.signals.listed.notified().await;
    }

    pub(crate) async fn health_changed(&self) {
        self.signals.health.notified().await;
    }

    fn set_state(&self, state: State) {
        match &state {
            State::Down(reason) => tracing::warn!(server = self.settings.name(), %reason, "a server is down"),
            State::Up => tracing::info!(server = self.settings.name(), "a server is up"),
            State::Starting => {}
        }
        lock(&self.offered).state = state;
        self.signals.first.set();
        self.signals.health.notify_waiters();
    }

    /// Passes changes of a resource on from now.
    pub(crate) fn watch(&self, uri: &str) {
        let mut watched = lock(&self.watched);
        if watched.len() < MAX_WATCHED && watched.insert(uri.to_owned()) {
            self.signals.watched.notify_one();
        }
    }

    /// Ends its sessions.
    pub(crate) async fn close(&self) {
        self.signals.ended.set();
        self.pool.close().await;
    }

    /// Keeps the lists up to date until the server is removed.
    pub(crate) async fn supervise(self: Arc<Self>, running: RunningServer) {
        let link = self.pool.own();
        tokio::select! {
            () = self.signals.ended.wait() => {}
            () = self.follow_for_ever(&link, &running) => {}
        }
        link.close().await;
    }

    async fn follow_for_ever(&self, link: &Arc<Link>, running: &RunningServer) {
        let mut attempt = 0;
        loop {
            match self.follow(link, running).await {
                Ended::BeforeListing(reason) => {
                    attempt += 1;
                    self.set_state(State::Down(reason));
                }
                Ended::After(reason) => {
                    attempt = 0;
                    self.set_state(State::Down(reason));
                }
            }
            sleep((FIRST_BACKOFF * 2_u32.saturating_pow(attempt)).min(MAX_BACKOFF)).await;
        }
    }

    /// Opens a session, requests all lists, and follows their changes until the session ends.
    async fn follow(&self, link: &Arc<Link>, running: &RunningServer) -> Ended {
        let upstream = match link.upstream().await {
            Ok(upstream) => upstream,
            Err(error) => return Ended::BeforeListing(error.to_string()),
        };
        let client = &upstream.client;
        for list in List::ALL {
            if let Err(reason) = self.refresh(client, list).await {
                return Ended::BeforeListing(reason);
            }
        }
        self.set_state(State::Up);
        publish_all(running).await;
        loop {
            let filter = accepted(self.filter(), client.server_capabilities());
            let changes = match client.changes(filter).await {
                Ok(changes) => Some(changes),
                Err(error) => {
                    tracing::debug!(server = self.settings.name(), %error, "a server reports no changes");
                    None
                }
            };
            tokio::select! {
                () = client.closed() => return Ended::After("the session with it has ended".to_owned()),
                () = self.signals.watched.notified() => {}
                reason = self.apply(client, changes, running) => return Ended::After(reason),
            }
        }
    }

    fn filter(&self) -> SubscriptionFilter {
        let watched: Vec<String> = lock(&self.watched).iter().cloned().collect();
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true);
        if watched.is_empty() { filter } else { filter.resource_subscriptions(watched) }
    }

    /// Applies changes until a list cannot be requested, or the stream of changes is lost.
    async fn apply(&self, client: &Client, changes: Option<Changes>, running: &RunningServer) -> String {
        let Some(mut changes) = changes else { return std::future::pending().await };
        while let Some(Ok(change)) = changes.next().await {
            let (lists, event): (&[List], _) = match change {
                Change::Tools => (&[List::Tools], Event::ToolsChanged),
                Change::Prompts => (&[List::Prompts], Event::PromptsChanged),
                Change::Resources => (&[List::Resources, List::Templates], Event::ResourcesChanged),
                Change::Resource(uri) => (&[], Event::resource_updated(uri)),
                _ => continue,
            };
            for list in lists {
                if let Err(reason) = self.refresh(client, *list).await {
                    return reason;
                }
            }
            running.publish(event).await;
            if !lists.is_empty() {
                sleep(REFRESH_INTERVAL).await;
            }
        }
        "the subscription to its changes was lost".to_owned()
    }

    async fn refresh(&self, client: &Client, list: List) -> Result<(), String> {
        let items = if list.is_offered(client) {
            lists::fetch(client, list, &self.settings, self.pool.tool_headers()).await?
        } else {
            Vec::new()
        };
        if let Some(slot) = lock(&self.offered).lists.get_mut(list as usize) {
            *slot = Arc::new(items);
        }
        self.signals.listed.notify_one();
        Ok(())
    }
}

/// Why a session with a server ended.
enum Ended {
    BeforeListing(String),
    After(String),
}

/// Tells clients that all lists can have changed.
pub(crate) async fn publish_all(running: &RunningServer) {
    for event in [Event::ToolsChanged, Event::PromptsChanged, Event::ResourcesChanged] {
        running.publish(event).await;
    }
}
