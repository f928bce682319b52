//! Sessions that several nodes serve at the same time.

use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{
    Admission, Admitted, Change, Created, Health, MemoryCluster, NodeListener, NodeMessage, Nodes, Placement,
    Revision, Sent, SessionRecord, SessionStore, SharedStores, StreamableHttp, StreamableHttpBuilder,
};
use duplexer_server::resource::Resource;
use duplexer_server::subscriptions::{Event, MemoryBus, SubscriptionBus as _};
use duplexer_server::{Principal, Server};
use duplexer_types::jsonrpc::RequestId;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Client, Events, Post, Site, Stage, ask, call_in, mounted, open, progress_in, text_of};

struct Node {
    service: StreamableHttp,
    stage: Arc<Stage>,
    run: RunId,
}

fn cluster() -> MemoryCluster {
    MemoryCluster::new(Duration::from_secs(3600))
}

fn node(cluster: &MemoryCluster) -> Node {
    node_with(cluster, |builder| builder)
}

fn node_with(
    cluster: &MemoryCluster,
    configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
) -> Node {
    let stores = cluster.node();
    let run = stores.nodes.run();
    let (service, stage) = mounted(|builder| configure(builder.scale_out(stores)));
    Node { service, stage, run }
}

impl Node {
    async fn post(&self, post: &Post) -> http::Response<duplexer_http::ResponseBody> {
        ask(&self.service, post, None).await
    }

    async fn status(&self, post: &Post) -> u16 {
        self.post(post).await.status().as_u16()
    }

    async fn events(&self, post: &Post) -> Events {
        Events::of(self.post(post).await)
    }

    async fn resume(&self, session: &str, last: &str) -> Events {
        self.events(&get(session).header("last-event-id", last)).await
    }
}

fn message(session: &str, body: &Value) -> Post {
    Post::body(body.to_string()).header("mcp-session-id", session)
}

