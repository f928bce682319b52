//! Limits and deadlines of what one client can hold.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use duplexer_http::{ResponseBody, StreamableHttp};
use duplexer_server::Principal;
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower_service::Service;

use crate::support::{Client, Post, Site, Text, ask, call_in, frame, mounted, open, text_of};

const MINUTE: Duration = Duration::from_secs(60);

/// Hardening 2: one session has a limit of calls in flight; other sessions are not affected.
#[tokio::test(start_paused = true)]
async fn a_session_has_a_limit_of_calls_in_flight() {
    let (service, stage) = mounted(|builder| builder.sse_after(Duration::from_millis(1)));
    let (one, two) = (open(&service, None).await, open(&service, None).await);
    let mut streams = Vec::new();
    for id in 0..256 {
        streams.push(ask(&service, &call_in(&one, id, "go"), None).await);
    }
    let refused = ask(&service, &call_in(&one, 256, "echo"), None).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    let text = text_of(refused.into_body()).await;
    assert!(text.contains("Too many calls in flight in this session") && text.contains("-32603"), "{text}");
    assert_eq!(ask(&service, &call_in(&two, 1, "echo"), None).await.status(), StatusCode::OK);
    stage.go.notify_waiters();
    for stream in streams {
        assert!(text_of(stream.into_body()).await.contains("done"));
    }
    assert_eq!(ask(&service, &call_in(&one, 257, "echo"), None).await.status(), StatusCode::OK);
}

/// Hardening 2: a call without a reader is cancelled, and does not keep its permit; one with a reader is not.
#[tokio::test(start_paused = true)]
async fn a_call_that_no_client_reads_is_cancelled() {
    let (service, stage) = mounted(|builder| builder);
    let session = open(&service, None).await;
    let mut read = ask(&service, &call_in(&session, 1, "go"), None).await.into_body();
    drop(ask(&service, &call_in(&session, 2, "go"), None).await);
    let left = Instant::now();
    let ended = async {
        while stage.ended.load(Ordering::SeqCst) == 0 {
            stage.changed.notified().await;
        }
        left.elapsed()
    };
    let reading = async { while frame(&mut read).await.is_some() {} };
    let elapsed = tokio::select! {
        elapsed = ended => elapsed,
        () = reading => panic!("the call has a reader"),
    };
    assert_eq!(elapsed.as_secs(), 5 * 60);
    assert_eq!(ask(&service, &call_in(&session, 2, "echo"), None).await.status(), StatusCode::OK);
    stage.go.notify_one();
    assert!(text_of(read).await.contains("done"));
}

/// Hardening 2: the client that resumes an abandoned stream gets the reason.
#[tokio::test(start_paused = true)]
async fn an_abandoned_call_is_answered_for_a_late_reader() {
    let (service, stage) = mounted(|builder| builder.event_store(duplexer_http::MemoryEventStore::new()));
    let session = open(&service, None).await;
    let mut body = ask(&service, &call_in(&session, 1, "go"), None).await.into_body();
    let priming = String::from_utf8(frame(&mut body).await.unwrap().to_vec()).unwrap();
    let id = priming.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(body);
    stage.until_paused(&stage.ended, 1).await;
    let mut get = call_in(&session, 1, "go").method("GET").header("last-event-id", &id);
    get.body.clear();
    let text = text_of(ask(&service, &get, None).await.into_body()).await;
    assert!(text.contains("Request cancelled: no client has read its stream"), "{text}");
}

/// A session has a limited number of requests to its client; further ones fail at once, and a slot is free afterwards.
#[tokio::test(start_paused = true)]
async fn requests_to_the_client_are_limited() {
    let (service, _) = mounted(|builder| builder.max_client_requests_per_session(2));
    let session = open(&service, None).await;
    for id in 1..4 {
        let text = text_of(ask(&service, &call_in(&session, id, "questions"), None).await.into_body()).await;
        assert_eq!(text.matches("\"method\":\"roots/list\"").count(), 2, "{text}");
        assert!(text.contains("Too many requests to the client in this session"), "{text}");
    }
}

