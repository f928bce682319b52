//! What clients see when the store is full, empty, read-only, out of reach, or has what no version can read.

use std::sync::Arc;
use std::time::Duration;

use duplexer_tests::proxy::{Fault, Proxy};
use serde_json::{Value, json};

use super::served::{Served, service};
use super::store::Store;
use crate::scale::client::{Client, Random, Stream, request, text_of};
use crate::scale::nodes::{Lines, Nodes};

/// Runs a command of the test at the store.
async fn run(store: &Store, words: &[&str]) {
    let mut connection = store.commands().await;
    let mut command = redis::cmd(words[0]);
    for word in &words[1..] {
        command.arg(*word);
    }
    let _: redis::Value = command.query_async(&mut connection).await.unwrap();
}

fn echo(id: i64) -> Value {
    request(id, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}))
}

/// Starts a count at a node, and reads its first step.
async fn start_count(client: &Arc<Client>, node: usize, id: i64, arguments: Value) -> Stream {
    let params = json!({"name": "count", "arguments": arguments, "_meta": {"progressToken": "t"}});
    let reply = client.post(node, &request(id, "tools/call", params)).await;
    assert_eq!(reply.status, 200);
    let mut stream = Stream::of(client, id, reply).await;
    assert_eq!(stream.next().await.unwrap()["params"]["message"], "t:1");
    stream
}

/// Reads the steps of a count, and its answer.
async fn follow(stream: &mut Stream, steps: std::ops::RangeInclusive<usize>) {
    let last = *steps.end();
    for step in steps {
        assert_eq!(stream.next().await.unwrap()["params"]["message"], format!("t:{step}"));
    }
    assert_eq!(text_of(&stream.next().await.unwrap()), Some(&*format!("t:{last}")));
}

/// SCL-29, SCL-67: a store that is full refuses new sessions. The node keeps its lease, and what runs goes on.
#[tokio::test]
async fn a_full_store_refuses_new_sessions_and_what_runs_goes_on() {
    let Some(store) = Store::start("a full store").await else { return };
    let shared = store.connect().lease(Duration::from_secs(2)).await.unwrap();
    let served = Served::on(vec![shared]);
    let (client, tag) = (served.client("ada").await, served.shared[0].run());
    let mut stream = start_count(&client, 0, 1, json!({"n": 30, "ms": 100, "tag": "t"})).await;
    run_full(&store, &client).await;
    let renewed = served.shared[0].stats().trips + 6;
    while served.shared[0].stats().trips < renewed {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(served.shared[0].run(), tag, "the lease is extended without memory");
    run(&store, &["CONFIG", "SET", "maxmemory", "0"]).await;
    follow(&mut stream, 2..=30).await;
    assert_eq!(client.post(0, &echo(2)).await.status, 200);
}

async fn run_full(store: &Store, client: &Client) {
    run(store, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "late", "version": "1"}});
    let refused = client.without_session().post(0, &request(0, "initialize", params)).await;
    assert_eq!((refused.status, refused.retry_after.is_some()), (503, true));
}

/// SCL-65: a store that has lost everything costs each client one 404, after which it initializes again.
#[tokio::test]
async fn a_store_that_has_lost_everything_costs_a_new_session() {
    let Some(store) = Store::start("a store that is emptied").await else { return };
    let mut shared = Vec::new();
    for _ in 0..2 {
        shared.push(store.connect().lease(Duration::from_millis(400)).await.unwrap());
    }
    let served = Served::on(shared);
    let (client, runs) = (served.client("ada").await, [served.shared[0].run(), served.shared[1].run()]);
    assert_eq!(client.post(0, &echo(1)).await.status, 200);
    run(&store, &["FLUSHALL"]).await;
    for node in 0..2 {
        assert_eq!(client.post(node, &echo(2)).await.status, 404);
        assert_eq!(client.get(node, None).await.status, 404);
    }
    while served.shared[0].run() == runs[0] || served.shared[1].run() == runs[1] {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A new session works at both nodes, and between them.
    let client = served.client("ada").await;
    let reply =
        client.post(0, &request(1, "tools/call", json!({"name": "ask", "arguments": {"tag": "t"}}))).await;
    let mut stream = Stream::of(&client, 1, reply).await;
    let question = stream.next().await.unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"answer": "yes"}}});
    assert_eq!(client.post(1, &answer).await.status, 202);
    assert_eq!(text_of(&stream.next().await.unwrap()), Some("t:yes"));
}