fn tell(session: &str, method: &str, params: &Value) -> Post {
    message(session, &json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn without_body(session: &str, method: &'static str) -> Post {
    let mut post = message(session, &json!(null)).method(method);
    post.body.clear();
    post
}

fn get(session: &str) -> Post {
    without_body(session, "GET")
}

fn roots(session: &str, id: &Value, count: usize) -> Post {
    let root = json!({"uri": "file:///x"});
    let result = json!({"roots": vec![root; count]});
    message(session, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

/// S4, SCL-07, SCL-42: an answer at another node reaches the handler that asked, and no other.
#[tokio::test]
async fn an_answer_at_another_node_reaches_the_handler_that_asked() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut one = a.events(&call_in(&session, 1, "question")).await;
    let mut two = b.events(&call_in(&session, 2, "question")).await;
    let (first, second) = (one.message().await.unwrap(), two.message().await.unwrap());
    assert_eq!((&first["method"], &second["method"]), (&json!("roots/list"), &json!("roots/list")));
    assert_ne!(first["id"], second["id"]);
    let other = open(&a.service, None).await;
    assert_eq!(b.status(&roots(&other, &first["id"], 9)).await, 202, "another session answers nothing");
    assert_eq!(b.status(&roots(&session, &first["id"], 1)).await, 202);
    assert_eq!(a.status(&roots(&session, &second["id"], 2)).await, 202);
    assert_eq!(a.status(&roots(&session, &first["id"], 7)).await, 202, "a second answer is dropped");
    assert_eq!(text(&one.message().await.unwrap()), "1 roots");
    assert_eq!(text(&two.message().await.unwrap()), "2 roots");
}

/// Without shared stores the ids of the server's own requests stay numbers.
#[tokio::test]
async fn requests_to_the_client_of_one_node_are_numbered() {
    let (service, _) = mounted(|builder| builder);
    let session = open(&service, None).await;
    let mut events = Events::of(ask(&service, &call_in(&session, 1, "question"), None).await);
    assert_eq!(events.message().await.unwrap()["id"], 1);
}

/// S2, SCL-03: calls of one session run at two nodes at the same time, and none ends the other.
#[tokio::test]
async fn a_session_is_served_by_all_nodes_at_once() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut one = a.events(&progress_in(&session, 1, "tell then wait")).await;
    let mut two = b.events(&progress_in(&session, 2, "tell then wait")).await;
    for stream in [&mut one, &mut two] {
        assert_eq!(stream.message().await.unwrap()["params"]["progress"], json!(1));
    }
    for (id, node) in [(3, &a), (4, &b)] {
        assert_eq!(node.status(&call_in(&session, id, "echo")).await, 200);
        node.stage.go.notify_one();
    }
    for stream in [&mut one, &mut two] {
        assert_eq!(stream.message().await.unwrap()["params"]["progress"], json!(2));
        assert_eq!(text(&stream.message().await.unwrap()), "done");
    }
}

/// SCL-31: a request id is in flight once, at whichever node; afterwards it is free.
#[tokio::test]
async fn a_request_id_is_in_flight_once_in_all_nodes() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut running = a.events(&progress_in(&session, 1, "tell then wait")).await;
    running.message().await.unwrap();
    for node in [&a, &b] {
        assert_eq!(node.status(&call_in(&session, 1, "echo")).await, 409);
        let other = text_of(node.post(&call_in(&session, "1", "echo")).await.into_body()).await;
        assert!(other.contains("result"), "{other}");
    }
    a.stage.go.notify_one();
    while running.message().await.is_some() {}
    assert_eq!(b.status(&call_in(&session, 1, "echo")).await, 200);
}

/// SCL-08: a cancellation reaches the node of the request.
#[tokio::test]
async fn a_call_is_cancelled_at_another_node() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut running = a.events(&call_in(&session, 1, "wait")).await;
    a.stage.until(&a.stage.started, 1).await;
    let cancel = |id: i64| tell(&session, "notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(b.status(&cancel(2)).await, 202);
    assert_eq!(b.status(&cancel(1)).await, 202);
    assert_eq!(running.message().await.unwrap()["error"]["code"], -32800);
}

/// SCL-11, SCL-30: a message of another principal changes nothing at any node, and the owner's call goes on.
#[tokio::test]
async fn a_stranger_does_not_touch_a_session() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let (ada, bob) = (Arc::new(Principal::new("ada")), Arc::new(Principal::new("bob")));
    let session = open(&a.service, Some(&ada)).await;
    let call = ask(&a.service, &call_in(&session, 1, "go"), Some(&ada)).await.into_body();
    a.stage.until(&a.stage.started, 1).await;
    for node in [&a, &b] {
        for stranger in [None, Some(&bob)] {
            for post in [call_in(&session, 1, "echo"), get(&session), without_body(&session, "DELETE")] {
                assert_eq!(ask(&node.service, &post, stranger).await.status(), 404);
            }
        }
    }
    assert_eq!(ask(&b.service, &call_in(&session, 2, "echo"), Some(&ada)).await.status(), 200);
    a.stage.go.notify_one();
    assert!(text_of(call).await.contains("done"));
}

/// SCL-04, SCL-38: a client that comes back to another node follows its call live.
#[tokio::test]
async fn a_stream_is_followed_at_another_node() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut first = a.events(&progress_in(&session, 1, "tell then wait")).await;
    let opening = first.next().await.unwrap().id.unwrap();
    let seen = first.next().await.unwrap();
    assert_eq!(seen.json()["params"]["progress"], json!(1));
    let mut second = b.resume(&session, seen.id.as_deref().unwrap()).await;
    assert_eq!(second.next().await.unwrap().data, "");
    assert_eq!(first.next().await, None, "SCL-39: the new reader takes over");
    a.stage.go.notify_one();
    assert_eq!(second.message().await.unwrap()["params"]["progress"], json!(2));
    assert_eq!(text(&second.message().await.unwrap()), "done");
    assert_eq!(second.message().await, None);
    let mut again = a.resume(&session, &opening).await;
    assert_eq!(again.message().await.unwrap()["params"]["progress"], json!(1));
    assert_eq!(again.message().await.unwrap()["params"]["progress"], json!(2));
    assert_eq!(text(&again.message().await.unwrap()), "done");
}

/// SCL-09: a session that ends at one node ends everywhere, and what runs for it is cancelled.
#[tokio::test]
async fn a_session_ends_everywhere() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let running = a.post(&call_in(&session, 1, "wait")).await;
    let mut listening = a.events(&get(&session)).await;
    a.stage.until(&a.stage.started, 1).await;
    assert_eq!(b.status(&without_body(&session, "DELETE")).await, 200);
    for node in [&a, &b] {
        assert_eq!(node.status(&call_in(&session, 2, "echo")).await, 404);
        assert_eq!(node.status(&get(&session)).await, 404);
    }
    a.stage.until(&a.stage.ended, 1).await;
    assert_eq!(listening.message().await, None);
    drop(running);
}

