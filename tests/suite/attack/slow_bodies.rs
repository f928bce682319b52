//! Attacks by bodies that never end, on every route that reads one.

use serde_json::json;
use tokio::task::JoinSet;

use super::ERAS;
use super::grants::{Tokens, form};
use super::sessions::Session;
use super::site::{Post, Site, Socket};

/// Both ways to announce a body, and its first byte.
const FRAMINGS: [&str; 2] = ["content-length: 100\r\n\r\n{", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"];

/// Sends the first byte of each body.
async fn begin(site: &Site, posts: &[Post]) -> JoinSet<(String, Option<u16>)> {
    let mut waiting = JoinSet::new();
    for framing in FRAMINGS {
        for post in posts {
            let mut socket = site.connect().await;
            socket.send(format!("{}{framing}", post.head()).as_bytes()).await;
            let path = post.path.clone();
            waiting.spawn(async move { (path, socket.reply().await.map(|reply| reply.status)) });
        }
    }
    waiting
}

async fn all_end(mut waiting: JoinSet<(String, Option<u16>)>) {
    while let Some(ended) = waiting.join_next().await {
        let (path, status) = ended.unwrap();
        assert_eq!(status, Some(408), "{path}");
    }
}

/// Hardening, finding 3: on the routes of the MCP endpoint, in each era, with and without a session, and of HTTP+SSE.
#[tokio::test]
async fn slow_bodies_end() {
    let site = Site::start(&["sessions", "body_timeout=2000"]).await;
    let session = Session::open(&site).await;
    let mut events = site.connect().await;
    events.send(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n").await;
    events.until(b"data: ").await.expect("an endpoint");
    let messages = String::from_utf8(events.until(b"\n").await.expect("its path")).unwrap();
    let messages = Post { path: messages.trim().to_owned(), ..Post::raw(ERAS[0], "") };
    let posts = [Post::raw(ERAS[0], ""), Post::raw(ERAS[1], ""), session.post(&json!({})), messages];
    let waiting = begin(&site, &posts).await;
    assert_eq!(session.echo(1).await.text_of_tool(), "honest");
    all_end(waiting).await;
    assert_eq!(session.echo(2).await.text_of_tool(), "honest");
}

/// Hardening, finding 3: on the routes of the authorization server, for strangers.
#[tokio::test]
async fn slow_bodies_of_the_authorization_server_end() {
    let site = Site::start(&["protected", "body_timeout=2000"]).await;
    let tokens = Tokens::of(&site, "app").await;
    let mut posts = vec![tokens.on(Post::raw(ERAS[0], "")), tokens.on(Post::raw(ERAS[1], ""))];
    for path in ["/authorize", "/authorize/consent", "/token", "/revoke"] {
        posts.push(form(&site, path, &[]));
    }
    posts.push(
        Post::at("/register", "").header("Host", "localhost").header("Content-Type", "application/json"),
    );
    let waiting = begin(&site, &posts).await;
    Tokens::of(&site, "web").await;
    all_end(waiting).await;
    Tokens::of(&site, "web").await;
}

/// Opens more connections than the server keeps, each in the middle of a body.
async fn fill(site: &Site, post: &Post) -> Vec<Socket> {
    const CONNECTIONS: usize = 8200;
    let start = format!("{}content-length: 100\r\n\r\n{{", post.head());
    let mut slow = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let mut socket = site.connect().await;
        socket.send(start.as_bytes()).await;
        slow.push(socket);
    }
    slow
}

/// Hardening, finding 3: 8200 slow bodies at once, sent to the endpoint; others are served.
#[cfg(unix)]
#[tokio::test]
async fn thousands_of_slow_bodies_keep_no_client_out() {
    let site = Site::open().await;
    let _slow = fill(&site, &Post::raw(ERAS[1], "")).await;
    for _ in 0..10 {
        site.serves().await;
    }
}

/// Hardening, finding 3: 8200 slow bodies at once, sent to the authorization server; MCP requests are served, and a client
/// gets its tokens.
#[cfg(unix)]
#[tokio::test]
async fn thousands_of_slow_token_requests_keep_no_client_out() {
    let site = Site::start(&["protected"]).await;
    let tokens = Tokens::of(&site, "app").await;
    let _slow = fill(&site, &form(&site, "/token", &[])).await;
    for revision in [ERAS[1]; 10] {
        let post = tokens.on(Post::of(revision, &super::echo(revision, 1, "honest")));
        assert_eq!(site.send(&post).await.text_of_tool(), "honest");
    }
    Tokens::of(&site, "web").await;
}
