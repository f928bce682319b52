//! `duplexer proxy` and `duplexer gateway`, as hosts and people start them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer::client::prelude::*;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{Demo, Listening, NOWHERE, PROGRAM, data_folder, run};

const DEMO: [&str; 4] = ["--", PROGRAM, "demo", "--stdio"];

fn proxy(words: &[&str]) -> Listening {
    Listening::start(&[&["proxy", "--listen", "0"], words, &DEMO].concat())
}

#[test]
fn a_program_is_offered_over_http_in_both_eras() {
    for words in [&[][..], &["--shared"]] {
        let proxy = proxy(words);
        for era in ["handshake", "envelope", "auto"] {
            let sum = run(&["call", "--era", era, &proxy.url, "add", "a:=2", "b:=3"]).ok();
            assert!(sum.contains("5.0"), "{era}: {sum}");
        }
        let tools = run(&["list", &proxy.url, "tools"]).ok();
        assert!(tools.contains("divide"), "{tools}");
        assert_eq!(proxy.running.interrupt(), Some(0));
    }
}

#[test]
fn a_url_is_offered_to_a_host_that_starts_programs() {
    let demo = Demo::start();
    for era in ["handshake", "envelope", "auto"] {
        let sum = run(&["call", "--era", era, "add", "a:=2", "b:=3", "--", PROGRAM, "proxy", &demo.url]).ok();
        assert!(sum.contains("5.0"), "{era}: {sum}");
    }
}

/// An old server, which has only HTTP+SSE (2024-11-05), as the far end.
#[test]
fn a_server_with_http_sse_only_is_offered_in_both_eras() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let tool = duplexer::Tool::new("who", || async { "an old server" });
    let server = duplexer::Server::builder("old", "1").tool(tool).build().unwrap();
    let service =
        duplexer_http::StreamableHttp::builder(server).http_sse("/sse", "/messages").build().unwrap();
    let bound = runtime.block_on(service.bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}/sse", bound.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn_on(bound.serve_until(std::future::pending()), runtime.handle());
    for era in ["handshake", "envelope"] {
        let who = run(&["call", "--era", era, "who", "--", PROGRAM, "proxy", &url]).ok();
        assert!(who.contains("an old server"), "{era}: {who}");
    }
    let servers = json!({ "mcpServers": { "old": { "url": url } } });
    let file = config("old.json", &servers.to_string());
    let who = run(&["call", "old__who", "--", PROGRAM, "gateway", file.to_str().unwrap()]).ok();
    assert!(who.contains("an old server"), "{who}");
}

#[test]
fn an_address_in_use_is_reported_with_what_to_try() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = run(&["proxy", "--listen", &port, "--", PROGRAM, "demo", "--stdio"]);
    assert!(ran.stderr.contains("`duplexer proxy --listen "), "{ran:?}");
    let file = config("taken.json", r#"{ "mcpServers": {} }"#);
    let ran = run(&["gateway", "--listen", &port, file.to_str().unwrap()]);
    assert!(ran.stderr.contains("`duplexer gateway --listen "), "{ran:?}");
}

#[test]
fn a_server_that_cannot_be_reached_is_reported_by_its_reason() {
    let ran = run(&["call", "add", "a:=2", "b:=3", "--", PROGRAM, "proxy", NOWHERE]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("The server behind this proxy is not available"), "{ran:?}");
    let ran = run(&["call", "add", "--", PROGRAM, "proxy", "--", "/no/such/program"]);
    assert!(ran.stderr.contains("`/no/such/program` cannot be started"), "{ran:?}");
    run(&["proxy", "ftp://example.com"]).failed(2, "begins with http://");
    assert_eq!(run(&["proxy"]).code, Some(2));
}