/// SCL-05, SCL-41, SCL-60: if the node of a call dies, the client learns it from another, once, and the session lives on.
#[tokio::test(start_paused = true)]
async fn the_call_of_a_dead_node_fails_once() {
    let cluster = cluster();
    let (a, b, c) = (node(&cluster), node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut first = a.events(&progress_in(&session, 1, "tell then wait")).await;
    let opening = first.next().await.unwrap().id.unwrap();
    let seen = first.next().await.unwrap().id.unwrap();
    let start = Instant::now();
    cluster.end_lease(a.run);
    let mut second = b.resume(&session, &seen).await;
    let lost = second.message().await.unwrap();
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(1), &json!(-32603)));
    assert_eq!(lost["error"]["data"]["reason"], "node_lost");
    assert_eq!(second.message().await, None);
    assert!(start.elapsed() < Duration::from_secs(5));
    // The node is not dead after all: the store refuses what it still tells, and its handler is cancelled.
    a.stage.go.notify_one();
    a.stage.until_paused(&a.stage.ended, 1).await;
    let mut again = c.resume(&session, &opening).await;
    assert_eq!(again.message().await.unwrap()["params"]["progress"], json!(1));
    assert_eq!(again.message().await, Some(lost));
    assert_eq!(again.message().await, None);
    assert_eq!(c.status(&call_in(&session, 1, "echo")).await, 200, "the id is free");
}

/// SCL-05, SCL-08: the node of a call has lost its lease and goes on as another run, which a cancellation does not reach. The
/// call ends all the same, and so does its handler, although it is never silent for long.
#[tokio::test(start_paused = true)]
async fn a_call_whose_run_is_gone_is_cancelled_too() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut running = a.events(&progress_in(&session, 1, "tell then wait")).await;
    assert_eq!(running.message().await.unwrap()["params"]["progress"], json!(1));
    cluster.end_lease(a.run);
    assert_eq!(b.status(&tell(&session, "notifications/cancelled", &json!({"requestId": 1}))).await, 202);
    let lost = tokio::time::timeout(Duration::from_secs(1), running.message()).await.expect("an end");
    assert_eq!(lost.unwrap()["error"]["data"]["reason"], "node_lost");
    a.stage.go.notify_one();
    a.stage.until_paused(&a.stage.ended, 1).await;
    assert_eq!(b.status(&call_in(&session, 1, "echo")).await, 200, "the id is free");
}

/// Nodes that go on as another run whenever they are looked at, while that is switched on.
struct Renamed {
    inner: Arc<dyn Nodes>,
    is_changing: AtomicBool,
    runs: AtomicU64,
}

impl Nodes for Renamed {
    fn run(&self) -> RunId {
        if !self.is_changing.load(Ordering::SeqCst) {
            return self.inner.run();
        }
        RunId(self.runs.fetch_add(1, Ordering::SeqCst))
    }

    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>> {
        self.inner.send(to, message)
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        self.inner.receive(listener);
    }

    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.inner.is_alive(run)
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.leave()
    }
}

/// SCL-02, SCL-41: a request that was admitted for a run which has ended meanwhile is not run: no node could wait for it.
#[tokio::test(start_paused = true)]
async fn a_request_admitted_for_an_earlier_run_is_refused() {
    let mut shared = cluster().node();
    let (inner, is_changing) = (Arc::clone(&shared.nodes), AtomicBool::new(false));
    let renamed = Arc::new(Renamed { inner, is_changing, runs: AtomicU64::new(1) });
    shared.nodes = Arc::clone(&renamed) as _;
    let (service, stage) = mounted(|builder| builder.scale_out(shared));
    let session = open(&service, None).await;
    renamed.is_changing.store(true, Ordering::SeqCst);
    let refused = ask(&service, &call_in(&session, 1, "go"), None).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    renamed.is_changing.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stage.started.load(Ordering::SeqCst), 0);
    assert_eq!(ask(&service, &call_in(&session, 1, "echo"), None).await.status(), 200, "the id is free");
}

