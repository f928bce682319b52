//! The entry point: one connection to the store, and the stores of a server on it.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::run::RunId;
use duplexer_http::SharedStores;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::address::Address;
use crate::bus::{self, LocalListeners, RedisBus};
use crate::check;
use crate::connect::Connect;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::events::Events;
use crate::keys::Keys;
use crate::lease::{self, Lease};
use crate::link::{Link, Node};
use crate::nodes::{self, Inbox, RedisNodes};
use crate::rate_limiter::RedisRateLimiter;
use crate::seal::Seal;
use crate::sessions::Sessions;
use crate::stats::{Counters, Stats};
use crate::tasks::RedisTasks;
use crate::wakes::{self, Wakes};

/// Time within which [`Shared::connect`] succeeds or fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// Connects to a store. Await the returned value. The URL is one of:
    ///
    /// - `redis://USER:PASSWORD@HOST:PORT/DATABASE`
    /// - `rediss://...`: the same over TLS (feature `rustls`)
    /// - `unix:///PATH[?db=DATABASE&user=USER&pass=PASSWORD]`
    /// - `redis://[USER:PASSWORD@]HOST[:PORT],HOST[:PORT],...`: some servers of a cluster (feature `cluster`)
    /// - `redis-sentinel://[USER:PASSWORD@]HOST[:PORT],.../NAME[/DATABASE]`: sentinels, and the name of the primary server
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), duplexer_redis::ConnectError> {
    /// use duplexer_redis::Shared;
    ///
    /// let shared = Shared::connect("redis://127.0.0.1:6379").namespace("prod").await?;
    /// # Ok(()) }
    /// ```
    pub fn connect(url: impl Into<String>) -> Connect {
        Connect::new(url.into())
    }

    pub(crate) async fn open(mut settings: Connect) -> Result<Self, ConnectError> {
        let seal = settings.check()?;
        let address = Address::parse(&settings.url, &settings.access)?;
        let slow = || check::too_slow(&address, CONNECT_TIMEOUT);
        timeout(CONNECT_TIMEOUT, Self::start(&settings, seal, &address)).await.unwrap_or_else(|_| Err(slow()))
    }

    async fn start(connect: &Connect, seal: Option<Seal>, address: &Address) -> Result<Self, ConnectError> {
        let failed = |error: duplexer_core::error::StoreError| ConnectError::Failed(error.into());
        let counters = Arc::new(Counters::default());
        let connection = Connection::open(address, connect.response_timeout, Arc::clone(&counters))
            .await
            .map_err(|error| check::no_connection(address, error))?;
        let keys = Keys::new(&connect.namespace);
        check::check(&connection, &keys, address).await?;
        let settings = connect.settings;
        let lease = Lease::new(&connect.node_name(), settings.lease);
        let link =
            Arc::new(Link { connection, keys, settings, counters, wakes: Wakes::default(), lease, seal });
        lease::take(&link).await.map_err(failed)?;
        let inbox = Arc::new(Inbox::default());
        let changes = Arc::new(LocalListeners::new(bus::last(&link).await.map_err(failed)?));
        let mut tasks = JoinSet::new();
        tasks.spawn(lease::renew(Arc::clone(&link)));
        tasks.spawn(wakes::listen(Arc::clone(&link), address.clone()));
        tasks.spawn(nodes::read(Arc::clone(&link), Arc::clone(&inbox)));
        tasks.spawn(bus::read(Arc::clone(&link), Arc::clone(&changes)));
        Ok(Self { node: Arc::new(Node::new(link, tasks)), inbox, changes })
    }

    /// Returns the bus, for [`ServerBuilder::subscriptions`](duplexer_server::ServerBuilder::subscriptions).
    pub fn bus(&self) -> RedisBus {
        RedisBus::new(Arc::clone(&self.node), Arc::clone(&self.changes))
    }

    /// Returns the store for tasks, for [`Tasks::on`](duplexer_server::tasks::Tasks::on).
    pub fn tasks(&self) -> RedisTasks {
        RedisTasks::new(Arc::clone(&self.node))
    }

    /// Returns the limiter that all nodes share, for
    /// [`RateLimit::limiter`](duplexer_server::middleware::RateLimit::limiter). `nodes` is how many nodes there usually are: one
    /// that cannot reach the store counts alone, with that share of the limit.
    pub fn rate_limiter(&self, nodes: u32) -> RedisRateLimiter {
        RedisRateLimiter::new(Arc::clone(&self.node), nodes)
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

    pub(crate) fn link(&self) -> &Link {
        &self.node
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
