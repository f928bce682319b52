//! Attacks on what principals share: one that takes all it can get leaves enough for the others.

use serde_json::json;

use super::grants::Tokens;
use super::sessions::opening;
use super::site::{Post, Site, Socket};
use super::{echo, request};
use crate::ENVELOPE;

async fn serves(site: &Site, tokens: &Tokens) {
    let reply = site.send(&tokens.on(Post::of(ENVELOPE, &echo(ENVELOPE, 1, "honest")))).await;
    assert_eq!((reply.status, reply.text_of_tool()), (200, "honest".to_owned()), "{}", reply.body);
}

/// Sends a request on a connection of its own and returns that and the status.
async fn begin(site: &Site, post: &Post) -> (Socket, u16) {
    let mut socket = site.connect().await;
    socket.send(&post.bytes()).await;
    let line = String::from_utf8(socket.until(b"\r\n").await.expect("a status")).unwrap();
    (socket, line.split(' ').nth(1).unwrap().parse().unwrap())
}

/// Shares: a principal with all its sessions keeps no other principal out, at the default limit.
#[tokio::test]
async fn one_principal_cannot_take_all_sessions() {
    const SHARE: usize = 1000;
    let site = Site::start(&["protected"]).await;
    let (greedy, other) = (Tokens::of(&site, "app").await, Tokens::of(&site, "web").await);
    let handshake = greedy.on(opening());
    let confirmed = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let mut socket = site.connect().await;
    for index in 0..SHARE + 100 {
        socket.send(&handshake.bytes()).await;
        let reply = socket.reply().await.unwrap();
        assert_eq!(reply.status, if index < SHARE { 200 } else { 503 }, "session {index}");
        if let Some(id) = reply.headers.get("mcp-session-id") {
            let post = greedy.on(Post::raw(crate::HANDSHAKE, confirmed.to_string()));
            socket.send(&post.header("Mcp-Session-Id", id).bytes()).await;
            assert_eq!(socket.reply().await.unwrap().status, 202);
        }
    }
    assert_eq!(site.send(&other.on(opening())).await.status, 200);
    serves(&site, &other).await;
}

/// Shares: a principal with all its requests in flight delays no other principal, and its permits are returned.
#[tokio::test]
async fn one_principal_cannot_take_all_requests() {
    let site = Site::start(&["protected", "max_requests_per_principal=100", "max_requests=150"]).await;
    let (greedy, other) = (Tokens::of(&site, "app").await, Tokens::of(&site, "web").await);
    let wait = greedy.on(Post::tool(ENVELOPE, "wait"));
    let mut waiting = Vec::new();
    for index in 0..300 {
        let (mut socket, status) = begin(&site, &wait).await;
        assert_eq!(status, if index < 100 { 200 } else { 503 }, "call {index}");
        if status == 200 {
            socket.until(b"notifications/progress").await.expect("it runs");
            waiting.push(socket);
        }
        if index % 50 == 0 {
            serves(&site, &other).await;
        }
    }
    drop(waiting);
    // A connection that has closed is noticed soon, but not at once.
    loop {
        let (_, status) = begin(&site, &greedy.on(Post::of(ENVELOPE, &echo(ENVELOPE, 1, "x")))).await;
        if status == 200 {
            break;
        }
    }
}

/// Shares: the same for subscriptions.
#[tokio::test]
async fn one_principal_cannot_take_all_subscriptions() {
    let site = Site::start(&["protected"]).await;
    let (greedy, other) = (Tokens::of(&site, "app").await, Tokens::of(&site, "web").await);
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let listen = Post::of(ENVELOPE, &request(ENVELOPE, "l", "subscriptions/listen", filter));
    let mut open = Vec::new();
    for index in 0..140 {
        let (socket, status) = begin(&site, &greedy.on(listen.clone())).await;
        assert_eq!(status, if index < 128 { 200 } else { 503 }, "subscription {index}");
        open.push(socket);
    }
    assert_eq!(begin(&site, &other.on(listen)).await.1, 200);
    serves(&site, &greedy).await;
}
