//! Sessions that several nodes serve, one after the other.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_http::{MemorySessionStore, SaveOutcome, SessionRecord, SessionStore};
use duplexer_server::Principal;
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::{Client, Site, ask, call_in, mounted, open, text_of};

fn store() -> Arc<MemorySessionStore> {
    Arc::new(MemorySessionStore::new(Duration::from_secs(60)))
}

async fn node(store: &Arc<MemorySessionStore>, name: &'static str) -> Site {
    let store = Arc::clone(store);
    Site::with(|builder| builder.session_store(store, name)).await
}

fn at<'a>(client: &Client<'_>, site: &'a Site) -> Client<'a> {
    Client { site, id: client.id.clone(), version: client.version }
}

/// Peers 15: a session continues on another node with its state, and the first node notices.
#[tokio::test]
async fn a_session_goes_on_at_another_node() {
    let store = store();
    let (a, b) = (node(&store, "a").await, node(&store, "b").await);
    let one = Client::open(&a).await;
    assert_eq!(one.call(1, "echo").await.status, 200);
    let two = at(&one, &b);
    assert_eq!(two.call(1, "echo").await.status, 200, "no handshake is needed");
    let mut listening = two.listen().await;
    two.call(2, "announce").await;
    assert!(listening.event().await.is_some());
    // Back at the first node: its state is stale, and it claims the session again.
    assert_eq!(one.call(3, "echo").await.status, 200);
    assert_eq!(a.post(&one.delete()).await.status, 200);
    loop {
        // The store is updated in the background.
        if two.call(4, "echo").await.status == 404 {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// The state that a client has set is transferred.
#[tokio::test]
async fn what_was_agreed_travels_along() {
    let store = store();
    let (a, b) = (node(&store, "a").await, node(&store, "b").await);
    let one = Client::open_at(&a, "2025-06-18").await;
    let record = store.claim(&one.id, "a").await.unwrap().unwrap();
    assert_eq!((record.owner.as_str(), record.epoch), ("a", 1));
    assert!(record.connection.initialized, "each change is written down");
    assert_eq!(record.connection.version, "2025-06-18");
    let two = at(&one, &b);
    let mut stream = two.stream(1, "question").await;
    let question = stream.event().await.unwrap().json();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    b.post(&two.body(&answer)).await;
    assert_eq!(stream.event().await.unwrap().json()["result"]["content"][0]["text"], "0 roots");
    assert_eq!(store.claim(&one.id, "b").await.unwrap().unwrap().epoch, 2);
}

/// A service that shuts down leaves its sessions to other nodes.
#[tokio::test]
async fn sessions_outlive_their_service() {
    let store = store();
    let (mut a, b) = (node(&store, "a").await, node(&store, "b").await);
    let (id, version) = {
        let one = Client::open(&a).await;
        (one.id, one.version)
    };
    a.finish().await;
    let two = Client { site: &b, id, version };
    assert_eq!(two.call(1, "echo").await.status, 200);
}

/// Makes two claims finish at the same moment.
struct Together {
    store: Arc<MemorySessionStore>,
    both: Barrier,
}

impl SessionStore for Together {
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<SaveOutcome, BoxError>> {
        self.store.save(id, record)
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        self.store.load(id)
    }

    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        let claimed = self.store.claim(id, node);
        Box::pin(async move {
            self.both.wait().await;
            claimed.await
        })
    }

    fn remove(&self, id: &str, epoch: u64) -> BoxFuture<'_, Result<(), BoxError>> {
        self.store.remove(id, epoch)
    }
}

/// Two concurrent requests to a new node find one session: the state that one sets is visible to the other.
#[tokio::test]
async fn requests_at_once_take_a_session_over_once() {
    let store = store();
    let a = node(&store, "a").await;
    let one = Client::open(&a).await;
    let together = Arc::new(Together { store: Arc::clone(&store), both: Barrier::new(2) });
    let b = Site::with(|builder| builder.session_store(together, "b")).await;
    let two = at(&one, &b);
    let calls = async { tokio::join!(two.stream(1, "tell then wait"), two.stream(2, "tell then wait")) };
    let (mut first, mut second) = calls.await;
    first.event().await.unwrap();
    second.event().await.unwrap();
    tokio::join!(cancel(&two, 1), cancel(&two, 2));
    for stream in [&mut first, &mut second] {
        assert_eq!(stream.event().await.unwrap().json()["error"]["code"], -32800);
    }
}

async fn cancel(client: &Client<'_>, id: i64) {
    assert_eq!(client.tell("notifications/cancelled", &json!({"requestId": id})).await.status, 202);
}

/// MGR-04: a claimed session takes a permit too; without one the client gets 503.
#[tokio::test]
async fn a_full_node_takes_nothing_over() {
    let store = store();
    let a = node(&store, "a").await;
    let one = Client::open(&a).await;
    let shared = Arc::clone(&store);
    let b = Site::with(|builder| builder.session_store(shared, "b").max_sessions(1)).await;
    Client::open(&b).await;
    let reply = at(&one, &b).call(1, "echo").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(one.call(2, "echo").await.status, 200, "it goes on where there is room");
}

struct Broken;

impl SessionStore for Broken {
    fn save(&self, _: &str, _: SessionRecord) -> BoxFuture<'_, Result<SaveOutcome, BoxError>> {
        Box::pin(ready(Err("no".into())))
    }

    fn load(&self, _: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        Box::pin(ready(Err("no".into())))
    }

    fn claim(&self, _: &str, _: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        Box::pin(ready(Err("no".into())))
    }

    fn remove(&self, _: &str, _: u64) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(ready(Err("no".into())))
    }
}

/// Without its store a session cannot be opened or found, and the client gets 503.
#[tokio::test]
async fn a_broken_store_is_no_dead_session() {
    let site = Site::with(|builder| builder.session_store(Arc::new(Broken), "a")).await;
    let reply = site.post(&Client::handshake("2025-11-25")).await;
    assert_eq!(
        (reply.status, reply.header("retry-after"), reply.header("mcp-session-id")),
        (503, Some("1"), None)
    );
    let client = Client { site: &site, id: "0".repeat(32), version: "2025-11-25" };
    assert_eq!(client.call(1, "echo").await.status, 503);
}

/// Hardening 10: the request of another principal does not move a session, and the owner's call goes on.
#[tokio::test]
async fn a_stranger_does_not_move_a_session() {
    let store = store();
    let node = |name: &'static str| {
        let store: Arc<MemorySessionStore> = Arc::clone(&store);
        mounted(|builder| builder.session_store(store, name))
    };
    let ((a, stage), (b, _)) = (node("a"), node("b"));
    let (ada, bob) = (Arc::new(Principal::new("ada")), Arc::new(Principal::new("bob")));
    let session = open(&a, Some(&ada)).await;
    let call = ask(&a, &call_in(&session, 1, "tell then wait"), Some(&ada)).await.into_body();
    for node in [&a, &b] {
        for stranger in [None, Some(&bob)] {
            assert_eq!(ask(node, &call_in(&session, 2, "echo"), stranger).await.status(), 404);
        }
    }
    let record = store.load(&session).await.unwrap().unwrap();
    assert_eq!((record.owner.as_str(), record.epoch), ("a", 1));
    assert_eq!(ask(&a, &call_in(&session, 2, "echo"), Some(&ada)).await.status(), 200);
    stage.go.notify_one();
    assert!(text_of(call).await.contains("done"));
}