/// SCL-10, SCL-32: what a client sets at one node holds at the others, also at the one whose stream it reads.
#[tokio::test]
async fn what_a_client_sets_holds_at_every_node() {
    let cluster = cluster();
    let bus = MemoryBus::new();
    let (a, b) = (subscribable(&cluster, &bus), subscribable(&cluster, &bus));
    let reply = ask(&a, &Client::handshake("2025-11-25"), None).await;
    let session = reply.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let confirmed = tell(&session, "notifications/initialized", &json!({}));
    assert_eq!(ask(&b, &confirmed, None).await.status(), 202, "the handshake is confirmed at another node");
    let mut listening = Events::of(ask(&a, &get(&session), None).await);
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "x:1"}});
    let reply = text_of(ask(&b, &message(&session, &subscribe), None).await.into_body()).await;
    assert!(reply.contains("\"result\""), "{reply}");
    bus.publish(Event::resource_updated("x:1")).await.unwrap();
    assert_eq!(listening.message().await.unwrap()["params"]["uri"], "x:1");
    let unsubscribe =
        json!({"jsonrpc": "2.0", "id": 2, "method": "resources/unsubscribe", "params": {"uri": "x:1"}});
    text_of(ask(&b, &message(&session, &unsubscribe), None).await.into_body()).await;
    bus.publish(Event::resource_updated("x:1")).await.unwrap();
    bus.publish(Event::ResourcesChanged).await.unwrap();
    let next = listening.message().await.unwrap();
    assert_eq!(next["method"], "notifications/resources/list_changed", "it is not subscribed any more");
}

fn subscribable(cluster: &MemoryCluster, bus: &MemoryBus) -> StreamableHttp {
    let server = Server::builder("changes", "1")
        .subscriptions(bus.clone())
        .resource(Resource::text("x:1", "one").name("one"))
        .build()
        .unwrap();
    StreamableHttp::builder(server).scale_out(cluster.node()).build().unwrap()
}

/// SCL-10: a change is heard once, at whichever node the client reads, also one that happened while it did not.
#[tokio::test]
async fn a_client_hears_of_each_change_once() {
    let cluster = cluster();
    let bus = MemoryBus::new();
    let (a, b) = (subscribable(&cluster, &bus), subscribable(&cluster, &bus));
    let session = open(&a, None).await;
    let subscribe =
        json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "x:1"}});
    for node in [&a, &b] {
        text_of(ask(node, &message(&session, &subscribe), None).await.into_body()).await;
    }
    let publish = async || bus.publish(Event::resource_updated("x:1")).await.unwrap();
    publish().await;
    let mut first = Events::of(ask(&a, &get(&session), None).await);
    let opening = first.next().await.unwrap().id.unwrap();
    assert_eq!(first.next().await.unwrap().json()["params"]["uri"], "x:1", "before the stream was opened");
    publish().await;
    let seen = first.next().await.unwrap();
    drop(first);
    publish().await;
    let mut second =
        Events::of(ask(&b, &get(&session).header("last-event-id", &seen.id.unwrap()), None).await);
    assert_eq!(second.message().await.unwrap()["params"]["uri"], "x:1", "while it was away");
    publish().await;
    assert_eq!(second.message().await.unwrap()["params"]["uri"], "x:1");
    drop(second);
    let mut all = Events::of(ask(&a, &get(&session).header("last-event-id", &opening), None).await);
    for _ in 0..4 {
        assert_eq!(all.message().await.unwrap()["method"], "notifications/resources/updated");
    }
    let tools = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(ask(&b, &message(&session, &tools), None).await.status(), 200);
    publish().await;
    assert_eq!(all.next().await.unwrap().id.unwrap().split_once('-').unwrap().1, "5", "no event twice");
}