/// What a program writes to standard error cannot control the terminal.
#[test]
fn standard_error_of_a_program_is_shown_without_control_characters() {
    let script = format!("printf 'bad\\033[2J\\n' >&2; exec {PROGRAM} demo --stdio");
    let ran = run(&["call", "add", "a:=2", "b:=3", "--", PROGRAM, "proxy", "--", "sh", "-c", &script]);
    assert!(ran.stderr.contains("bad") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    assert!(ran.ok().contains("5.0"));
}

fn config(name: &str, text: &str) -> PathBuf {
    let folder = data_folder();
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_gateway_offers_all_servers_of_a_file() {
    let demo = Demo::start();
    let servers = json!({ "mcpServers": {
        "program": { "command": PROGRAM, "args": ["demo", "--stdio"], "allow": ["add", "echo"] },
        "url": { "url": demo.url, "prefix": "u_", "deny": ["add"] },
        "broken": { "command": "/no/such/program" },
    }});
    let file = config("gateway.json", &servers.to_string());
    let path = file.to_str().unwrap();
    let mut gateway = Listening::start(&["gateway", "--listen", "0", path]);
    let names = |url: &str| run(&["list", "--json", url, "tools"]).json().to_string();
    let listed = names(&gateway.url);
    for (name, is_listed) in
        [("program__add", true), ("program__divide", false), ("u_divide", true), ("u_add", false)]
    {
        assert_eq!(listed.contains(&format!("\"{name}\"")), is_listed, "{name}: {listed}");
    }
    assert!(run(&["call", &gateway.url, "program__add", "a:=2", "b:=3"]).ok().contains("5.0"));
    let denied = run(&["call", &gateway.url, "program__divide", "a:=4", "b:=2"]);
    assert!(denied.stderr.contains("program__divide"), "{denied:?}");
    // The file is read again when it changes.
    let fewer = json!({ "mcpServers": { "url": { "url": demo.url } } });
    fs::write(&file, fewer.to_string()).unwrap();
    while !names(&gateway.url).contains("url__add") {}
    assert!(!names(&gateway.url).contains("program__add"));
    // A fault in it changes nothing, and the next version counts again.
    fs::write(&file, "{ \"mcpServers\": 7 }").unwrap();
    let fault = loop {
        let line = gateway.running.note();
        assert!(!line.is_empty(), "it has ended");
        if line.contains("stay as they were") {
            break line;
        }
    };
    assert!(fault.contains("gateway.json:1: mcpServers"), "{fault}");
    assert!(names(&gateway.url).contains("url__add"));
    let renamed = json!({ "mcpServers": { "again": { "url": demo.url } } });
    fs::write(&file, renamed.to_string()).unwrap();
    while !names(&gateway.url).contains("again__add") {}
    assert_eq!(gateway.running.interrupt(), Some(0));
}

/// A server whose names, texts and errors contain escape sequences: none of them reaches standard error, of the gateway or
/// proxy and of the verb that uses it.
#[test]
fn nothing_of_a_server_controls_the_terminal() {
    let script = r#"
import json, sys
BAD = "\u001b[2J\u001b]0;owned\u0007\u202e"
print("note" + BAD, file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, answer = request["method"], {"jsonrpc": "2.0", "id": request["id"]}
    if method == "initialize":
        info = {"name": "bad" + BAD, "version": BAD}
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        schema = {"type": "object"}
        names = ["good", "evil" + BAD]
        answer["result"] = {"tools": [{"name": n, "description": BAD, "inputSchema": schema} for n in names]}
    else:
        answer["error"] = {"code": -32603, "message": "failed" + BAD}
    print(json.dumps(answer), flush=True)
"#;
    let program = config("bad.py", script);
    let servers = json!({ "mcpServers": { "bad": { "command": "python3", "args": [program] } } });
    let file = config("bad.json", &servers.to_string());
    let gateway = ["--", PROGRAM, "gateway", file.to_str().unwrap()];
    let proxy = ["--", PROGRAM, "proxy", "--", "python3", program.to_str().unwrap()];
    for (far, tool) in [(&gateway[..], "bad__good"), (&proxy[..], "good")] {
        for words in [&["list", "tools"][..], &["call", tool]] {
            let ran = run(&[words, far].concat());
            assert!(ran.stderr.contains("note"), "{ran:?}");
            assert!(!ran.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{words:?}: {ran:?}");
        }
    }
}

#[test]
fn a_broken_configuration_is_named_by_file_line_and_member() {
    let check = |text: &str, expected: &str| {
        let file = config("broken.json", text);
        run(&["gateway", file.to_str().unwrap()]).failed(2, expected);
    };
    check(
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": 7 }\n  }\n}",
        "broken.json:3: mcpServers.a.command",
    );
    check(
        "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\", \"allow\": \"b\" }\n  }\n}",
        "broken.json:3: mcpServers.a.allow",
    );
    check("{\n  \"mcpServers\": {,}\n}", "line 2");
    run(&["gateway", "no/such/file.json"]).failed(2, "no/such/file.json cannot be read");
}

/// Returns the processes that `parent` has started.
fn children(parent: Pid) -> BTreeSet<i32> {
    let tasks = format!("/proc/{}/task", parent.as_raw_nonzero());
    let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The program is killed again and again while clients call it: every call is answered or fails with a clear error, none
/// hangs, and no process is left behind. `PROXY_CYCLES=100` kills it a hundred times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_killed_under_load_is_started_again() {
    let cycles = std::env::var("PROXY_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let proxy = proxy(&["--shared"]);
    let parent = proxy.running.pid();
    let (answered, failed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut load = JoinSet::new();
    for era in [Negotiation::Handshake, Negotiation::Auto] {
        for _ in 0..4 {
            let client = Client::builder("load", "1").negotiation(era.clone());
            let client = client.open(proxy.url.as_str()).await.unwrap();
            let (answered, failed) = (Arc::clone(&answered), Arc::clone(&failed));
            load.spawn(async move {
                loop {
                    let call = client.call_tool("add", json!({ "a": 2, "b": 3 }));
                    match timeout(Duration::from_secs(60), call).await.expect("no call hangs") {
                        Ok(result) => {
                            assert!(result.to_text().contains("5.0"));
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            assert!(error.to_string().contains("behind this proxy"), "{error}");
                            failed.fetch_add(1, Ordering::Relaxed);
                            tokio::task::yield_now().await;
                        }
                    }
                }
            });
        }
    }
    let mut seen = BTreeSet::new();
    for cycle in 0..cycles {
        let before = answered.load(Ordering::Relaxed);
        let progress = async {
            while answered.load(Ordering::Relaxed) < before + 50 || children(parent).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), progress)
            .await
            .unwrap_or_else(|_| panic!("no answers in cycle {cycle}"));
        for child in children(parent) {
            seen.insert(child);
            let _ = kill_process(Pid::from_raw(child).unwrap(), Signal::KILL);
        }
    }
    let before = answered.load(Ordering::Relaxed);
    let recovered = async {
        while answered.load(Ordering::Relaxed) < before + 50 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), recovered).await.expect("it recovers from the last kill");
    assert!(load.try_join_next().is_none(), "a client has ended");
    load.shutdown().await;
    seen.extend(children(parent));
    assert!(seen.len() > cycles, "{} processes", seen.len());
    assert_eq!(proxy.running.interrupt(), Some(0));
    let gone = async {
        while seen.iter().any(|child| test_kill_process(Pid::from_raw(*child).unwrap()).is_ok()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), gone).await.expect("no process is left behind");
}
