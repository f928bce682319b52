//! Batches, in the one revision that has them.

use std::sync::atomic::Ordering;

use duplexer_http::Handshake;
use serde_json::{Value, json};

use crate::support::{Client, Post, Site};

fn call(id: impl Into<Value>, name: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": name}})
}

fn texts(answers: &Value) -> Vec<(Value, Value)> {
    let answers = answers.as_array().unwrap().iter();
    answers.map(|it| (it["id"].clone(), it["result"]["content"][0]["text"].clone())).collect()
}

/// Design item 7: a batch of requests is answered with an array, in the same order, with one response each.
#[tokio::test]
async fn a_batch_is_answered_with_a_batch() {
    let site = Site::new().await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let body = json!([
        call(1, "nap"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
        call("b", "echo"),
        {"jsonrpc": "2.0", "id": 3, "method": "unknown/method"},
    ]);
    let reply = site.post(&client.body(&body)).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, Some(client.id.as_str())));
    let answers = reply.json();
    let texts = texts(&answers);
    assert_eq!(texts[0], (json!(1), json!("done")));
    assert_eq!(texts[1], (json!("b"), json!("echo")));
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(3), &json!(-32601)));
    assert_eq!(texts.len(), 3);
}

/// A batch without requests is acknowledged.
#[tokio::test]
async fn a_batch_without_requests_is_acknowledged() {
    let site = Site::new().await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let body = json!([
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ]);
    let reply = site.post(&client.body(&body)).await;
    assert_eq!((reply.status, reply.text().as_str()), (202, ""));
}

/// An invalid message gets an error at its position, and the rest of the batch is served.
#[tokio::test]
async fn every_fault_in_a_batch_has_its_own_answer() {
    let site = Site::new().await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let opening: Value = serde_json::from_str(&Client::handshake("2025-03-26").body).unwrap();
    let body = json!([5, [], opening, call(1, "nap"), call(1, "nap"), {"jsonrpc": "2.0", "id": null, "method": "ping"}]);
    let answers = site.post(&client.body(&body)).await.json();
    let code = |index: usize| answers[index]["error"]["code"].clone();
    assert_eq!((code(0), code(1), code(5)), (json!(-32600), json!(-32600), json!(-32600)));
    assert_eq!((code(2), &answers[2]["id"]), (json!(-32600), &json!(0)), "a handshake comes by itself");
    let same_id: Vec<_> = (3..5).map(|index| answers[index]["error"]["code"] == -32600).collect();
    assert_eq!(same_id.iter().filter(|refused| **refused).count(), 1, "{answers}");
    let reply = site.post(&client.body(&json!([]))).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
    let many: Vec<_> = (0..1025).map(|id| call(id, "echo")).collect();
    let reply = site.post(&client.body(&json!(many))).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
}

/// Design item 7: no other revision has them.
#[tokio::test]
async fn other_revisions_have_no_batches() {
    let site = Site::new().await;
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = Client::open_at(&site, version).await;
        let reply = site.post(&client.body(&json!([call(1, "echo")]))).await;
        assert_eq!((reply.status, reply.code()), (400, -32600), "{version}");
    }
    let reply = site.post(&Post::body(json!([call(1, "echo")]).to_string())).await;
    assert_eq!(reply.status, 400, "without a session there is no revision");
}

/// MGR-09: without sessions the header names the revision; without the header it is 2025-03-26.
#[tokio::test]
async fn a_batch_needs_no_session_where_there_are_none() {
    let site = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    let body = json!([call(1, "echo"), call(2, "nap")]).to_string();
    let answers = site.post(&Post::body(body.clone())).await.json();
    assert_eq!(texts(&answers), [(json!(1), json!("echo")), (json!(2), json!("done"))]);
    let reply = site.post(&Post::body(body).header("mcp-protocol-version", "2025-06-18")).await;
    assert_eq!((reply.status, reply.code()), (400, -32600));
}

/// HTTPL-10: a client that disconnects does not cancel the requests of its batch.
#[tokio::test]
async fn leaving_does_not_cancel_a_batch() {
    let site = Site::new().await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let mut wire = site.connect().await;
    wire.send(&client.body(&json!([call(1, "go"), call(2, "go")])).bytes(site.address)).await;
    site.stage.until(&site.stage.started, 2).await;
    drop(wire);
    assert_eq!(client.call(1, "echo").await.status, 409);
    site.stage.go.notify_waiters();
    site.stage.until(&site.stage.ended, 2).await;
}

/// Hardening 5: a few requests of a batch run at a time.
#[tokio::test]
async fn a_few_requests_of_a_batch_run_at_a_time() {
    let site = Site::new().await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let mut wire = site.connect().await;
    let calls: Vec<_> = (0..20).map(|id| call(id, "go")).collect();
    wire.send(&client.body(&json!(calls)).bytes(site.address)).await;
    for step in 1..=20_usize {
        let started = (step + 7).min(20);
        site.stage.until(&site.stage.started, started).await;
        // Other requests are served meanwhile: the count does not grow.
        assert_eq!(client.call(100, "echo").await.status, 200);
        assert_eq!(site.stage.started.load(Ordering::SeqCst), started + step, "echo counts too");
        site.stage.go.notify_one();
        site.stage.until(&site.stage.ended, 2 * step).await;
    }
    assert_eq!(texts(&wire.reply().await.json()).len(), 20);
}

/// Hardening 5: the requests of a batch count as requests in flight, and a batch goes on at the limit.
#[tokio::test]
async fn requests_of_a_batch_take_permits() {
    let site = Site::with(|builder| builder.max_requests(3)).await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let mut wire = site.connect().await;
    wire.send(&client.body(&json!([call(1, "go"), call(2, "go"), call(3, "go")])).bytes(site.address)).await;
    site.stage.until(&site.stage.started, 2).await;
    assert_eq!(client.call(100, "echo").await.status, 503);
    assert_eq!(site.stage.started.load(Ordering::SeqCst), 2);
    site.stage.go.notify_one();
    site.stage.until(&site.stage.started, 3).await;
    site.stage.go.notify_one();
    site.stage.until(&site.stage.ended, 2).await;
    site.stage.go.notify_one();
    assert_eq!(texts(&wire.reply().await.json()).len(), 3);
    let site = Site::with(|builder| builder.max_requests(1)).await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let reply = site.post(&client.body(&json!([call(1, "echo"), call(2, "echo")]))).await;
    assert_eq!(texts(&reply.json()).len(), 2);
}

/// Hardening 5: the responses of a batch have a budget. Requests beyond it fail, and the others do not.
#[tokio::test]
async fn the_responses_of_a_batch_have_a_budget() {
    let site = Site::with(|builder| builder.max_batch_response(2500).max_batch_concurrency(1)).await;
    let client = Client::open_at(&site, "2025-03-26").await;
    let calls: Vec<_> = (0..6).map(|id| call(id, &"x".repeat(1000))).collect();
    let reply = site.post(&client.body(&json!(calls))).await.json();
    let answers = reply.as_array().unwrap();
    assert_eq!(answers.len(), 6);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], json!(id));
        assert_eq!(answer["result"].is_object(), id < 2, "{answer}");
        assert_eq!(answer["error"]["code"] == -32603, id >= 2, "{answer}");
    }
    assert_eq!(site.stage.started.load(Ordering::SeqCst), 3, "the rest is not run");
}
