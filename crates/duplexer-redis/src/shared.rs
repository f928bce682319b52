//! The entry point: one connection to the store, and the stores of a server on it.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::run::RunId;
use duplexer_http::SharedStores;
use redis::Client;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bus::{self, LocalListeners, RedisBus};
use crate::check;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::events::Events;
use crate::keys::Keys;
use crate::lease::{self, Lease};
use crate::link::{Link, Node, Settings};
use crate::nodes::{self, Inbox, RedisNodes};
use crate::sessions::Sessions;
use crate::stats::{Counters, Stats};
use crate::wakes::{self, Wakes};

/// Time within which [`Shared::connect`] succeeds or fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest namespace, in bytes.
const MAX_NAMESPACE: usize = 64;

/// One node's link to a Redis or Valkey that several nodes share. Clones share the connection.
///
/// The link ends with the last clone and the last store made of it.
#[derive(Clone)]
pub struct Shared {
    node: Arc<Node>,
    inbox: Arc<Inbox>,
    changes: Arc<LocalListeners>,
}

impl Shared {
    /// Connects to a store: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, `rediss://...` (with the feature `rustls`) or
    /// `unix:///PATH`. Await the returned value.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), duplexer_redis::ConnectError> {
    /// use duplexer_redis::Shared;
    ///
    /// let shared = Shared::connect("redis://127.0.0.1:6379").namespace("prod").await?;
    /// # Ok(()) }
    /// ```
    pub fn connect(url: impl Into<String>) -> Connect {
        Connect {
            url: url.into(),
            namespace: "default".to_owned(),
            node: None,
            response_timeout: Duration::from_secs(1),
            settings: Settings::default(),
        }
    }

    /// Returns the bus, for [`ServerBuilder::subscriptions`](duplexer_server::ServerBuilder::subscriptions).
    pub fn bus(&self) -> RedisBus {
        RedisBus::new(Arc::clone(&self.node), Arc::clone(&self.changes))
    }

    /// Returns the store for the records of an authorization server.
    #[cfg(feature = "auth")]
    pub fn records(&self) -> crate::RedisRecords {
        crate::RedisRecords(Arc::clone(&self.node))
    }

    /// Returns the stores, for [`StreamableHttpBuilder::scale_out`](duplexer_http::StreamableHttpBuilder::scale_out),
    /// which also takes `&Shared`.
    pub fn stores(&self) -> SharedStores {
        let nodes = RedisNodes { node: Arc::clone(&self.node), inbox: Arc::clone(&self.inbox) };
        let (sessions, events) = (Sessions(Arc::clone(&self.node)), Events(Arc::clone(&self.node)));
        SharedStores::new(Arc::new(sessions), Arc::new(events), Arc::new(nodes))
    }

    /// Returns the current run of this node.
    pub fn run(&self) -> RunId {
        self.node.lease.run()
    }

    /// Returns the counters of this node.
    pub fn stats(&self) -> Stats {
        self.node.counters.read()
    }
}

impl From<&Shared> for SharedStores {
    fn from(shared: &Shared) -> Self {
        shared.stores()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("run", &self.run()).finish_non_exhaustive()
    }
}

/// A connection to be made. Returned by [`Shared::connect`]; await it.
#[must_use = "nothing is connected until it is awaited"]
pub struct Connect {
    url: String,
    namespace: String,
    node: Option<String>,
    response_timeout: Duration,
    settings: Settings,
}

impl Connect {
    /// Sets the namespace, which is part of every key. Servers that share a store need different ones. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the name of this node, for people. Default: the process id.
    pub fn node(mut self, name: impl Into<String>) -> Self {
        self.node = Some(name.into());
        self
    }

    /// Sets how long one exchange with the store can take. Default: 1 s.
    pub fn response_timeout(mut self, limit: Duration) -> Self {
        self.response_timeout = limit;
        self
    }

    /// Sets how long other nodes wait for a node that has died. Default: 10 s.
    pub fn lease(mut self, length: Duration) -> Self {
        self.settings.lease = length;
        self
    }

    /// Sets how often a node looks for messages and changes without a wake-up. Default: 1 s.
    pub fn poll(mut self, interval: Duration) -> Self {
        self.settings.poll = interval;
        self
    }

    /// Sets how long an unused session is kept. Default: 30 minutes.
    pub fn session_expiry(mut self, expiry: Duration) -> Self {
        self.settings.session_expiry = expiry;
        self
    }

    /// Sets how many changes the log keeps, for at most 10 minutes. Default: 100 000.
    pub fn change_log(mut self, entries: usize) -> Self {
        self.settings.change_log = entries.max(1);
        self
    }

    async fn open(self) -> Result<Shared, ConnectError> {
        if !is_namespace(&self.namespace) {
            return Err(ConnectError::Namespace(self.namespace));
        }
        let client = client(&self.url)?;
        let address = check::address(&client);
        match timeout(CONNECT_TIMEOUT, self.open_client(client, address.clone())).await {
            Ok(outcome) => outcome,
            Err(_) => Err(check::too_slow(address, CONNECT_TIMEOUT)),
        }
    }

    async fn open_client(self, client: Client, address: String) -> Result<Shared, ConnectError> {
        let failed = |error: duplexer_core::error::StoreError| ConnectError::Failed(error.into());
        let counters = Arc::new(Counters::default());
        let connection = Connection::open(&client, self.response_timeout, Arc::clone(&counters))
            .await
            .map_err(|error| check::no_connection(address, error))?;
        let keys = Keys::new(&self.namespace);
        check::check(&connection, &keys).await?;
        let node = self.node.unwrap_or_else(|| format!("process {}", std::process::id()));
        let lease = Lease::new(node, self.settings.lease);
        let settings = self.settings;
        let link = Arc::new(Link { connection, keys, settings, counters, wakes: Wakes::default(), lease });
        lease::take(&link).await.map_err(failed)?;
        let inbox = Arc::new(Inbox::default());
        let changes = Arc::new(LocalListeners::new(bus::last(&link).await.map_err(failed)?));
        let mut tasks = JoinSet::new();
        tasks.spawn(lease::renew(Arc::clone(&link)));
        tasks.spawn(wakes::listen(Arc::clone(&link), client));
        tasks.spawn(nodes::read(Arc::clone(&link), Arc::clone(&inbox)));
        tasks.spawn(bus::read(Arc::clone(&link), Arc::clone(&changes)));
        Ok(Shared { node: Arc::new(Node::new(link, tasks)), inbox, changes })
    }
}

impl IntoFuture for Connect {
    type Output = Result<Shared, ConnectError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL can contain a password.
        f.debug_struct("Connect").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

fn is_namespace(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_NAMESPACE).contains(&text.len()) && text.bytes().all(allowed)
}

fn client(url: &str) -> Result<Client, ConnectError> {
    if url.starts_with("rediss://") {
        enable_tls()?;
    }
    // The error of the crate names the fault and not the URL, which can contain a password.
    Client::open(url).map_err(|error| ConnectError::Url(error.category().to_owned()))
}

#[cfg(feature = "rustls")]
#[expect(clippy::unnecessary_wraps, reason = "fails without the feature")]
fn enable_tls() -> Result<(), ConnectError> {
    // Fails if the program has chosen a provider before, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Ok(())
}

#[cfg(not(feature = "rustls"))]
fn enable_tls() -> Result<(), ConnectError> {
    Err(ConnectError::NoTls)
}
