//! The table of sessions: what it counts, and which session makes room for another one.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer_core::metrics::{Description, Distribution, Label, MetricSource as _, Visitor};
use duplexer_http::{MemoryCluster, StreamableHttp};
use duplexer_server::Principal;
use tokio::time::Instant;

use crate::support::{Client, Hooked, Operation, Post, ask, call_in, mounted, open, text_of};

/// Finds the number of sessions among the metrics of a service.
struct Sessions(String);

impl Visitor for Sessions {
    fn value(&mut self, of: &Description, _: &[Label<'_>], value: f64) {
        if of.name == "duplexer.http.sessions" {
            self.0 = value.to_string();
        }
    }

    fn histogram(&mut self, _: &Description, _: &[Label<'_>], _: &Distribution) {}
}

fn sessions(service: &StreamableHttp) -> String {
    let mut found = Sessions(String::new());
    service.read(&mut found);
    found.0
}

fn end(session: &str) -> Post {
    call_in(session, 1, "echo").method("DELETE")
}

/// Sessions of HTTP+SSE are not in the table, and count like all others.
#[tokio::test(start_paused = true)]
async fn the_number_of_sessions_includes_those_outside_the_table() {
    let (service, _) = mounted(|builder| builder.http_sse("/sse", "/messages").max_sessions(5));
    assert_eq!(sessions(&service), "0");
    let mut sse = Post::body("").method("GET").path("/sse").without("content-type");
    sse.body.clear();
    let mut streams = Vec::new();
    for _ in 0..2 {
        let stream = ask(&service, &sse, None).await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    assert_eq!(sessions(&service), "2");
    let first = open(&service, None).await;
    open(&service, None).await;
    open(&service, None).await;
    assert_eq!(sessions(&service), "5");
    assert_eq!(ask(&service, &Client::handshake("2025-11-25"), None).await.status(), 503);
    assert_eq!(ask(&service, &end(&first), None).await.status(), 200);
    assert_eq!(sessions(&service), "4");
}

/// Hardening 9: a session with a call in flight makes no room, though its handshake is not confirmed.
#[tokio::test(start_paused = true)]
async fn a_half_open_session_in_use_is_not_evicted() {
    let (service, stage) = mounted(|builder| builder.max_sessions(1));
    let handshake = Client::handshake("2025-11-25");
    let session = ask(&service, &handshake, None).await.headers()["mcp-session-id"].clone();
    let call = ask(&service, &call_in(session.to_str().unwrap(), 1, "tell then wait"), None).await;
    assert_eq!(ask(&service, &handshake, None).await.status(), 503);
    drop(call);
    stage.go.notify_one();
    stage.until_paused(&stage.ended, 1).await;
    assert_eq!(ask(&service, &handshake, None).await.status(), 200);
}

/// MGR-04: a principal at its limit loses an idle session of its own from the cache, and no other principal's.
#[tokio::test(start_paused = true)]
async fn a_principal_makes_room_in_the_cache_with_its_own_session() {
    let cluster = MemoryCluster::new(Duration::from_secs(3600));
    let (service, _) = mounted(|builder| builder.scale_out(cluster.node()).max_sessions_per_principal(1));
    let (ada, bob) = (Arc::new(Principal::new("ada")), Arc::new(Principal::new("bob")));
    open(&service, Some(&ada)).await;
    let bobs = open(&service, Some(&bob)).await;
    let second = open(&service, Some(&ada)).await;
    assert_eq!(sessions(&service), "2");
    for (session, principal) in [(&bobs, &bob), (&second, &ada)] {
        assert_eq!(ask(&service, &call_in(session, 1, "echo"), Some(principal)).await.status(), 200);
    }
}

/// SCL-21: a session that has expired in the stores leaves the cache with the next message.
#[tokio::test(start_paused = true)]
async fn a_session_that_the_stores_have_removed_leaves_the_cache() {
    let cluster = MemoryCluster::new(Duration::from_secs(60));
    let (service, _) = mounted(|builder| builder.scale_out(cluster.node()));
    let session = open(&service, None).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(sessions(&service), "1");
    assert_eq!(ask(&service, &call_in(&session, 1, "echo"), None).await.status(), 404);
    assert_eq!(sessions(&service), "0");
}

/// The events of a session that its client ends are removed. Those of sessions that end with the service stay: the next
/// process can have the same store.
#[tokio::test(start_paused = true)]
async fn only_the_events_of_a_session_that_is_over_are_removed() {
    let forgotten = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&forgotten);
    let store = Hooked::new(move |operation| {
        counted.fetch_add(usize::from(operation == Operation::Forget), Ordering::SeqCst);
        Box::pin(ready(Ok(())))
    });
    let (service, _) = mounted(|builder| builder.event_store(store));
    let first = open(&service, None).await;
    open(&service, None).await;
    open(&service, None).await;
    assert_eq!(ask(&service, &end(&first), None).await.status(), 200);
    service.handle().shutdown().await;
    assert_eq!(forgotten.load(Ordering::SeqCst), 1);
}

/// Hardening 9: the only session, too, ends in time if its handshake is never confirmed, and so does the next one.
#[tokio::test(start_paused = true)]
async fn a_single_half_open_session_ends() {
    let (service, stage) = mounted(|builder| builder.session_idle_timeout(None));
    for ended in 1..=2 {
        let opened = ask(&service, &Client::handshake("2025-11-25"), None).await;
        let session = opened.headers()["mcp-session-id"].to_str().unwrap();
        assert_eq!(ask(&service, &call_in(session, 1, "hook"), None).await.status(), 200);
        stage.until_paused(&stage.closed, ended).await;
        assert_eq!(sessions(&service), "0");
    }
}

/// Robustness H120: a stream for messages outside a request ends when the shutdown begins; calls have the grace to end.
#[tokio::test(start_paused = true)]
async fn a_standalone_stream_ends_when_the_shutdown_begins() {
    let (service, stage) = mounted(|builder| builder);
    let session = open(&service, None).await;
    let mut listen = call_in(&session, 1, "echo").method("GET");
    listen.body.clear();
    let stream = ask(&service, &listen, None).await;
    let call = ask(&service, &call_in(&session, 2, "go"), None).await;
    let (handle, begun) = (service.handle(), Instant::now());
    let reading = async {
        text_of(stream.into_body()).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        stage.go.notify_one();
        assert!(text_of(call.into_body()).await.contains("done"));
    };
    tokio::join!(handle.shutdown(), reading);
}
