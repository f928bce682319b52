//! Races with the revocation of a grant. A gate in the server holds an exchange in the middle, so that the order is certain.

use std::collections::HashSet;

use serde_json::json;
use tokio::task::JoinSet;

use super::grants::{Tokens, code, redeem};
use super::site::{Post, Reply, Site};
use super::{echo, request};
use crate::ENVELOPE;

async fn gate(site: &Site, controller: &Tokens, action: &str) {
    let params = json!({ "name": "gate", "arguments": { "action": action } });
    let post = Post::of(ENVELOPE, &request(ENVELOPE, 1, "tools/call", params));
    assert_eq!(site.send(&controller.on(post)).await.status, 200, "{action}");
}

/// Returns the status of a call with these tokens.
async fn status(site: &Site, tokens: &Tokens) -> u16 {
    site.send(&tokens.on(Post::of(ENVELOPE, &echo(ENVELOPE, 1, "x")))).await.status
}

/// Sends a request, waits until the gate holds it, runs `meanwhile`, and returns the response.
async fn held(site: &Site, controller: &Tokens, post: Post, meanwhile: impl AsyncFnOnce()) -> Reply {
    gate(site, controller, "arm").await;
    let mut socket = site.connect().await;
    let mut exchange = JoinSet::new();
    exchange.spawn(async move {
        socket.send(&post.bytes()).await;
        socket.reply().await.expect("a response")
    });
    gate(site, controller, "wait").await;
    meanwhile().await;
    gate(site, controller, "release").await;
    exchange.join_next().await.unwrap().unwrap()
}

/// Hardening, finding 7: a revocation during a renewal is final, for the old token and for the new one.
#[tokio::test]
async fn a_revocation_during_a_renewal_is_final() {
    let site = Site::start(&["protected"]).await;
    let controller = Tokens::of(&site, "web").await;
    let tokens = Tokens::of(&site, "app").await;
    assert_eq!(status(&site, &tokens).await, 200);
    let renewal = tokens.renewal(&site);
    let reply = held(&site, &controller, renewal, async || tokens.revoke(&site).await).await;
    assert!(reply.status == 400 && reply.body.contains("invalid_grant"), "{}", reply.body);
    assert_eq!(status(&site, &tokens).await, 401);
    assert_eq!(site.send(&tokens.renewal(&site)).await.status, 400);
    assert_eq!(status(&site, &controller).await, 200, "another grant is not affected");
}

/// Hardening, finding 7: a code that is used again while its first exchange is pending leaves no valid token.
#[tokio::test]
async fn a_code_used_twice_leaves_no_token() {
    let site = Site::start(&["protected"]).await;
    let controller = Tokens::of(&site, "web").await;
    let code = code(&site, "app").await;
    let post = redeem(&site, "app", &code);
    let mut second = None;
    let meanwhile = async || second = Some(site.send(&post).await);
    let first = held(&site, &controller, post.clone(), meanwhile).await;
    let replies = [first, second.expect("a response")];
    assert!(replies.iter().any(|reply| reply.status == 400), "one of them is refused");
    for reply in replies.iter().filter(|reply| reply.status == 200) {
        let tokens = Tokens::issued("app", reply);
        assert_eq!(status(&site, &tokens).await, 401);
        assert_eq!(site.send(&tokens.renewal(&site)).await.status, 400);
    }
}

/// Hardening, finding 7; SCL-51: many uses of a refresh token at once have one successor, as a client that repeats a request
/// gets. Once that is used, the first one revokes the grant: a thief and the client cannot both go on.
#[tokio::test]
async fn a_refresh_token_is_spent_once() {
    let site = Site::start(&["protected"]).await;
    let tokens = Tokens::of(&site, "app").await;
    let mut exchanges = JoinSet::new();
    for _ in 0..20 {
        let (mut socket, post) = (site.connect().await, tokens.renewal(&site));
        exchanges.spawn(async move {
            socket.send(&post.bytes()).await;
            socket.reply().await.expect("a response")
        });
    }
    let replies = exchanges.join_all().await;
    let renewed: Vec<_> = replies.iter().filter(|reply| reply.status == 200).collect();
    let successors: HashSet<_> = renewed.iter().map(|reply| Tokens::issued("app", reply).refresh).collect();
    assert_eq!((renewed.len(), successors.len()), (20, 1));
    let next = Tokens::issued("app", renewed[0]);
    let last = site.send(&next.renewal(&site)).await;
    assert_eq!(last.status, 200);
    assert_eq!(site.send(&tokens.renewal(&site)).await.status, 400);
    for tokens in [&tokens, &next, &Tokens::issued("app", &last)] {
        assert_eq!(status(&site, tokens).await, 401);
    }
}