/// SCL-37, SCL-39: messages outside a request reach the one reader, whichever node sends them.
#[tokio::test]
async fn all_nodes_write_to_the_stream_outside_requests() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let call = text_of(a.post(&call_in(&session, 1, "question aside")).await.into_body()).await;
    assert!(call.contains("back-channel"), "no client listens: {call}");
    let mut listening = b.events(&get(&session)).await;
    let opening = listening.next().await.unwrap().id.unwrap();
    assert_eq!(a.status(&get(&session)).await, 409);
    a.post(&call_in(&session, 2, "announce")).await;
    b.post(&call_in(&session, 3, "announce")).await;
    for _ in 0..2 {
        let event = listening.message().await.unwrap();
        assert_eq!(event["method"], "notifications/tools/list_changed");
    }
    let mut asking = a.events(&call_in(&session, 4, "question aside")).await;
    let question = listening.message().await.unwrap();
    assert_eq!(question["method"], "roots/list");
    assert_eq!(b.status(&roots(&session, &question["id"], 3)).await, 202);
    assert_eq!(text(&asking.message().await.unwrap()), "3 roots");
    let mut taken = a.resume(&session, &opening).await;
    for _ in 0..3 {
        assert!(taken.message().await.is_some());
    }
    assert_eq!(listening.message().await, None, "the new reader takes over");
    // The place of a dead node is free at once.
    cluster.end_lease(a.run);
    let mut third = b.events(&get(&session)).await;
    assert!(third.next().await.is_some());
}

/// SCL-07: progress of a question at another node keeps the handler that asked waiting.
#[tokio::test]
async fn progress_at_another_node_reaches_the_handler_that_asked() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut asking = a.events(&call_in(&session, 1, "question with progress")).await;
    let question = asking.message().await.unwrap();
    let token = &question["params"]["_meta"]["progressToken"];
    assert_eq!(token, &question["id"]);
    let report = json!({"progressToken": token, "progress": 1});
    assert_eq!(b.status(&tell(&session, "notifications/progress", &report)).await, 202);
    a.stage.until(&a.stage.sent, 1).await;
    assert_eq!(b.status(&roots(&session, &question["id"], 1)).await, 202);
    assert_eq!(text(&asking.message().await.unwrap()), "1 roots");
}

/// SCL-21: a session in use does not expire in the store, however long its call takes.
#[tokio::test(start_paused = true)]
async fn a_session_in_use_is_renewed() {
    let cluster = MemoryCluster::new(Duration::from_secs(60));
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut running = a.events(&call_in(&session, 1, "go")).await;
    running.next().await.unwrap();
    let long = tokio::time::sleep(Duration::from_secs(300));
    tokio::select! {
        message = running.message() => panic!("{message:?}"),
        () = long => {}
    }
    assert_eq!(b.status(&call_in(&session, 2, "echo")).await, 200);
    a.stage.go.notify_one();
    assert_eq!(text(&running.message().await.unwrap()), "done");
    drop(running);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(b.status(&call_in(&session, 3, "echo")).await, 404, "an idle one expires");
}

/// SCL-85: a node that has lost its stores is not ready where it serves sessions, and by setting.
#[tokio::test]
async fn readiness_needs_the_stores_where_sessions_are_served() {
    use duplexer_http::{Handshake, StoreReadiness};
    type Configure = fn(StreamableHttpBuilder) -> StreamableHttpBuilder;
    let cases: [(Configure, bool); 5] = [
        (|builder| builder, false),
        (|builder| builder.handshake(Handshake::Stateless), true),
        (|builder| builder.handshake(Handshake::Disabled), true),
        (|builder| builder.store_readiness(StoreReadiness::Ignored), true),
        (|builder| builder.handshake(Handshake::Stateless).store_readiness(StoreReadiness::Required), false),
    ];
    for (index, (configure, is_ready)) in cases.into_iter().enumerate() {
        let cluster = cluster();
        let node = node_with(&cluster, configure);
        assert!(node.service.readiness().is_ready(), "case {index}");
        cluster.end_lease(node.run);
        assert_eq!(node.service.readiness().is_ready(), is_ready, "case {index}");
    }
}

/// SCL-52: only nodes of one process can have random keys for request states.
#[test]
fn nodes_of_several_processes_need_the_same_keys() {
    let stores = cluster().node();
    let shared = || {
        SharedStores::new(Arc::clone(&stores.sessions), Arc::clone(&stores.events), Arc::clone(&stores.nodes))
    };
    let server = || Server::builder("calculator", "1.0.0");
    let error = StreamableHttp::builder(server().build().unwrap()).scale_out(shared()).build().unwrap_err();
    assert!(matches!(error, duplexer_http::HttpConfigError::RandomStateKey), "{error}");
    let keys = duplexer_server::request_state::RequestState::keys([[7_u8; 32]]).unwrap();
    let server = server().request_state(keys).build().unwrap();
    assert!(StreamableHttp::builder(server).scale_out(shared()).build().is_ok());
}

