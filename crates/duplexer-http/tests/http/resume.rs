//! Resumed streams.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_http::{EventStore, MemoryEventStore, StoredEvent, StreamKey};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::{Client, SentEvent, Site, Wire};

async fn site() -> Site {
    Site::with(|builder| builder.event_store(MemoryEventStore::new())).await
}

async fn resume(client: &Client<'_>, last: &str) -> Wire {
    let mut wire = client.site.connect().await;
    wire.send(&client.get().header("Last-Event-ID", last).bytes(client.site.address)).await;
    let head = wire.head().await.unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    wire
}

async fn rest(wire: &mut Wire) -> Vec<SentEvent> {
    let mut events = Vec::new();
    while let Some(event) = wire.event().await {
        events.push(event);
    }
    events
}

/// HTTPL-19, P-LEG-17: the first event has an id and a retry time; every other event has an id of its own.
#[tokio::test]
async fn a_stream_begins_with_where_to_come_back_to() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell").await;
    let opening = stream.event().await.unwrap();
    assert_eq!((opening.data.as_str(), opening.retry.as_deref()), ("", Some("1000")));
    let events = rest(&mut stream).await;
    let ids: Vec<_> = events.iter().map(|event| event.id.clone().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    let prefix = opening.id.unwrap().split_once('-').unwrap().0.to_owned();
    assert_eq!(prefix.len(), 32, "128 bits");
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(*id, format!("{prefix}-{}", index + 1));
    }
    let quick = client.call(2, "echo").await;
    assert!(quick.text().contains("retry: 1000"), "an answer that comes at once is a stream too");
    let mut listening = client.listen().await;
    assert_eq!(listening.event().await.unwrap().retry.as_deref(), Some("1000"));
}

/// HTTPL-19, protocol.md 2.4: clients of older revisions could misread an event without data as a message.
#[tokio::test]
async fn older_revisions_have_no_opening_event() {
    let site = site().await;
    for version in ["2025-03-26", "2025-06-18"] {
        let client = Client::open_at(&site, version).await;
        let mut stream = client.stream(1, "tell").await;
        let events = rest(&mut stream).await;
        assert_eq!((events.len(), events[0].retry.clone()), (4, None), "{version}");
        let again = rest(&mut resume(&client, events[1].id.as_deref().unwrap()).await).await;
        assert_eq!(again, events[2..], "but it can be taken up all the same");
    }
}

/// HTTPL-10, HTTPL-20, P-LEG-16, P-CAN-6: a client that lost the connection gets the remaining events, once, and then
/// the response.
#[tokio::test]
async fn a_lost_stream_is_taken_up_where_it_broke() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell then wait").await;
    stream.event().await.unwrap();
    let seen = stream.event().await.unwrap();
    assert_eq!(seen.json()["params"]["progress"], json!(1));
    drop(stream);
    let mut again = resume(&client, seen.id.as_deref().unwrap()).await;
    let opening = again.event().await.unwrap();
    assert_eq!((opening.id, opening.data.as_str()), (seen.id, ""));
    site.stage.go.notify_one();
    let events = rest(&mut again).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0].json()["params"]["progress"], json!(2));
    assert_eq!(events[1].json()["result"]["content"][0]["text"], "done");
}

/// HTTPL-20: a stream that ended without a reader can be replayed any number of times.
#[tokio::test]
async fn an_answer_waits_for_its_client() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell then wait").await;
    let opening = stream.event().await.unwrap();
    drop(stream);
    site.stage.go.notify_one();
    site.stage.until(&site.stage.ended, 1).await;
    for _ in 0..2 {
        let mut again = resume(&client, opening.id.as_deref().unwrap()).await;
        let events: Vec<_> =
            rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
        let progress: Vec<_> =
            events.iter().map(|event| event.json()["params"]["progress"].clone()).collect();
        assert_eq!(progress, [json!(1), json!(2), json!(null)]);
        assert_eq!(events[2].json()["id"], 1);
    }
}

/// HTTPL-21, P-LEG-17: a handler closes the stream, and the client gets the response when it resumes.
#[tokio::test]
async fn a_handler_lets_its_client_go() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "let go").await;
    let mut events = rest(&mut stream).await;
    let last = events.pop().unwrap();
    site.stage.until(&site.stage.sent, 1).await;
    let mut again = resume(&client, last.id.as_deref().unwrap()).await;
    site.stage.go.notify_one();
    let events: Vec<_> = rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
    assert_eq!(events.last().unwrap().json()["result"]["content"][0]["text"], "Closing");
}

