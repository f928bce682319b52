//! Attacks by work that a client starts and leaves: calls and handshakes.

use serde_json::json;

use super::request;
use super::sessions::{Session, opening};
use super::site::Site;
use crate::HANDSHAKE;

/// Hardening, finding 2: a client that leaves 8400 calls behind fills its own session only; others are served at all times.
#[tokio::test]
async fn abandoned_calls_fill_their_own_session_only() {
    const LIMIT: usize = 256;
    const CALLS: usize = 8400;
    let site = Site::with_sessions().await;
    let session = Session::open(&site).await;
    let other = Session::open(&site).await;
    for id in 0..CALLS {
        if id % 200 == 0 {
            assert_eq!(other.echo(1).await.text_of_tool(), "honest", "after {id} calls");
        }
        let params = json!({ "name": "ask", "arguments": { "text": "hello" } });
        let mut socket = site.connect().await;
        socket.send(&session.post(&request(HANDSHAKE, id, "tools/call", params)).bytes()).await;
        let head = String::from_utf8(socket.until(b"\r\n").await.expect("a status")).unwrap();
        let status = if id < LIMIT { "200" } else { "503" };
        assert!(head.contains(status), "call {id}: {head}");
    }
    let late = Session::open(&site).await;
    assert_eq!(late.echo(1).await.text_of_tool(), "honest");
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
