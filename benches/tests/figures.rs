//! The part of the figures that is cheap to check: responses and allocations.

use duplexer::tasks::{TaskPolicy, Tasks};
use duplexer::{Server, Tool};
use duplexer_bench::allocations::{self, Counting};
use duplexer_bench::cases::{CASES, Case, ECHO_CASE, FRAME_CASE, LAYERS, PLAIN_CASE, TASK_CASE, find};
use duplexer_bench::catalog::{self, Ask};
use duplexer_bench::figures::{self, Figure};
use duplexer_bench::{REPLY, layers, text};
use duplexer_server::ServerBuilder;
use duplexer_types::version::ProtocolVersion;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_case_allocates_more_than_recorded() {
    let recorded = figures::read(include_str!("../figures.txt")).unwrap();
    let measured: Vec<Figure> = CASES
        .iter()
        .map(|case| {
            let allocations = case.allocations().unwrap_or_else(|| panic!("{}: not answered", case.name));
            Figure { name: case.name.to_owned(), allocations, instructions: None }
        })
        .collect();
    let found = figures::compare(&recorded, &measured);
    assert!(found.faults.is_empty(), "{}", found.faults.join("\n"));
    assert!(measured.iter().all(|figure| figure.allocations > 0), "the allocator counts: {measured:?}");
}

/// The part of the bars of layers that is cheap to check.
#[test]
fn no_layer_allocates_more_than_its_bar() {
    let count = |name: &str| find(name).and_then(Case::allocations).unwrap_or_else(|| panic!("{name}"));
    let plain = count(ECHO_CASE);
    for bar in layers::BARS {
        let added = count(bar.case).saturating_sub(plain);
        assert!(added <= bar.allocations, "{}: adds {added}, the bar is {}", bar.case, bar.allocations);
    }
}

/// Each layer is there: the answer to the call is that of the plain echo.
#[test]
fn a_call_behind_a_layer_is_answered_with_its_text() {
    for case in LAYERS {
        assert_eq!(result(case.name)["content"][0]["text"], "hello", "{}", case.name);
    }
}

/// TSK-D18: a tool that is not task-capable pays nothing for the extension.
#[test]
fn a_plain_tool_allocates_the_same_with_tasks_and_without() {
    let count = |builder: ServerBuilder<()>| {
        let server = builder.tool(catalog::tool(7)).build().unwrap();
        let kernel = catalog::asked(&server, ProtocolVersion::LATEST_ENVELOPE, Ask::Call).unwrap();
        let mut out = Vec::with_capacity(4096);
        let counted = (0..8).map(|_| {
            out.clear();
            allocations::during(|| kernel.answer(&mut out).unwrap())
        });
        counted.min().unwrap()
    };
    let builder = || Server::builder("bench-server", "1.0.0");
    let task_capable = Tool::new("other", || async { "done" }).task(TaskPolicy::new());
    let with_tasks = count(builder().extend(Tasks::new()).tool(task_capable));
    assert_eq!(with_tasks, count(builder()));
    assert!(with_tasks > 0, "the allocator counts");
}

/// Returns the second response of the case with this name.
fn answer(name: &str) -> String {
    let mut work = find(name).and_then(Case::work).unwrap_or_else(|| panic!("{name}: no such case"));
    let mut out = Vec::new();
    assert_eq!(work(&mut out), Some(()), "{name}");
    out.clear();
    assert_eq!(work(&mut out), Some(()), "{name}");
    String::from_utf8(out).unwrap()
}

fn result(name: &str) -> Value {
    let mut read: Value = serde_json::from_str(&answer(name)).unwrap();
    read["result"].take()
}

#[test]
fn ours_and_plain_types_write_the_same_reply() {
    for name in [FRAME_CASE, PLAIN_CASE] {
        assert_eq!(answer(name), REPLY, "{name}");
    }
}

#[test]
fn a_call_is_answered_with_its_text_in_the_shape_of_its_era() {
    let fox = "The quick brown fox jumps over the lazy dog";
    let (small, large) = (text::of(43), text::of(64 * 1024));
    for (name, expected) in [
        ("envelope", fox),
        ("envelope-5", fox),
        ("handshake", fox),
        ("handshake-5", fox),
        ("call-10", "hello"),
        ("call-1000", "hello"),
        ("task-get", fox),
        ("echo-64k", &large),
        ("stream-echo", &small),
        ("http-envelope", &small),
        ("http-session", &small),
        ("http-stateless", &small),
        ("http-echo-64k", &large),
    ] {
        let mut result = result(name);
        if name == TASK_CASE {
            result = result["result"].take();
        }
        assert_eq!(result["content"][0]["text"], expected, "{name}");
        let handshake = ["handshake", "session", "stateless"].iter().any(|era| name.contains(era));
        assert_eq!(result["resultType"].is_null(), handshake, "{name}");
    }
}

#[test]
fn lists_and_resources_are_whole() {
    assert_eq!(result("list-1")["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!(result("list-50")["tools"].as_array().map(Vec::len), Some(50));
    assert_eq!(result("read-64k")["contents"][0]["text"].as_str().map(str::len), Some(64 * 1024));
}

#[test]
fn a_stream_answers_every_request_and_tells_of_every_step() {
    let answers = answer("stream-echo-64");
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut ids: Vec<u64> = answers.iter().filter_map(|answer| answer["id"].as_u64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=64).collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["result"]["content"][0]["text"] == text::of(43)));
    let response = answer("stream-progress-1000");
    assert_eq!(response.lines().filter(|line| line.contains("notifications/progress")).count(), 1000);
    assert!(response.lines().last().unwrap().contains("done"), "{:?}", response.lines().last());
}

#[test]
fn progress_is_a_stream_of_events_and_its_answer_the_last() {
    let answer = answer("http-progress-1000");
    let events: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert_eq!(events.iter().filter(|event| event.contains("notifications/progress")).count(), 1000);
    let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "done");
}