/// Stores events only while the gate is open.
struct Gated {
    inner: MemoryEventStore,
    gate: Semaphore,
}

impl EventStore for Gated {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>> {
        let stored = self.inner.append(stream, event);
        Box::pin(async move {
            self.gate.acquire().await?.forget();
            stored.await
        })
    }

    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>> {
        self.inner.replay(stream, after)
    }

    fn forget(&self, session: &str) -> BoxFuture<'_, Result<(), BoxError>> {
        self.inner.forget(session)
    }
}

/// HTTPL-21, hardening, other defects 3: a closed stream ends after the events so far, also those that the store has not
/// confirmed; later ones wait for the client that resumes it.
#[tokio::test]
async fn a_closed_stream_ends_after_the_events_on_their_way_to_the_store() {
    let store = Arc::new(Gated { inner: MemoryEventStore::new(), gate: Semaphore::new(1) });
    let shared = Arc::clone(&store);
    let site = Site::with(|builder| builder.event_store(shared)).await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "let go").await;
    let opening = stream.event().await.unwrap();
    assert_eq!(opening.data, "");
    site.stage.until(&site.stage.sent, 1).await;
    site.stage.go.notify_one();
    site.stage.until(&site.stage.ended, 1).await;
    store.gate.add_permits(10);
    let events = rest(&mut stream).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].json()["params"]["progress"], json!(1));
    let mut again = resume(&client, events[0].id.as_deref().unwrap()).await;
    let events: Vec<_> = rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
    assert_eq!(events[0].json()["params"]["progress"], json!(2));
    assert_eq!(events[1].json()["result"]["content"][0]["text"], "Closing");
}

/// HTTPL-21: only where the client can resume.
#[tokio::test]
async fn a_client_that_cannot_come_back_is_not_let_go() {
    let (plain, kept) = (Site::new().await, site().await);
    for (site, version) in [(&plain, "2025-11-25"), (&kept, "2025-06-18")] {
        let client = Client::open_at(site, version).await;
        let mut stream = client.stream(1, "let go").await;
        site.stage.until(&site.stage.sent, 1).await;
        site.stage.go.notify_one();
        let events = rest(&mut stream).await;
        assert_eq!(events.last().unwrap().json()["result"]["content"][0]["text"], "NotSupported");
    }
}

/// HTTPL-17: messages outside a request are stored while there is no reader, for the client that resumes the stream only.
#[tokio::test]
async fn the_standalone_stream_is_taken_up_too() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut listening = client.listen().await;
    let opening = listening.event().await.unwrap().id.unwrap();
    drop(listening);
    client.call(1, "announce").await;
    let mut again = resume(&client, &opening).await;
    again.event().await.unwrap();
    let event = again.event().await.unwrap();
    assert_eq!(event.json()["method"], "notifications/tools/list_changed");
    client.call(2, "announce").await;
    assert_eq!(again.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
    // A client that resumes replaces a reader that still seems attached.
    let mut third = resume(&client, event.id.as_deref().unwrap()).await;
    third.event().await.unwrap();
    assert!(third.event().await.is_some());
    assert_eq!(again.event().await, None);
}

/// P-LEG-16, peers 23, GHSA-84j6-jc92-77jm: the events of another session, or of another stream, are not replayed.
#[tokio::test]
async fn foreign_event_ids_replay_nothing() {
    let site = site().await;
    let (one, two) = (Client::open(&site).await, Client::open(&site).await);
    let mut stream = one.stream(1, "tell").await;
    let ids: Vec<_> = rest(&mut stream).await.into_iter().filter_map(|event| event.id).collect();
    let unknown = format!("{:032x}-0", 7);
    for foreign in [ids[0].as_str(), &unknown, "", "x", "0", "-", "%00"] {
        let mut wire = resume(&two, foreign).await;
        assert_eq!(rest(&mut wire).await, [], "{foreign}");
    }
    let reply = site.post(&two.get().header("last-event-id", "a").header("last-event-id", "b")).await;
    assert_eq!(reply.status, 400);
}

/// Design item 10, robustness H97: without a store no stream can be resumed, and the error says so. A dead session is
/// 404.
#[tokio::test]
async fn without_a_store_nothing_is_taken_up() {
    let plain = Site::new().await;
    let client = Client::open(&plain).await;
    let reply = plain.post(&client.get().header("last-event-id", "x")).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("keeps no events"), "{}", reply.text());
    let kept = site().await;
    let client = Client::open(&kept).await;
    kept.post(&client.delete()).await;
    assert_eq!(kept.post(&client.get().header("last-event-id", "x")).await.status, 404);
}

