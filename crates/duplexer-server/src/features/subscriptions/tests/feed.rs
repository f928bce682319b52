//! The handshake era behind several nodes: changes with their positions, which the transport stores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use duplexer_core::dispatch::{NoChannel, lock};
use duplexer_types::version::ProtocolVersion;
use serde_json::Value;
use tokio::time::timeout;

use super::super::{ChangeDelivery, ChangeFeed, Changes, restore};
use super::wire::TIMEOUT;
use super::*;
use crate::kernel::connection::{Caller, ClientProfile, Connection, ConnectionSnapshot, Negotiated};

/// Returns a session's connection with these subscriptions, whose changes are pulled.
fn connection(running: &RunningServer, uris: &[&str]) -> Arc<Connection> {
    let client = ClientProfile::UNKNOWN;
    let first = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::new(NoChannel));
    first.agree(Negotiated::new(ProtocolVersion::LATEST_HANDSHAKE, client));
    first.set_initialized();
    let mut snapshot = ConnectionSnapshot::of(&first).unwrap();
    snapshot.subscriptions = uris.iter().map(ToString::to_string).collect();
    let caller = Caller { changes: ChangeDelivery::Pulled, ..Caller::default() };
    snapshot.restore(running, Arc::new(NoChannel), caller).unwrap()
}

async fn next(feed: &mut ChangeFeed) -> (Vec<String>, Option<u128>) {
    let Changes { notifications, position } =
        timeout(TIMEOUT, feed.next()).await.expect("nothing comes").unwrap();
    let name = |text: &str| {
        let message: Value = serde_json::from_str(text).unwrap();
        let method = message["method"].as_str().unwrap().replace("notifications/", "");
        message["params"]["uri"].as_str().map_or(method, Into::into)
    };
    (notifications.iter().map(|text| name(text)).collect(), position.map(|position| position.0))
}

/// Asserts that nothing waits.
async fn nothing(feed: &mut ChangeFeed) {
    for _ in 0..3 {
        let mut next = std::pin::pin!(feed.next());
        let polled = std::future::poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        assert!(polled.is_pending(), "{polled:?}");
    }
}

/// SCL-10: a reader hears what happened since its position, then what happens, each once.
#[tokio::test]
async fn a_feed_begins_with_what_the_log_has_since_its_position() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let connection = connection(&running, &["file:///a"]);
    assert_eq!(listeners(&running), 0, "the server does not push to it");
    bus.tell(&Event::resource_updated("file:///a"));
    let after = running.latest_change();
    bus.tell(&Event::resource_updated("file:///b"));
    bus.tell(&Event::resource_updated("file:///a"));
    bus.tell(&Event::ToolsChanged);
    bus.tell(&Event::resource_updated("file:///a"));
    let mut feed = ChangeFeed::open(&running, &connection, after).unwrap();
    let expected = (vec!["file:///a".to_owned(), "tools/list_changed".to_owned()], Some(5));
    assert_eq!(next(&mut feed).await, expected);
    nothing(&mut feed).await;
    bus.tell(&Event::resource_updated("file:///b"));
    bus.tell(&Event::resource_updated("file:///a"));
    assert_eq!(next(&mut feed).await, (vec!["file:///a".to_owned()], Some(7)));
    let mut late = ChangeFeed::open(&running, &connection, None).unwrap();
    nothing(&mut late).await;
    drop((feed, late));
    assert_eq!(running.subscriptions().unwrap().router.len(), (0, 0));
}

/// SCL-10: what a client subscribes to at another node is heard from then on, also what happens before this node knows of it.
#[tokio::test]
async fn a_subscription_at_another_node_counts_from_its_place_in_the_log() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let connection = connection(&running, &[]);
    let feed = ChangeFeed::open(&running, &connection, None).unwrap();
    let refreshes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refreshes);
    let mut feed = feed.refreshed_by("session", move || {
        let (running, connection) = (running.clone(), Arc::clone(&connection));
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            restore(&running, &connection, &["file:///a".to_owned()]);
            Ok(())
        })
    });
    nothing(&mut feed).await;
    bus.tell(&Event::resource_updated("file:///a"));
    bus.tell(&Event::SessionChanged { session: "another".into() });
    nothing(&mut feed).await;
    assert_eq!(refreshes.load(Ordering::Relaxed), 0);
    bus.tell(&Event::SessionChanged { session: "session".into() });
    bus.tell(&Event::resource_updated("file:///a"));
    assert_eq!(next(&mut feed).await.0, ["file:///a"], "once, and not the one before");
    assert_eq!(refreshes.load(Ordering::Relaxed), 1);
    bus.tell(&Event::resource_updated("file:///a"));
    assert_eq!(next(&mut feed).await.0, ["file:///a"]);
    nothing(&mut feed).await;
}

/// SCL-10: beyond the log a reader hears that everything it is subscribed to has changed.
#[tokio::test]
async fn a_feed_from_before_the_log_reports_everything_as_changed() {
    let bus = MemoryBus::with_log(2);
    let running = running(bus.clone()).await;
    let uris: Vec<String> = (0..100).map(|index| format!("file:///{index:03}")).collect();
    let connection = connection(&running, &uris.iter().map(String::as_str).collect::<Vec<_>>());
    for _ in 0..5 {
        bus.tell(&Event::ToolsChanged);
    }
    let mut feed = ChangeFeed::open(&running, &connection, Some(Position(1))).unwrap();
    let (first, position) = next(&mut feed).await;
    assert_eq!((first.len(), position), (64, None), "not complete yet");
    let (second, position) = next(&mut feed).await;
    assert_eq!((second.len(), position), (39, Some(5)));
    let mut all: Vec<String> = first.into_iter().chain(second).skip(3).collect();
    all.sort();
    assert_eq!(all, uris);
    nothing(&mut feed).await;
}

/// What is published while the log is read is neither lost nor reported twice.
#[tokio::test]
async fn a_feed_misses_nothing_that_happens_while_it_reads_the_log() {
    let bus = OddBus::new(|_| {});
    let inner = bus.inner.clone();
    let published = Arc::new(Mutex::new(0));
    let bus = OddBus {
        on_since: Arc::new(move || {
            let mut published = lock(&published);
            if *published < 3 {
                *published += 1;
                inner.tell(&Event::resource_updated(format!("file:///{published}")));
            }
        }),
        ..bus
    };
    let running = running(bus.clone()).await;
    let connection = connection(&running, &["file:///1", "file:///2", "file:///3"]);
    let mut feed = ChangeFeed::open(&running, &connection, Some(Position(0))).unwrap();
    for number in 1..=3 {
        assert_eq!(next(&mut feed).await, (vec![format!("file:///{number}")], Some(number)));
    }
    nothing(&mut feed).await;
}

/// A subscription that begins or ends while the feed is open has an effect at once.
#[tokio::test]
async fn a_feed_follows_the_subscriptions_of_its_connection() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let connection = connection(&running, &["file:///a"]);
    let mut feed = ChangeFeed::open(&running, &connection, None).unwrap();
    nothing(&mut feed).await;
    bus.tell(&Event::resource_updated("file:///a"));
    restore(&running, &connection, &["file:///b".to_owned()]);
    super::super::connection_listener::remove(&connection, &["file:///a".to_owned()]);
    nothing(&mut feed).await;
    bus.tell(&Event::resource_updated("file:///a"));
    bus.tell(&Event::resource_updated("file:///b"));
    assert_eq!(next(&mut feed).await, (vec!["file:///b".to_owned()], Some(3)));
    assert_eq!(super::super::uris(&connection), ["file:///b"]);
}
