//! A server process on its standard streams: shutdown, and the content of standard output.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::matrix::{Link, Needs, everywhere};
use crate::wire::{Wire, error_of, initialize};
use crate::{ENVELOPE, HANDSHAKE};

/// The whole shutdown budget, with a margin for a loaded machine.
const BOUND: Duration = Duration::from_millis(5000 + 1500);

fn signal(wire: &Wire, signal: Signal) {
    let pid = wire.pid().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("a child");
    kill_process(pid, signal).unwrap();
}

/// Starts a server with `requests` calls of a tool in flight.
async fn busy(tool: &str, requests: usize) -> Wire {
    let mut wire = Wire::fixture(Link::Child).await;
    wire.open(HANDSHAKE).await;
    for _ in 0..requests {
        wire.request("tools/call", json!({ "name": tool })).await;
    }
    // Sent after the others, so all of them have been accepted when this one is answered.
    wire.tool("echo").await;
    wire
}

/// Starts a server with `threads` blocked threads.
async fn blocked(threads: usize) -> Wire {
    let mut wire = Wire::spawn(Stdio::piped());
    let mut stderr = wire.stderr();
    wire.open(HANDSHAKE).await;
    for _ in 0..threads {
        wire.request("tools/call", json!({ "name": "block" })).await;
        assert_eq!(stderr.next_line().await.unwrap().as_deref(), Some("blocked"));
    }
    wire
}

/// DISP-34, STDIO-05, P-STDIO-6: every piped request is answered before the end.
#[tokio::test]
async fn everything_piped_in_is_answered() {
    everywhere(Needs::Connection, async |mut wire| {
        let mut ids = Vec::new();
        for _ in 0..200 {
            ids.push(wire.request("tools/call", json!({ "name": "echo" })).await);
        }
        let (rest, ended) = wire.finish().await;
        let mut answered: Vec<_> = rest.iter().map(|frame| frame["id"].as_i64().unwrap()).collect();
        answered.sort_unstable();
        assert!(answered == ids && ended.is_orderly(), "{ended:?}");
    })
    .await;
}

/// STDIO-03, STDIO-06, P-STDIO-2: standard output carries only frames, whatever a handler prints and however it fails.
#[tokio::test]
async fn standard_output_carries_only_frames() {
    for revision in [HANDSHAKE, ENVELOPE] {
        let mut wire = Wire::fixture(Link::Child).await;
        wire.open(revision).await;
        assert_eq!(wire.tool_text("print", json!({})).await, "printed");
        assert_eq!(error_of(&wire.tool("panic").await).0, -32603);
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly());
    }
}

/// SRV-09, STDIO-06, P-STDIO-3: `printf '...' | server` prints every response, ends the lifespan, and exits cleanly.
#[test]
fn a_shell_gets_its_answers() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stdio-server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": initialize(HANDSHAKE, json!({})) });
    let call = json!({ "jsonrpc": "2.0", "id": "2", "method": "tools/call", "params": { "name": "print" } });
    write!(child.stdin.take().unwrap(), "{opening}\n{call}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    assert_eq!(answers.len(), 2, "{output:?}");
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(1), &json!("2")));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("not a frame\nprinted\n") && stderr.contains("the fixture has ended"),
        "{stderr}"
    );
    assert!(output.status.success());
}

/// DISP-34: a signal ends the server although its input stays open; requests in flight are answered with an error.
#[tokio::test]
async fn a_signal_ends_the_server_with_its_input_open() {
    for which in [Signal::TERM, Signal::INT] {
        let mut wire = busy("wait", 1).await;
        let start = Instant::now();
        signal(&wire, which);
        let (rest, ended) = wire.rest().await;
        assert!(start.elapsed() < BOUND && ended.is_orderly(), "{:?} {ended:?}", start.elapsed());
        let text = "Connection closed: the server is shutting down";
        assert_eq!(error_of(&rest[0]), (-32000, text.to_owned(), Value::Null));
    }
}

/// Without a subscriber, errors and panics of handlers are lines of standard error; the client sees no cause.
#[tokio::test]
async fn errors_of_handlers_reach_standard_error() {
    let mut wire = Wire::spawn(Stdio::piped());
    let mut stderr = wire.stderr();
    wire.open(HANDSHAKE).await;
    for (tool, line) in [
        ("fail", "duplexer: error: the handler of tools/call failed: secret: the cause"),
        ("panic", "duplexer: error: the handler of tools/call panicked: secret: the panic"),
    ] {
        let answer = wire.tool(tool).await;
        assert_eq!(error_of(&answer), (-32603, "Internal server error".to_owned(), Value::Null));
        // The panic hook of the standard library prints lines of its own.
        loop {
            let printed = stderr.next_line().await.unwrap().expect("a line about the error");
            if printed == line {
                break;
            }
            assert!(!printed.starts_with("duplexer: error:"), "{printed}");
        }
    }
}

/// DISP-34: a second signal ends the drain.
#[tokio::test]
async fn an_idle_server_ends_at_once_and_a_second_signal_ends_the_drain() {
    let mut wire = busy("wait", 0).await;
    let start = Instant::now();
    signal(&wire, Signal::TERM);
    assert!(wire.rest().await.1.is_orderly() && start.elapsed() < Duration::from_millis(1500));
    let mut wire = busy("linger", 1).await;
    let start = Instant::now();
    signal(&wire, Signal::TERM);
    // The server cannot distinguish two signals from one before it has handled the first.
    assert_eq!(wire.next().await["params"]["data"], "closing");
    signal(&wire, Signal::TERM);
    let (rest, ended) = wire.rest().await;
    assert!(start.elapsed() < Duration::from_millis(2500), "{:?}", start.elapsed());
    assert!(rest.len() == 1 && ended.is_orderly());
}

/// DISP-34, P-STDIO-6, R-S93: a handler that blocks its thread prevents neither other handlers nor the process from
/// finishing.
#[tokio::test]
async fn a_stuck_handler_does_not_keep_the_process() {
    let mut wire = blocked(1).await;
    assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    let start = Instant::now();
    let (rest, ended) = wire.finish().await;
    assert!(start.elapsed() < BOUND && ended.is_orderly(), "{:?} {ended:?}", start.elapsed());
    assert_eq!(error_of(&rest[0]).0, -32000);
}

/// DISP-34: even when every thread is blocked a signal ends the process in time.
#[tokio::test]
async fn a_process_with_all_threads_stuck_ends_on_a_signal() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).max(2) + 1;
    let mut wire = blocked(threads).await;
    let start = Instant::now();
    signal(&wire, Signal::TERM);
    let (_, ended) = wire.rest().await;
    assert!(start.elapsed() < BOUND && ended.is_orderly(), "{:?} {ended:?}", start.elapsed());
}