/// Hardening 2: a request of the server to the client fails after ten minutes.
#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_ends() {
    let (service, _) = mounted(|builder| builder);
    let session = open(&service, None).await;
    let asked = Instant::now();
    let text = text_of(ask(&service, &call_in(&session, 1, "question"), None).await.into_body()).await;
    assert_eq!(asked.elapsed(), 10 * MINUTE);
    assert!(text.contains("roots/list"), "{text}");
    let (service, _) = mounted(|builder| builder.client_request_timeout(MINUTE));
    let session = open(&service, None).await;
    let asked = Instant::now();
    text_of(ask(&service, &call_in(&session, 1, "question"), None).await.into_body()).await;
    assert_eq!(asked.elapsed(), MINUTE);
}

fn http_2(post: &Post) -> Request<Text> {
    let mut request = Request::builder().method(post.method).uri("http://localhost/mcp");
    request = request.version(Version::HTTP_2);
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    request.body(Text::new(&post.body)).unwrap()
}

fn requests_in_flight(service: &StreamableHttp) -> String {
    let text = format!("{service:?}");
    text.split_once("requests: ").unwrap().1.split_once(',').unwrap().0.to_owned()
}

/// Hardening 4: an HTTP/2 response that the client does not read counts as in flight, and is dropped in the end.
#[tokio::test(start_paused = true)]
async fn an_unread_response_over_http_2_counts_and_expires() {
    let (service, _) = mounted(|builder| builder);
    let session = open(&service, None).await;
    let post = call_in(&session, 1, "large");
    let send = async || -> Response<ResponseBody> { service.clone().call(http_2(&post)).await.unwrap() };
    let unread = send().await;
    assert_eq!(requests_in_flight(&service), "1");
    let mut read = send().await.into_body();
    assert_eq!(read.size_hint().exact(), Some(text_of(send().await.into_body()).await.len() as u64));
    for _ in 0..6 {
        assert!(frame(&mut read).await.is_some(), "a slow reader gets everything");
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(requests_in_flight(&service), "1", "only the response that is read is held");
    let mut unread = unread.into_body();
    assert_eq!(frame(&mut unread).await, None);
    assert_eq!(
        text_of(read).await.len() % (16 * 1024),
        text_of(send().await.into_body()).await.len() % (16 * 1024)
    );
    drop(unread);
    assert_eq!(requests_in_flight(&service), "0");
}

/// Hardening 4: the same over a connection whose window for the response is closed.
#[tokio::test]
async fn a_closed_window_does_not_hold_a_response() {
    let (keep_alive, unread) = (Duration::from_millis(100), Duration::from_millis(300));
    let (service, _) = mounted(|builder| builder.sse_keep_alive(keep_alive).unread_timeout(unread));
    let session = open(&service, None).await;
    let bound = service.clone().bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(bound.local_addr().unwrap()).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(bound.serve_until(std::future::pending()));
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) =
        builder.initial_stream_window_size(1000).handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { connection.await.unwrap() });
    let mut responses = Vec::new();
    for id in 0..20 {
        responses.push(sender.send_request(http_2(&call_in(&session, id, "large"))).await.unwrap());
    }
    while requests_in_flight(&service) != "0" {
        tokio::task::yield_now().await;
    }
    for response in responses {
        assert_eq!(response.status(), StatusCode::OK);
        let mut body = response.into_body();
        let mut next = async || std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let outcome = loop {
            match next().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        };
        assert!(matches!(outcome, Some(Err(_))), "the response was dropped");
    }
}

