//! Attacks by responses over HTTP/2 that the client does not read.

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::request;
use super::site::{Post, Site, Socket};
use crate::ENVELOPE;

fn http_2(post: &Post) -> Request<Full<Bytes>> {
    let mut request = Request::post(format!("http://localhost{}", post.path));
    for (name, value) in post.headers.iter().filter(|(name, _)| name != "Host") {
        request = request.header(name, value);
    }
    request.body(Full::new(Bytes::from(post.body.clone()))).unwrap()
}

/// Starts a call that does not end, as often as it takes to get a permit.
async fn admitted(site: &Site) -> Socket {
    let mut socket = site.connect().await;
    loop {
        socket.send(&Post::tool(ENVELOPE, "wait").bytes()).await;
        let status = socket.until(b"\r\n").await.expect("a status");
        if status.starts_with(b"HTTP/1.1 200") {
            return socket;
        }
        // The end of the error object, after which the connection is free again.
        socket.until(b"}}").await.expect("a refusal");
    }
}

/// Hardening, finding 4: 200 unread responses of 1 MiB count as requests in flight, are gone after the stated
/// time; others are served meanwhile.
#[tokio::test]
async fn unread_responses_are_dropped_after_their_time() {
    const RESPONSES: usize = 200;
    let settings = ["http", "keep_alive=1000", "unread_timeout=5000", "max_requests=210"];
    let site = Site::start(&settings).await;
    let stream = TcpStream::connect(site.address).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) =
        builder.initial_stream_window_size(1000).handshake(TokioIo::new(stream)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let read = Post::of(ENVELOPE, &request(ENVELOPE, 1, "resources/read", json!({ "uri": "test://large" })));
    let mut unread = Vec::new();
    for _ in 0..RESPONSES {
        sender.ready().await.unwrap();
        let response = sender.send_request(http_2(&read)).await.unwrap();
        assert_eq!(response.status(), 200);
        unread.push(response.into_body());
    }
    // The unread responses hold 200 of the 210 permits.
    site.serves().await;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(super::site::running(&site, ENVELOPE, "wait").await);
    }
    // They are gone when as many other calls have got a permit. The client has not read anything until then.
    for _ in 0..RESPONSES {
        waiting.push(admitted(&site).await);
    }
    drop(waiting);
    let mut received = 0;
    for mut body in unread {
        let ended = loop {
            match body.frame().await {
                Some(Ok(frame)) => received += frame.data_ref().map_or(0, Bytes::len),
                other => break other,
            }
        };
        assert!(matches!(ended, Some(Err(_))), "the response was dropped, not sent");
    }
    assert!(received < RESPONSES * 64 * 1024, "{received} bytes");
}