/// SCL-44, SCL-61, SCL-84, SCL-88: a node that is drained is seen by its clients as a reconnection.
#[tokio::test(start_paused = true)]
async fn a_drained_node_hands_its_clients_over() {
    let cluster = cluster();
    let notice = Duration::from_secs(5);
    let a = node_with(&cluster, |builder| builder.shutdown_notice(notice));
    let b = node(&cluster);
    let session = open(&a.service, None).await;
    let mut first = a.events(&progress_in(&session, 1, "tell then wait")).await;
    first.next().await.unwrap();
    first.next().await.unwrap();
    let mut listening = a.events(&get(&session)).await;
    listening.next().await.unwrap();
    let readiness = a.service.readiness();
    assert!(readiness.is_ready());
    let handle = a.service.handle();
    let handed_over = async {
        tokio::time::sleep(notice / 2).await;
        assert!(!readiness.is_ready(), "the balancer learns it first");
        assert_eq!(a.status(&call_in(&session, 2, "echo")).await, 200, "everything is still served");
        tokio::time::sleep(notice).await;
        let refused = a.post(&call_in(&session, 3, "echo")).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let hint = first.next().await.unwrap();
        assert_eq!((hint.data.as_str(), hint.retry.as_deref()), ("", Some("1000")));
        assert_eq!(first.next().await, None);
        assert!(listening.next().await.unwrap().retry.is_some());
        assert_eq!(listening.next().await, None);
        let mut second = b.resume(&session, &hint.id.unwrap()).await;
        b.events(&get(&session)).await.next().await.unwrap();
        a.stage.go.notify_one();
        assert_eq!(second.message().await.unwrap()["params"]["progress"], json!(2));
        assert_eq!(text(&second.message().await.unwrap()), "done");
    };
    tokio::join!(handle.shutdown(), handed_over);
    assert_eq!(b.status(&call_in(&session, 4, "echo")).await, 200);
}

/// SCL-44: what has not finished when the drain ends is cancelled, and its error is stored.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_what_takes_too_long() {
    let cluster = cluster();
    let (a, b) = (node(&cluster), node(&cluster));
    let session = open(&a.service, None).await;
    let mut first = a.events(&call_in(&session, 1, "go")).await;
    let opening = first.next().await.unwrap().id.unwrap();
    a.service.handle().shutdown().await;
    let mut second = b.resume(&session, &opening).await;
    assert_eq!(
        second.message().await.unwrap()["error"]["message"],
        "Connection closed: the server is shutting down"
    );
    assert_eq!(second.message().await, None);
}

/// SCL-44: a connection that arrives during the drain gets a response that says when to come back, and so does one that a
/// balancer has kept open.
#[tokio::test]
async fn a_draining_node_answers_new_connections() {
    let stores = cluster().node();
    let mut site = Site::with(|builder| builder.scale_out(stores)).await;
    let (session, running) = {
        let client = Client::open(&site).await;
        let running = client.stream(1, "go").await;
        (client.id.clone(), running)
    };
    site.stage.until(&site.stage.started, 1).await;
    let mut kept = site.connect().await;
    kept.send(&call_in(&session, 5, "echo").bytes(site.address)).await;
    assert_eq!(kept.reply().await.status, 200);
    site.end.take().unwrap().send(()).unwrap();
    let refused = loop {
        let reply = site.post(&call_in(&session, 2, "echo")).await;
        if reply.status != 200 {
            break reply;
        }
    };
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.text().contains("The server is shutting down"));
    kept.send(&call_in(&session, 6, "echo").bytes(site.address)).await;
    let last = kept.reply().await;
    assert_eq!((last.status, last.header("connection")), (503, Some("close")));
    // A connection whose request comes later is answered too. The next response shows that it was accepted.
    let mut late = site.connect().await;
    assert_eq!(site.post(&call_in(&session, 3, "echo")).await.status, 503);
    late.send(&call_in(&session, 4, "echo").bytes(site.address)).await;
    assert_eq!(late.reply().await.status, 503);
    site.stage.go.notify_one();
    site.run.take().unwrap().await.unwrap();
    drop(running);
}