/// Fails, hangs or panics, from a certain operation on.
struct Bad {
    how: How,
    after: usize,
    seen: AtomicUsize,
    inner: MemoryEventStore,
}

#[derive(Clone, Copy)]
enum How {
    Fails,
    Hangs,
    Panics,
}

impl Bad {
    fn is_sound(&self) -> bool {
        self.seen.fetch_add(1, Ordering::SeqCst) < self.after
    }

    fn fail<T: Send + 'static>(&self) -> BoxFuture<'static, Result<T, BoxError>> {
        match self.how {
            How::Fails => Box::pin(ready(Err("no".into()))),
            How::Hangs => Box::pin(pending()),
            How::Panics => panic!("a store that fails badly"),
        }
    }
}

impl EventStore for Bad {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>> {
        if self.is_sound() { self.inner.append(stream, event) } else { self.fail() }
    }

    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>> {
        if self.is_sound() { self.inner.replay(stream, after) } else { self.fail() }
    }

    fn forget(&self, _: &str) -> BoxFuture<'_, Result<(), BoxError>> {
        self.fail()
    }
}

async fn with_bad_store(how: How, after: usize) -> Site {
    let store = Bad { how, after, seen: AtomicUsize::new(0), inner: MemoryEventStore::new() };
    Site::with(|builder| builder.event_store(store)).await
}

/// HTTPL-19: a store that fails when a stream starts fails the request; nothing of it is left.
#[tokio::test]
async fn a_store_that_fails_costs_one_request() {
    for how in [How::Fails, How::Panics] {
        let site = with_bad_store(how, 0).await;
        let client = Client::open(&site).await;
        for _ in 0..2 {
            let reply = client.call(1, "echo").await;
            assert_eq!((reply.status, reply.code()), (500, -32603));
        }
        assert_eq!(site.stage.started.load(Ordering::SeqCst), 0);
        assert_eq!(site.post(&client.get()).await.status, 500);
        assert_eq!(site.post(&client.delete()).await.status, 200);
    }
}

/// After a later failure of the store the stream cannot be resumed, but no event is lost.
#[tokio::test]
async fn a_store_that_fails_later_loses_nothing_that_is_read() {
    for how in [How::Fails, How::Panics] {
        let site = with_bad_store(how, 2).await;
        let client = Client::open(&site).await;
        let mut stream = client.stream(1, "tell").await;
        let events = rest(&mut stream).await;
        assert_eq!(events.len(), 5, "{events:?}");
        let with_id: Vec<_> = events.iter().map(|event| event.id.is_some()).collect();
        assert_eq!(with_id, [true, true, false, false, false]);
        let reply = site.post(&client.get().header("last-event-id", events[0].id.as_deref().unwrap())).await;
        assert_eq!(reply.status, 500);
    }
}

/// A store that hangs delays a stream by one timeout.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_not_waited_for() {
    use duplexer_http::StreamableHttp;
    use tower_service::Service;

    let stage = Arc::default();
    let store = Bad { how: How::Hangs, after: 1, seen: AtomicUsize::new(0), inner: MemoryEventStore::new() };
    let service = StreamableHttp::builder(crate::support::server(&stage)).event_store(store).build().unwrap();
    let ask = async |post: &crate::support::Post| {
        let mut request =
            http::Request::builder().method(post.method).uri("/mcp").header("host", "localhost");
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        let request = request.body(crate::support::Text::new(&post.body)).unwrap();
        service.clone().call(request).await.unwrap()
    };
    let opened = ask(&Client::handshake("2025-11-25")).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let call = |id: i64| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}});
        crate::support::Post::body(body.to_string()).header("mcp-session-id", &session)
    };
    let start = tokio::time::Instant::now();
    let mut body = ask(&call(1)).await.into_body();
    let mut text = Vec::new();
    while let Some(frame) =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(std::pin::Pin::new(&mut body), cx)).await
    {
        text.extend_from_slice(frame.unwrap().data_ref().unwrap());
    }
    assert!(String::from_utf8(text).unwrap().contains("\"result\""));
    assert_eq!(start.elapsed().as_secs(), 5);
    assert_eq!(ask(&call(2)).await.status(), 500, "where a stream cannot begin, the request is refused");
    assert_eq!(start.elapsed().as_secs(), 10);
}
