//! Attacks by work that a client starts and leaves: calls, handshakes, and bodies that never end.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::sessions::{Session, opening};
use super::site::{Post, Site};
use super::{ERAS, request};
use crate::HANDSHAKE;

/// Hardening, finding 2: a client that leaves its calls behind fills its own session only.
#[tokio::test]
async fn abandoned_calls_fill_their_own_session_only() {
    const LIMIT: usize = 256;
    let site = Site::with_sessions().await;
    let session = Session::open(&site).await;
    for id in 0..LIMIT + 44 {
        let params = json!({ "name": "ask", "arguments": { "text": "hello" } });
        let mut socket = site.connect().await;
        socket.send(&session.post(&request(HANDSHAKE, id, "tools/call", params)).bytes()).await;
        let head = String::from_utf8(socket.until(b"\r\n").await.expect("a status")).unwrap();
        let status = if id < LIMIT { "200" } else { "503" };
        assert!(head.contains(status), "call {id}: {head}");
    }
    let other = Session::open(&site).await;
    assert_eq!(other.echo(1).await.text_of_tool(), "honest");
}

/// Hardening, finding 9: handshakes that are never confirmed do not keep others out, and end no confirmed session.
#[tokio::test]
async fn unconfirmed_sessions_keep_others_out_of_nothing() {
    const LIMIT: usize = 10_000;
    let site = Site::with_sessions().await;
    let confirmed = Session::open(&site).await;
    let mut socket = site.connect().await;
    for _ in 0..=LIMIT / 100 {
        socket.send(&opening().bytes().repeat(100)).await;
        for _ in 0..100 {
            assert_eq!(socket.reply().await.expect("a response").status, 200);
        }
    }
    let late = Session::open(&site).await;
    assert_eq!(late.echo(1).await.text_of_tool(), "honest");
    assert_eq!(confirmed.echo(1).await.text_of_tool(), "honest");
}

/// Hardening, finding 3: a body that does not end is answered 408 within its time, on each route that reads one.
#[tokio::test]
async fn slow_bodies_end() {
    const BODY_TIMEOUT: Duration = Duration::from_secs(30);
    let site = Site::with_sessions().await;
    let session = Session::open(&site).await;
    let start = Instant::now();
    let mut waiting = JoinSet::new();
    for framing in ["content-length: 100\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"] {
        for post in [Post::raw(ERAS[0], ""), Post::raw(ERAS[1], ""), session.post(&json!({}))] {
            let mut socket = site.connect().await;
            socket.send(format!("{}{framing}", post.head()).as_bytes()).await;
            waiting.spawn(async move { socket.reply().await.map(|reply| reply.status) });
        }
    }
    assert_eq!(session.echo(1).await.text_of_tool(), "honest");
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), Some(408));
    }
    assert!(start.elapsed() < BODY_TIMEOUT + Duration::from_secs(10), "{:?}", start.elapsed());
}
