//! SCL-96, SCL-97: the laws of shared stores, on a real store, and through a proxy that loses answers.

use std::sync::Arc;
use std::time::Duration;

use duplexer::testing::store_laws::{LAWS, NodeStores, StoreLimits, StoresUnderTest};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_redis::{Connect, Shared};
use duplexer_server::subscriptions::SubscriptionBus;
use duplexer_server::tasks::TaskStore;

use super::proxy::{Fault, Proxy};
use super::repeating::{self, Repeating};
use super::store::Store;

/// Laws whose subject is one delivery of one operation: an operation that is repeated can be delivered twice, and a wake-up
/// can be lost.
const DELIVERIES: &[&str] = &[
    "a_watcher_is_woken_by_another_node",
    "a_message_reaches_the_inbox_of_its_run_in_order",
    "a_change_is_heard_at_every_node_once_and_in_order",
    "the_log_returns_what_happened_since_a_position",
    "the_log_has_a_change_before_a_listener_hears_of_it",
    "the_log_is_bounded_and_admits_what_it_dropped",
    "a_listener_that_has_unsubscribed_hears_nothing",
];

/// Laws that wait for sessions to expire, in real time.
pub const EXPIRY: &[&str] = &[
    "an_unused_session_expires",
    "use_renews_a_session_and_a_stranger_does_not",
    "an_expired_session_takes_its_streams_with_it",
];

/// Nodes on a store.
pub struct OnStore {
    url: String,
    repeats: bool,
    idle: Duration,
    seal: Option<[u8; 32]>,
}

impl OnStore {
    pub fn new(url: String, idle: Duration) -> Self {
        Self { url, repeats: false, idle, seal: None }
    }

    /// Encrypts what is stored.
    pub fn sealed(mut self, secret: [u8; 32]) -> Self {
        self.seal = Some(secret);
        self
    }

    /// Repeats operations whose outcome is unknown, as the server does.
    fn repeating(mut self) -> Self {
        self.repeats = true;
        self
    }
}

fn limits(idle: Duration) -> StoreLimits {
    StoreLimits {
        idle,
        lease: Duration::from_secs(2),
        delay: Duration::from_secs(10),
        change_log: 64,
        ..StoreLimits::default()
    }
}

fn connect(url: &str, idle: Duration) -> Connect {
    let limits = limits(idle);
    Shared::connect(url)
        .namespace("laws")
        .response_timeout(Duration::from_secs(4))
        .session_expiry(limits.idle)
        .lease(limits.lease)
        .change_log(limits.change_log)
        .poll(Duration::from_millis(200))
}

impl StoresUnderTest for OnStore {
    fn node(&self) -> BoxFuture<'_, Result<NodeStores, StoreError>> {
        Box::pin(async {
            let connected = async || {
                let connect = connect(&self.url, self.idle);
                match self.seal {
                    Some(secret) => connect.seal([secret]).await,
                    None => connect.await,
                }
            };
            let mut shared = connected().await;
            while self.repeats && shared.is_err() {
                shared = connected().await;
            }
            let shared = shared.map_err(|error| StoreError::Unavailable(error.into()))?;
            let bus: Arc<dyn SubscriptionBus> = Arc::new(shared.bus());
            let tasks: Arc<dyn TaskStore> = Arc::new(shared.tasks());
            Ok(if self.repeats {
                let tasks = Arc::new(Repeating(tasks));
                NodeStores {
                    shared: repeating::stores(&shared.stores()),
                    bus: Arc::new(Repeating(bus)),
                    tasks,
                }
            } else {
                NodeStores { shared: shared.stores(), bus, tasks }
            })
        })
    }

    fn limits(&self) -> StoreLimits {
        limits(self.idle)
    }

    fn loses_answers(&self) -> bool {
        self.repeats
    }
}

#[tokio::test]
async fn a_real_store_obeys_the_laws() {
    let Some(store) = Store::start("laws").await else { return };
    let stores = OnStore::new(store.url(), Duration::from_secs(60));
    for law in LAWS.iter().filter(|law| !EXPIRY.contains(&law.name())) {
        law.check(&stores).await.unwrap();
    }
}

#[tokio::test]
async fn a_real_store_obeys_the_laws_of_expiry() {
    let Some(store) = Store::start("laws of expiry").await else { return };
    let stores = OnStore::new(store.url(), Duration::from_secs(2));
    for law in LAWS.iter().filter(|law| EXPIRY.contains(&law.name())) {
        law.check(&stores).await.unwrap();
    }
}

#[tokio::test]
async fn operations_whose_answers_are_lost_obey_the_laws() {
    let Some(store) = Store::start("laws with lost answers").await else { return };
    let proxy = Proxy::start(store.port).await;
    let stores = OnStore::new(proxy.url(), Duration::from_secs(60)).repeating();
    proxy.set(Fault::LoseAnswers);
    let exempt = |name| DELIVERIES.contains(&name) || EXPIRY.contains(&name);
    for law in LAWS.iter().filter(|law| !exempt(law.name())) {
        law.check(&stores).await.unwrap();
    }
}

/// SCL-13, SCL-64: a store that is away for a while costs time only.
#[tokio::test]
async fn a_store_that_returns_is_used_again() {
    let Some(store) = Store::start("a store that returns").await else { return };
    let proxy = Proxy::start(store.port).await;
    let stores = OnStore::new(proxy.url(), Duration::from_secs(60)).repeating();
    let node = stores.node().await.unwrap();
    for fault in [Fault::Cut, Fault::Hold] {
        proxy.set(fault);
        let direct = connect(&proxy.url(), stores.idle).await;
        assert!(direct.is_err(), "{fault:?}: {direct:?}");
        let publishing = node.bus.publish(duplexer_server::subscriptions::Event::ToolsChanged);
        proxy.set(Fault::None);
        publishing.await.unwrap();
    }
}