async fn half_open(service: &StreamableHttp) -> String {
    let reply = ask(service, &Client::handshake("2025-11-25"), None).await;
    assert_eq!(reply.status(), StatusCode::OK);
    reply.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

/// Hardening 9: a client gets in although 10 000 others have left their handshakes unconfirmed, and the sessions of
/// confirmed clients stay.
#[tokio::test(start_paused = true)]
async fn half_open_sessions_are_evicted_first() {
    let (service, _) = mounted(|builder| builder);
    let confirmed = open(&service, None).await;
    let oldest = half_open(&service).await;
    let mut busy = ask(&service, &call_in(&oldest, 1, "tell then wait"), None).await.into_body();
    let second = half_open(&service).await;
    for _ in 3..10_000 {
        half_open(&service).await;
    }
    let new = open(&service, None).await;
    for (session, status) in [(&second, 404), (&confirmed, 200), (&new, 200)] {
        assert_eq!(ask(&service, &call_in(session, 1, "echo"), None).await.status(), status);
    }
    assert!(frame(&mut busy).await.is_some(), "a session with a call in flight stays");
}

/// Hardening 9: without a half-open session the limit holds.
#[tokio::test(start_paused = true)]
async fn confirmed_sessions_are_not_evicted() {
    let (service, _) = mounted(|builder| builder.max_sessions(2));
    let (one, two) = (open(&service, None).await, open(&service, None).await);
    let refused = ask(&service, &Client::handshake("2025-11-25"), None).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    for session in [&one, &two] {
        assert_eq!(ask(&service, &call_in(session, 1, "echo"), None).await.status(), StatusCode::OK);
    }
}

/// Hardening 9: a session whose handshake is never confirmed ends after a minute, without a request.
#[tokio::test(start_paused = true)]
async fn a_half_open_session_ends() {
    let (service, stage) = mounted(|builder| builder.session_idle_timeout(None));
    let (one, two) = (half_open(&service).await, open(&service, None).await);
    ask(&service, &call_in(&one, 1, "hook"), None).await;
    let start = Instant::now();
    stage.until_paused(&stage.closed, 1).await;
    assert!((60..=68).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(ask(&service, &call_in(&one, 1, "echo"), None).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(ask(&service, &call_in(&two, 1, "echo"), None).await.status(), StatusCode::OK);
}

/// Hardening 11: standing streams of every kind end with the token that opened them.
#[tokio::test(start_paused = true)]
async fn standing_streams_end_with_their_token() {
    let (service, stage) = mounted(|builder| builder.http_sse("/sse", "/messages"));
    let mut principal = Principal::new("a");
    principal.expires_at = Some(SystemTime::now() + Duration::from_secs(100));
    let principal = Arc::new(principal);
    let listen = Post::envelope("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut sse = Post::body("").method("GET").path("/sse").without("content-type");
    sse.body.clear();
    for (post, first) in [(listen, "acknowledged"), (sse, "event: endpoint")] {
        let start = Instant::now();
        let text = text_of(ask(&service, &post, Some(&principal)).await.into_body()).await;
        assert!(text.contains(first) && !text.contains("result"), "{text}");
        assert!((90..=101).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }
    assert_eq!(stage.ended.load(Ordering::SeqCst), 1, "the handler of the subscription has been dropped");
}

/// At the limit of connections the one that has waited longest for its own peer is closed, and one with a call is not.
#[tokio::test]
async fn a_new_connection_replaces_the_one_that_waits_longest_for_its_peer() {
    let mut site = Site::bound(|builder| builder, |bound| bound.max_connections(4)).await;
    let mut busy = site.connect().await;
    busy.send(&Post::tool("go").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 1).await;
    let mut idle = site.connect().await;
    idle.send(&Post::tool("echo").bytes(site.address)).await;
    assert_eq!(idle.reply().await.status, 200);
    let mut slow_head = site.connect().await;
    slow_head.send(b"POST /mcp HTTP/1.1\r\nhost: local").await;
    let mut slow_body = site.connect().await;
    let body = Post { body: "{".into(), ..Post::tool("echo") }.header("content-length", "100");
    slow_body.send(&body.bytes(site.address)).await;
    let mut kept = Vec::new();
    for waiting in [&mut idle, &mut slow_head, &mut slow_body] {
        let mut new = site.connect().await;
        new.send(&Post::tool("echo").bytes(site.address)).await;
        assert_eq!(new.reply().await.status, 200);
        assert!(waiting.is_closed().await);
        kept.push(new);
    }
    for _ in 0..4 {
        assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
    }
    site.stage.go.notify_one();
    assert_eq!(busy.reply().await.json()["result"]["content"][0]["text"], "done");
    site.finish().await;
}

/// While every connection has a call in flight, a new one waits.
#[tokio::test]
async fn a_connection_with_a_call_is_not_replaced() {
    let site = Site::bound(|builder| builder, |bound| bound.max_connections(1)).await;
    let mut busy = site.connect().await;
    busy.send(&Post::tool("go").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 1).await;
    let answered = async {
        let reply = site.post(&Post::tool("echo")).await;
        assert_eq!(reply.status, 200);
        site.stage.ended.load(Ordering::SeqCst)
    };
    let released = async {
        site.stage.go.notify_one();
        assert_eq!(busy.reply().await.status, 200);
    };
    let (ended, ()) = tokio::join!(answered, released);
    assert_eq!(ended, 2, "after the call");
}

fn named(client: &str) -> Arc<Principal> {
    Arc::new(Principal::new(client))
}

/// Shares: one principal cannot take all sessions. At its limit its own oldest half-open session makes room, and no
/// other principal's.
#[tokio::test(start_paused = true)]
async fn a_principal_has_a_share_of_the_sessions() {
    let (service, _) = mounted(|builder| builder.max_sessions(10).max_sessions_per_principal(3));
    let (ada, bob) = (named("ada"), named("bob"));
    let handshake = Client::handshake("2025-11-25");
    let bobs_half_open = ask(&service, &handshake, Some(&bob)).await.headers()["mcp-session-id"].clone();
    let first = open(&service, Some(&ada)).await;
    let half_open = ask(&service, &handshake, Some(&ada)).await.headers()["mcp-session-id"].clone();
    open(&service, Some(&ada)).await;
    // The half-open session makes room; then there is none left.
    open(&service, Some(&ada)).await;
    let gone = call_in(half_open.to_str().unwrap(), 1, "echo");
    assert_eq!(ask(&service, &gone, Some(&ada)).await.status(), StatusCode::NOT_FOUND);
    for _ in 0..2 {
        let refused = ask(&service, &handshake, Some(&ada)).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(text_of(refused.into_body()).await.contains("Too many open sessions"));
    }
    open(&service, Some(&bob)).await;
    open(&service, None).await;
    let kept = call_in(bobs_half_open.to_str().unwrap(), 1, "echo");
    assert_eq!(ask(&service, &kept, Some(&bob)).await.status(), StatusCode::OK);
    // An ended session returns its part of the share.
    let end = call_in(&first, 1, "echo").method("DELETE");
    assert_eq!(ask(&service, &end, Some(&ada)).await.status(), StatusCode::OK);
    open(&service, Some(&ada)).await;
}

/// Shares: one principal cannot take all requests, over any number of sessions; others are served.
#[tokio::test(start_paused = true)]
async fn a_principal_has_a_share_of_the_requests() {
    let (service, stage) =
        mounted(|builder| builder.max_requests_per_principal(20).sse_after(Duration::from_millis(1)));
    let (ada, bob) = (named("ada"), named("bob"));
    let mut streams = Vec::new();
    for _ in 0..4 {
        let session = open(&service, Some(&ada)).await;
        for id in 0..5 {
            streams.push(ask(&service, &call_in(&session, id, "go"), Some(&ada)).await);
        }
    }
    let refused = ask(&service, &Post::tool("echo"), Some(&ada)).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text_of(refused.into_body()).await.contains("Too many requests in flight"));
    for other in [Some(&bob), None] {
        assert_eq!(ask(&service, &Post::tool("echo"), other).await.status(), StatusCode::OK);
    }
    stage.go.notify_waiters();
    for stream in streams {
        assert!(text_of(stream.into_body()).await.contains("done"));
    }
    assert_eq!(ask(&service, &Post::tool("echo"), Some(&ada)).await.status(), StatusCode::OK);
}

/// Shares: one principal cannot take all subscriptions, and an ended one is returned.
#[tokio::test(start_paused = true)]
async fn a_principal_has_a_share_of_the_subscriptions() {
    let (service, _) = mounted(|builder| builder.max_subscriptions_per_principal(2));
    let (ada, bob) = (named("ada"), named("bob"));
    let listen = Post::envelope("subscriptions/listen", json!({ "notifications": {} }));
    let mut open = Vec::new();
    for _ in 0..2 {
        let stream = ask(&service, &listen, Some(&ada)).await;
        assert_eq!(stream.status(), StatusCode::OK);
        open.push(stream);
    }
    let refused = ask(&service, &listen, Some(&ada)).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(text_of(refused.into_body()).await.contains("Too many subscriptions"));
    assert_eq!(ask(&service, &listen, Some(&bob)).await.status(), StatusCode::OK);
    open.pop();
    assert_eq!(ask(&service, &listen, Some(&ada)).await.status(), StatusCode::OK);
}
