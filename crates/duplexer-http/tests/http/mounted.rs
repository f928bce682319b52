//! The service as a mounted tower service, with a paused clock.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use duplexer_http::{ResponseBody, StreamTimedOut, StreamableHttp};
use duplexer_server::Server;
use http::{Request, Response};
use http_body::Body;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower_service::Service;

use crate::support::{Post, Stage, Text, events, server};

fn request(post: &Post) -> Request<Text> {
    let mut request = Request::builder().method(post.method).uri(&post.path).header("host", "localhost");
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    request.body(Text::new(&post.body)).unwrap()
}

async fn call(service: &StreamableHttp, post: &Post) -> Response<ResponseBody> {
    let Ok(response) = service.clone().call(request(post)).await;
    response
}

async fn frame(body: &mut ResponseBody) -> Option<Result<Bytes, StreamTimedOut>> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    Some(frame.map(|frame| frame.into_data().unwrap()))
}

async fn text(mut body: ResponseBody) -> String {
    let mut all = Vec::new();
    while let Some(part) = frame(&mut body).await {
        all.extend(part.unwrap());
    }
    String::from_utf8(all).unwrap()
}

/// HTTPM-11: the times are fifteen seconds.
#[tokio::test(start_paused = true)]
async fn a_silent_handler_is_given_fifteen_seconds_then_a_stream_with_comments() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let start = Instant::now();
    let response = call(&service, &Post::tool("go")).await;
    assert_eq!(start.elapsed().as_secs(), 15);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    for waited in [30, 45] {
        assert_eq!(frame(&mut body).await, Some(Ok(Bytes::from_static(b": ping\r\n\r\n"))));
        assert_eq!(start.elapsed().as_secs(), waited);
    }
    stage.go.notify_one();
    let answer = events(&text(body).await);
    assert_eq!(answer[0]["result"]["content"][0]["text"], "done");
}

/// An unread stream is closed after a minute, wherever the service is mounted.
#[tokio::test(start_paused = true)]
async fn an_unread_stream_is_closed_after_a_minute() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let mut body = call(&service, &Post::tool("flood")).await.into_body();
    assert!(frame(&mut body).await.unwrap().is_ok());
    let sent = stage.sent.load(Ordering::SeqCst);
    let start = Instant::now();
    stage.until_paused(&stage.ended, 1).await;
    let waited = start.elapsed().as_secs();
    assert!((60..=75).contains(&waited), "{waited}");
    assert_eq!(stage.sent.load(Ordering::SeqCst), sent, "without a reader the handler does not advance");
    assert!(matches!(frame(&mut body).await, Some(Err(StreamTimedOut { .. }))));
}

/// The handler stays pending: only the notification can wake the stream.
#[tokio::test(start_paused = true)]
async fn a_notification_from_another_task_is_streamed_at_once() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let mut body = call(&service, &Post::tool("tell from a task")).await.into_body();
    assert!(frame(&mut body).await.unwrap().is_ok());
    let start = Instant::now();
    stage.go.notify_one();
    let second = frame(&mut body).await.unwrap().unwrap();
    assert_eq!(events(std::str::from_utf8(&second).unwrap())[0]["params"]["progress"], 2.0);
    assert_eq!(start.elapsed().as_secs(), 0);
}

/// A subscription that is read stays open, however silent it is.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_that_is_read_is_not_cut() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let listen = Post::envelope(
        "subscriptions/listen",
        serde_json::json!({"notifications": {"toolsListChanged": true}}),
    );
    let mut body = call(&service, &listen).await.into_body();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(600) {
        assert!(frame(&mut body).await.unwrap().is_ok());
    }
    assert_eq!(stage.ended.load(Ordering::SeqCst), 0);
    let (rest, ()) = tokio::join!(text(body), async { service.handle().shutdown().await });
    assert_eq!(events(&rest)[0]["result"]["resultType"], "complete");
}

/// MGR-11, peers 14: the first request starts the server, once, and a client that leaves does not stop the start.
#[tokio::test(start_paused = true)]
async fn the_first_request_starts_the_server_and_cannot_take_it_down() {
    let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Arc::new(Semaphore::new(0));
    let (starts, ends, opened) = (Arc::clone(&started), Arc::clone(&ended), Arc::clone(&gate));
    let server = Server::builder("test", "0")
        .lifespan(move || {
            let (starts, opened) = (Arc::clone(&starts), Arc::clone(&opened));
            async move {
                starts.fetch_add(1, Ordering::SeqCst);
                opened.acquire().await.unwrap().forget();
                Ok::<_, std::io::Error>(5_u8)
            }
        })
        .on_shutdown(move |_| {
            let ends = Arc::clone(&ends);
            async move {
                ends.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    let service = StreamableHttp::new(server);
    let discover = Post::envelope("server/discover", serde_json::json!({}));
    let first = tokio::time::timeout(Duration::from_secs(1), call(&service, &discover)).await;
    assert!(first.is_err(), "the start takes longer than the first caller waits");
    gate.add_permits(1);
    assert_eq!(call(&service, &discover).await.status(), 200);
    assert_eq!(started.load(Ordering::SeqCst), 1);
    let handle = service.handle();
    handle.shutdown().await;
    handle.shutdown().await;
    assert_eq!(ended.load(Ordering::SeqCst), 1, "the teardown runs once");
    let refused = call(&service, &discover).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
}

/// A failed start is not explained to the client, and is tried again.
#[tokio::test]
async fn a_failed_start_is_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let server = Server::builder("test", "0")
        .lifespan(move || {
            let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if first { Err("the password is wrong") } else { Ok(5_u8) } }
        })
        .build()
        .unwrap();
    let service = StreamableHttp::new(server);
    let discover = Post::envelope("server/discover", serde_json::json!({}));
    let failed = call(&service, &discover).await;
    assert_eq!(failed.status(), 503);
    assert!(!text(failed.into_body()).await.contains("password"));
    assert_eq!(call(&service, &discover).await.status(), 200);
}

/// Configuration is checked when the service is built, with the remedy in the error text.
#[test]
fn settings_are_checked_when_the_service_is_built() {
    let stage = Arc::new(Stage::default());
    let build = || StreamableHttp::builder(server(&stage));
    for (builder, text) in [
        (build().max_body(0), "the largest body must be at least 1"),
        (build().path("mcp"), "'mcp' is not a path"),
        (build().allow_host("http://x"), "'http://x' is not a host"),
        (build().public_url("mcp.example.com"), "'mcp.example.com' is not an origin"),
        (build().sse_after(Duration::ZERO), "`sse_after` must be longer than zero"),
        (build().unread_timeout(Duration::from_secs(15)), "must be longer than the keep-alive"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// The service is a route of an application that has others, at its path with and without a trailing slash.
#[tokio::test]
async fn a_router_mounts_the_service_among_its_own_routes() {
    let stage = Arc::new(Stage::default());
    let service = StreamableHttp::new(server(&stage));
    let mut application: axum::Router = axum::Router::new()
        .route("/about", axum::routing::get(async || "ours"))
        .route_service("/mcp", service.clone())
        .route_service("/mcp/", service);
    for path in ["/mcp", "/mcp/"] {
        let post = Post::envelope("server/discover", serde_json::json!({})).path(path);
        let Ok(response) = application.call(request(&post)).await;
        assert_eq!(response.status(), 200, "{path}");
    }
    let about = Request::get("/about").body(Text::new("")).unwrap();
    let Ok(response) = application.call(about).await;
    assert_eq!(response.status(), 200);
}
