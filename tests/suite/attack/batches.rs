//! Attacks by batches, which only 2025-03-26 has: few bytes in, many bytes out.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::load::peak;
use super::request;
use super::site::{Post, Site};

/// The only revision with batches.
const BATCHES: &str = "2025-03-26";

/// Hardening, finding 5: 512 reads of 1 MiB in one batch of 45 KiB are all answered, within the byte budget.
#[tokio::test]
async fn the_responses_of_a_batch_are_bounded() {
    const REQUESTS: i64 = 512;
    let site = Site::open().await;
    site.serves().await;
    let before = peak(site.child.id().unwrap());
    let read = |id| request(BATCHES, id, "resources/read", json!({ "uri": "test://large" }));
    let batch = Value::from((0..REQUESTS).map(read).collect::<Vec<_>>());
    let reply = site.send(&Post::raw(BATCHES, batch.to_string())).await;
    assert_eq!(reply.status, 200);
    let answers: Vec<Value> = serde_json::from_str(&reply.body).unwrap();
    let ids: BTreeSet<_> = answers.iter().map(|answer| answer["id"].as_i64()).collect();
    assert_eq!((answers.len(), ids.len()), (512, 512), "each request is answered once");
    let served = answers.iter().filter(|answer| answer.get("result").is_some()).count();
    assert!((1..=16).contains(&served), "{served} are served");
    assert!(reply.body.len() < 17 << 20, "{} bytes", reply.body.len());
    let grown = peak(site.child.id().unwrap()) - before;
    assert!(grown < 128 << 20, "{grown} bytes");
    site.serves().await;
}

/// Hardening, finding 5: a batch runs a few requests at a time, and one that never finishes delays its own client only.
#[tokio::test]
async fn a_batch_that_never_finishes_delays_its_client_only() {
    let site = Site::open().await;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let wait = |id| request(BATCHES, id, "tools/call", json!({ "name": "wait" }));
        let batch = Value::from((0..1000).map(wait).collect::<Vec<_>>());
        let mut socket = site.connect().await;
        socket.send(&Post::raw(BATCHES, batch.to_string()).bytes()).await;
        waiting.push(socket);
    }
    // Twenty thousand requests are more than the service admits at once.
    site.serves().await;
    drop(waiting);
    site.serves().await;
}
