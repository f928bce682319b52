//! Start and shutdown of a service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use duplexer_http::StreamableHttp;
use http_body::Body;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::{Post, Site, Stage, Text, Wire, events, many_descriptors, server};

/// Robustness H121: calls that finish within the grace are answered; the teardown runs after them.
#[tokio::test]
async fn calls_in_flight_are_answered_before_the_end() {
    let mut site = Site::new().await;
    let mut wire = site.connect().await;
    wire.send(&Post::tool("go").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 1).await;
    let (stage, address) = (Arc::clone(&site.stage), site.address);
    let release = async {
        // The listener is closed: the shutdown has begun.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(stage.torn_down.load(Ordering::SeqCst), 0);
        stage.go.notify_one();
    };
    let (took, ()) = tokio::join!(site.finish(), release);
    assert_eq!(wire.reply().await.json()["result"]["content"][0]["text"], "done");
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(site.stage.torn_down.load(Ordering::SeqCst), 1);
}

/// Robustness H120: unfinished requests are answered with -32000, subscriptions end with their result, idle connections
/// are closed; all within five seconds.
#[tokio::test]
async fn the_end_comes_in_time() {
    let mut site = Site::with(|builder| builder.shutdown_grace(Duration::from_millis(300))).await;
    let mut idle = site.connect().await;
    idle.send(&Post::tool("echo").bytes(site.address)).await;
    idle.reply().await;
    let mut stuck = site.connect().await;
    stuck.send(&Post::tool("wait").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 2).await;
    let mut streaming = site.connect().await;
    streaming.send(&Post::tool("tell then wait").bytes(site.address)).await;
    streaming.head().await.unwrap();
    let mut listening = site.connect().await;
    let listen = Post::envelope("subscriptions/listen", json!({"notifications": {}}));
    listening.send(&listen.bytes(site.address)).await;
    listening.head().await.unwrap();

    let took = site.finish().await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(idle.is_closed().await);
    let reply = stuck.reply().await;
    assert_eq!((reply.status, reply.code()), (200, -32000));
    let mut last = String::new();
    while let Some(chunk) = streaming.chunk().await {
        last += std::str::from_utf8(&chunk).unwrap();
    }
    assert_eq!(events(&last).last().unwrap()["error"]["code"], -32000);
    let mut last = String::new();
    while let Some(chunk) = listening.chunk().await {
        last += std::str::from_utf8(&chunk).unwrap();
    }
    assert_eq!(events(&last).last().unwrap()["result"]["resultType"], "complete");
    assert_eq!(site.stage.torn_down.load(Ordering::SeqCst), 1);
}