/// SCL-63, SCL-66: a node that is cut off refuses messages of sessions and serves the envelope era; the call that it runs is
/// followed at another node, late by the cut.
#[tokio::test]
async fn a_node_that_is_cut_off_refuses_sessions_and_its_calls_are_followed_elsewhere() {
    let Some(store) = Store::start("a node that is cut off").await else { return };
    let proxy = Proxy::start(store.port).await;
    let lines = Lines::default();
    let cut = duplexer_redis::Shared::connect(proxy.url()).namespace("test").await.unwrap();
    let other = store.node().await;
    let services =
        [service(&cut, &lines, Duration::from_millis(500)), service(&other, &lines, Duration::from_secs(5))];
    let alone = Arc::new(Nodes::of([services[0].clone()]));
    let nodes = Arc::new(Nodes::of(services));
    let client = Client::open(&nodes, "ada", &mut Random::new(1)).await.unwrap();
    let stream = start_count(&client, 0, 1, json!({"n": 40, "ms": 50, "tag": "t"})).await;
    let last = stream.last_id().unwrap().to_owned();
    drop(stream);
    proxy.set(Fault::Cut);
    let refused = client.post(0, &echo(2)).await;
    assert_eq!((refused.status, refused.retry_after.is_some()), (503, true));
    let params = json!({"name": "echo", "arguments": {"text": "x"}});
    let served = client.at(&alone).envelope(&mut Random::new(1), "tools/call", params).await.unwrap();
    assert_eq!(served["content"][0]["text"], "x");
    assert_eq!(client.post(1, &echo(3)).await.status, 200, "the session lives on");
    let reply = client.get(1, Some(&last)).await;
    assert_eq!(reply.status, 200);
    let mut stream = Stream::of(&client, 1, reply).await;
    proxy.set(Fault::None);
    follow(&mut stream, 2..=40).await;
}

/// SCL-69: a store that becomes a replica refuses to write for a while, as in a failover. That costs time only.
#[tokio::test]
async fn a_store_that_fails_over_costs_time_only() {
    let Some(store) = Store::start("a failover").await else { return };
    let served = Served::start(&store, 1).await;
    let (client, mut random) = (served.client("ada").await, Random::new(2));
    run(&store, &["REPLICAOF", "127.0.0.1", "1"]).await;
    let failures = served.shared[0].stats().failures;
    let promoted = async {
        while served.shared[0].stats().failures < failures + 3 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        run(&store, &["REPLICAOF", "NO", "ONE"]).await;
    };
    let called = client.call(&mut random, "echo", "t", json!({"text": "x"}));
    let (stream, ()) = tokio::join!(called, promoted);
    assert_eq!(text_of(&stream.unwrap().next().await.unwrap()), Some("x"));
}

/// SCL-68: a record that cannot be read is 503 for its session, and is not deleted.
#[tokio::test]
async fn a_record_that_cannot_be_read_is_unavailable() {
    let Some(store) = Store::start("an unreadable record").await else { return };
    let served = Served::start(&store, 1).await;
    let (client, other) = (served.client("ada").await, served.client("bob").await);
    let mut connection = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:h").query_async(&mut connection).await.unwrap();
    for (field, value) in [("level", "{"), ("v", "2")] {
        for key in &keys {
            run(&store, &["HSET", key, field, value, "rev", "9"]).await;
        }
        for (id, client) in [(1, &client), (2, &other)] {
            let refused = client.post(0, &echo(id)).await;
            assert_eq!((refused.status, refused.retry_after.is_some()), (503, true), "{field}");
        }
    }
    let left: Vec<String> = redis::cmd("KEYS").arg("*:h").query_async(&mut connection).await.unwrap();
    assert_eq!(left.len(), 2);
    let fresh = served.client("eve").await;
    assert_eq!(fresh.post(0, &echo(1)).await.status, 200, "other sessions are served");
}
