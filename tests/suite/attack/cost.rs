//! Attacks by the cost of arguments: values whose check would take exponential time or memory without a budget.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::lines::spawn;
use super::load::peak;
use super::site::{Post, Site};
use super::{ERAS, echo, request, reveals_no_internals};

/// Maximum time of one check, with a margin for a debug build on a loaded machine.
const BOUND: Duration = Duration::from_secs(5);
/// Maximum memory of all checks of a test, in bytes.
const MEMORY: usize = 64 << 20;

/// Levels of nesting. Ten were enough for 1.6 GiB before checks had a budget; frames can be 128 deep.
const DEPTHS: [usize; 3] = [10, 14, 100];

/// Returns a filter that is wrong at the bottom: each level has two operands, and both are read.
fn filter(depth: usize) -> Value {
    (0..depth).fold(json!({ "op": "is", "field": 5 }), |left, level| match level % 3 {
        0 => json!({ "op": "and", "left": left, "right": { "op": "is", "field": "a" } }),
        1 => json!({ "op": "not", "left": left }),
        _ => json!({ "op": "or", "left": left, "right": { "op": "is", "field": "b" } }),
    })
}

/// Returns a shape that is wrong at the bottom. A level of a group is two levels of the message.
fn shape(depth: usize) -> Value {
    (0..depth * 2 / 3).fold(json!({ "name": 5 }), |inner, level| {
        if level % 2 == 0 { json!({ "group": [inner, { "name": "a" }] }) } else { json!({ "turned": inner }) }
    })
}

/// Returns the calls of the attack: tool, arguments, and a description for messages.
fn calls() -> Vec<(Value, String)> {
    let call = |tool, arguments: Value, depth| {
        (json!({ "name": tool, "arguments": arguments }), format!("{tool} at depth {depth}"))
    };
    let searches = DEPTHS.map(|depth| call("search", json!({ "filter": filter(depth) }), depth));
    let drawings = DEPTHS.map(|depth| call("draw", json!({ "shape": shape(depth) }), depth));
    searches.into_iter().chain(drawings).collect()
}

fn is_refused(answer: &Value, shown: &str) {
    assert_eq!(answer["result"]["isError"], true, "{shown}: {answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.len() < 16 * 1024, "{shown}: an answer of {} bytes", text.len());
    reveals_no_internals(text);
}

/// Hardening, finding 1: a wrong argument of a few hundred bytes is refused at once, over standard input.
#[tokio::test]
async fn a_nested_argument_on_a_stream_costs_little() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        wire.send(echo(revision, 1, "before")).await;
        wire.answer_to(1).await;
        let before = peak(wire.pid().unwrap());
        for (params, shown) in calls() {
            let start = Instant::now();
            wire.send(request(revision, 2, "tools/call", params)).await;
            is_refused(&wire.answer_to(2).await, &shown);
            assert!(start.elapsed() < BOUND, "{shown}: {:?}", start.elapsed());
        }
        let grown = peak(wire.pid().unwrap()) - before;
        assert!(grown < MEMORY, "{grown} bytes");
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// Hardening, finding 1: the same over HTTP, many at once; other clients are served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_arguments_do_not_delay_others() {
    let site = Arc::new(Site::open().await);
    site.serves().await;
    let before = peak(site.child.id().unwrap());
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let (site, revision) = (Arc::clone(&site), ERAS[caller % 2]);
        callers.spawn(async move {
            for (params, shown) in calls() {
                let reply = site.send(&Post::of(revision, &request(revision, 1, "tools/call", params))).await;
                assert_eq!(reply.status, 200, "{shown}");
                is_refused(&reply.answer(), &shown);
            }
        });
    }
    while !callers.is_empty() {
        let start = Instant::now();
        site.serves().await;
        assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
        while let Some(ended) = callers.try_join_next() {
            ended.unwrap();
        }
    }
    let grown = peak(site.child.id().unwrap()) - before;
    assert!(grown < MEMORY, "{grown} bytes");
}

/// The counterpart: valid arguments of the same depth are accepted where the type has a tag.
#[tokio::test]
async fn valid_nested_arguments_are_accepted() {
    let site = Site::open().await;
    for revision in ERAS {
        let text = filter(100).to_string().replace(r#""field":5"#, r#""field":"c""#);
        let arguments: Value = json!({ "filter": serde_json::from_str::<Value>(&text).unwrap() });
        let params = json!({ "name": "search", "arguments": arguments });
        let reply = site.send(&Post::of(revision, &request(revision, 1, "tools/call", params))).await;
        assert_eq!(reply.text_of_tool(), "68", "{}", reply.body);
    }
}