/// MGR-04: a node whose cache is full makes room by dropping an idle session, which lives on in the store.
#[tokio::test]
async fn a_full_cache_loses_no_session() {
    let cluster = cluster();
    let a = node_with(&cluster, |builder| builder.max_sessions(1));
    let b = node(&cluster);
    let (one, two) = (open(&b.service, None).await, open(&b.service, None).await);
    for session in [&one, &two, &one] {
        let echoed = text_of(a.post(&call_in(session, 1, "echo")).await.into_body()).await;
        assert!(echoed.contains("echo"), "{echoed}");
        let mut freed = a.status(&call_in(session, 2, "echo")).await;
        while freed == 503 {
            tokio::task::yield_now().await;
            freed = a.status(&call_in(session, 2, "echo")).await;
        }
    }
}

/// A session store that executes everything, and does not respond while it is away.
struct Switched {
    inner: Arc<dyn SessionStore>,
    is_away: AtomicBool,
}

impl Switched {
    fn run<'a, T: Send + 'a>(
        &self,
        inner: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(StoreError::Unavailable("away".into()))));
        }
        inner
    }
}

impl SessionStore for Switched {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: &'a SessionRecord,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        self.run(self.inner.create(id, record))
    }

    fn admit<'a>(
        &'a self,
        id: &'a str,
        admission: Admission<'a>,
    ) -> BoxFuture<'a, Result<Admitted, StoreError>> {
        self.run(self.inner.admit(id, admission))
    }

    fn update<'a>(
        &'a self,
        id: &'a str,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Option<Revision>, StoreError>> {
        self.run(self.inner.update(id, changes))
    }

    fn locate<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<Placement>, StoreError>> {
        self.run(self.inner.locate(id, request))
    }

    fn release<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
        placement: Placement,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(self.inner.release(id, request, placement))
    }

    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(self.inner.touch(ids))
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Placement>, StoreError>> {
        self.run(self.inner.delete(id))
    }
}

/// SCL-33, SCL-63, SCL-64: without its store no session is opened, found or ended, and none is lost: 503, never 404. The
/// envelope era does not notice.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_no_dead_session() {
    let mut shared = cluster().node();
    let switched =
        Arc::new(Switched { inner: Arc::clone(&shared.sessions), is_away: AtomicBool::new(false) });
    shared.sessions = Arc::clone(&switched) as _;
    let (service, _) = mounted(|builder| builder.scale_out(shared));
    let session = open(&service, None).await;
    switched.is_away.store(true, Ordering::SeqCst);
    let start = Instant::now();
    let initialize = Client::handshake("2025-11-25");
    let posts = [call_in(&session, 1, "echo"), get(&session), without_body(&session, "DELETE"), initialize];
    for post in &posts {
        let reply = ask(&service, post, None).await;
        assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (503, &"1".parse().unwrap()));
        assert_eq!(reply.headers().get("mcp-session-id"), None);
    }
    assert!(start.elapsed() < Duration::from_secs(7), "only the first waits: {:?}", start.elapsed());
    let envelope = Instant::now();
    assert_eq!(ask(&service, &Post::tool("echo"), None).await.status(), 200);
    assert_eq!(envelope.elapsed(), Duration::ZERO);
    switched.is_away.store(false, Ordering::SeqCst);
    // The request was admitted although the store did not say so; that is undone.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(ask(&service, &call_in(&session, 1, "echo"), None).await.status(), 200);
}

/// SCL-54: a message of HTTP+SSE at another node reaches the stream; one for a dead node gets 404.
#[tokio::test]
async fn a_message_of_http_sse_reaches_its_stream_from_another_node() {
    let cluster = cluster();
    let sse = |builder: StreamableHttpBuilder| builder.http_sse("/sse", "/messages");
    let (a, b) = (node_with(&cluster, sse), node_with(&cluster, sse));
    let mut stream = Post::body("").method("GET").path("/sse");
    stream.body.clear();
    let mut events = a.events(&stream).await;
    let endpoint = events.next().await.unwrap().data;
    let request = |id: i64, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Post::body(body.to_string()).path(&endpoint)
    };
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    assert_eq!(b.status(&request(1, "initialize", params)).await, 202);
    assert_eq!(events.message().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(a.status(&request(2, "ping", json!({}))).await, 202);
    assert_eq!(events.message().await.unwrap()["id"], 2);
    let stranger = Arc::new(Principal::new("bob"));
    assert_eq!(ask(&a.service, &request(3, "ping", json!({})), Some(&stranger)).await.status(), 404);
    cluster.end_lease(a.run);
    assert_eq!(b.status(&request(4, "ping", json!({}))).await, 404);
}