/// Robustness H120: `serve` ends soon after SIGTERM although a stream is open.
///
/// One test for all signals: every service of this process receives them.
#[tokio::test]
async fn a_signal_ends_the_service_in_time() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(service.serve(address));
    let mut wire = loop {
        match TcpStream::connect(address).await {
            Ok(stream) => break Wire::over(stream),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let listen = Post::envelope("subscriptions/listen", json!({"notifications": {}}));
    wire.send(&listen.bytes(address)).await;
    wire.head().await.unwrap();
    let start = Instant::now();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
    timeout(Duration::from_secs(10), tasks.join_next()).await.expect("an end").unwrap().unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(stage.torn_down.load(Ordering::SeqCst), 1);
    let mut last = String::new();
    while let Some(chunk) = wire.chunk().await {
        last += std::str::from_utf8(&chunk).unwrap();
    }
    assert!(last.contains(r#""resultType":"complete""#), "{last}");
    a_second_signal_ends_the_grace().await;
    a_signal_ends_a_server_of_another_library().await;
}

fn terminate() {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
}

/// Waits until no connection is accepted any more.
async fn until_closed(address: std::net::SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// With a grace of an hour, only the second signal can end the service. It has a layer, and the call that is cut says why.
async fn a_second_signal_ends_the_grace() {
    let stage = Arc::new(Stage::default());
    let builder = StreamableHttp::builder(server(&stage)).shutdown_grace(Duration::from_secs(3600));
    let bound = builder.build().unwrap().bind("127.0.0.1:0").await.unwrap();
    let address = bound.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(bound.layer(tower_layer::Identity::default()).serve());
    let mut wire = Wire::over(TcpStream::connect(address).await.unwrap());
    wire.send(&Post::tool("wait").bytes(address)).await;
    stage.until(&stage.started, 1).await;
    terminate();
    until_closed(address).await;
    terminate();
    timeout(Duration::from_secs(60), tasks.join_next()).await.expect("an end").unwrap().unwrap().unwrap();
    assert_eq!(stage.torn_down.load(Ordering::SeqCst), 1);
    let error = &wire.reply().await.json()["error"];
    assert_eq!(error["code"], -32000);
    assert_eq!(error["message"], "Connection closed: the server is shutting down");
}

/// A signal ends axum's own server gracefully, with the teardown.
async fn a_signal_ends_a_server_of_another_library() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let ended = service.handle().on_signal().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = axum::Router::new().route_service("/mcp", service);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async { axum::serve(listener, app).with_graceful_shutdown(ended).await });
    let mut wire = Wire::over(TcpStream::connect(address).await.unwrap());
    wire.send(&Post::tool("echo").header("connection", "close").bytes(address)).await;
    assert_eq!(wire.reply().await.status, 200);
    terminate();
    timeout(Duration::from_secs(60), tasks.join_next()).await.expect("an end").unwrap().unwrap().unwrap();
    assert_eq!(stage.torn_down.load(Ordering::SeqCst), 1);
}

/// HTTP/2 without TLS, on the same port.
#[tokio::test]
async fn http_2_is_spoken_too() {
    let site = Site::new().await;
    let stream = TcpStream::connect(site.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    for (tool, host, status) in
        [("echo", "localhost", 200), ("tell", "localhost:1", 200), ("echo", "evil.example", 403)]
    {
        let post = Post::tool(tool);
        let mut request = http::Request::builder().method("POST").uri(format!("http://{host}/mcp"));
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        let response = sender.send_request(request.body(Text::new(&post.body)).unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{host}");
        let mut body = response.into_body();
        let mut text = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await
        {
            text.extend(frame.unwrap().into_data().unwrap());
        }
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.contains("\"id\":1"), status == 200, "{text}");
        assert_eq!(events(&text).len(), if tool == "tell" { 4 } else { 0 });
    }
}

/// A connection serves many requests; beyond the request limit there is a 503 with `Retry-After`.
#[tokio::test]
async fn connections_are_kept_and_requests_are_limited() {
    let site = Site::with(|builder| builder.max_requests(1)).await;
    let mut wire = site.connect().await;
    for _ in 0..3 {
        wire.send(&Post::tool("echo").bytes(site.address)).await;
        assert_eq!(wire.reply().await.status, 200);
    }
    wire.send(&Post::tool("go").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 4).await;
    let reply = site.post(&Post::tool("echo")).await;
    assert_eq!((reply.status, reply.code(), reply.header("retry-after")), (503, -32603, Some("1")));
    site.stage.go.notify_one();
    assert_eq!(wire.reply().await.status, 200);
    assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
}

/// Robustness 3.1: all are answered, and none waits for another: they are in flight together.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_calls_at_once_are_answered() {
    many_descriptors();
    let site = Site::new().await;
    let post = Post::tool("go");
    let mut wires = Vec::new();
    for _ in 0..2000 {
        wires.push(site.connect().await);
    }
    for wire in &mut wires {
        wire.send(&post.bytes(site.address)).await;
    }
    site.stage.until(&site.stage.started, wires.len()).await;
    let release = async {
        loop {
            // More than once, because one that has started need not be waiting yet.
            site.stage.go.notify_waiters();
            tokio::task::yield_now().await;
        }
    };
    let answered = async {
        for wire in &mut wires {
            assert_eq!(wire.reply().await.status, 200);
        }
    };
    tokio::select! {
        () = answered => {}
        () = release => {}
    }
}
