//! Nodes in this process that share a real store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use duplexer_http::StreamableHttp;
use duplexer_redis::Shared;
use duplexer_tests::scale::{Ledger, builder, server};

use super::store::Store;
use crate::scale::client::{Client, Random};
use crate::scale::nodes::{Lines, Nodes};

/// Interval of work that does not happen in a test.
pub const NEVER: Duration = Duration::from_secs(3600);

/// Nodes, and what they share.
pub struct Served {
    pub shared: Vec<Shared>,
    pub nodes: Arc<Nodes>,
    pub lines: Lines,
}

impl Served {
    /// Starts nodes that look for work of other nodes as usual.
    pub async fn start(store: &Store, count: usize) -> Self {
        let mut shared = Vec::new();
        for _ in 0..count {
            shared.push(store.node().await);
        }
        Self::on(shared)
    }

    /// Starts nodes that do nothing by themselves, so that what they do can be counted.
    pub async fn quiet(store: &Store, count: usize) -> Self {
        let mut shared = Vec::new();
        for _ in 0..count {
            shared.push(store.connect().poll(NEVER).lease(NEVER).await.unwrap());
        }
        let served = Self::on(shared);
        served.settled().await;
        served
    }

    pub fn on(shared: Vec<Shared>) -> Self {
        let lines = Lines::default();
        let nodes = Nodes::of(shared.iter().map(|shared| service(shared, &lines, Duration::from_secs(5))));
        Self { shared, nodes: Arc::new(nodes), lines }
    }

    /// Returns the number of exchanges with the store, of all nodes.
    pub fn trips(&self) -> u64 {
        self.shared.iter().map(|shared| shared.stats().trips).sum()
    }

    /// Waits until the nodes have finished what no request awaits.
    pub async fn settled(&self) {
        let mut last = self.trips();
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let now = self.trips();
            if now == last {
                return;
            }
            last = now;
        }
    }

    pub async fn client(&self, name: &str) -> Arc<Client> {
        Client::open(&self.nodes, name, &mut Random::new(1)).await.unwrap()
    }
}

/// Returns the service of a node that tries the store for some time.
pub fn service(shared: &Shared, lines: &Lines, patience: Duration) -> StreamableHttp {
    let ledger = Ledger::Memory(Arc::clone(lines));
    let server = server(&ledger, Arc::new(shared.bus()), &[7; 32]).unwrap();
    let attempt = patience.min(Duration::from_secs(1));
    builder(server, shared.stores()).store_patience(patience).store_attempt(attempt).build().unwrap()
}

/// Numbers of commands by their names.
pub type Counted = BTreeMap<String, u64>;

/// How often the store has run each command, those in scripts included. Without the commands of the test itself.
pub async fn commands(store: &Store) -> Counted {
    let mut connection = store.commands().await;
    let text: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.unwrap();
    let command = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let calls = rest.strip_prefix("calls=")?.split(',').next()?.parse().ok()?;
        Some((name.to_owned(), calls))
    };
    let own =
        ["info", "hello", "client|setinfo", "client|list", "config|set", "config|get", "select", "command"];
    text.lines().filter_map(command).filter(|(name, _)| !own.contains(&name.as_str())).collect()
}

/// Returns the number of commands between two counts.
pub fn between(before: &Counted, after: &Counted) -> u64 {
    after.values().sum::<u64>() - before.values().sum::<u64>()
}
