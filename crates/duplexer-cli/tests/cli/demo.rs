//! The demo server: the commands that it prints work.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Demo, PROGRAM, run, run_with};

#[test]
fn the_welcome_says_where_it_listens_and_what_it_speaks() {
    let demo = Demo::start();
    assert!(demo.url.starts_with("http://127.0.0.1:") && demo.url.ends_with("/mcp"));
    let welcome = demo.welcome.join("\n");
    for revision in ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        assert!(welcome.contains(revision), "{revision}");
    }
    assert_eq!(demo.running.interrupt(), Some(0));
}

/// The three printed commands.
#[test]
fn what_the_welcome_suggests_works() {
    let demo = Demo::start();
    let line = |begin: &str| demo.welcome.iter().find(|line| line.trim_start().starts_with(begin)).unwrap();
    let answer = curl(&demo.url, &demo.welcome.join(" "));
    assert_eq!(answer["result"]["structuredContent"], json!({"sum": 5.0}));
    let own: Vec<&str> = line(PROGRAM).split_whitespace().skip(1).collect();
    assert_eq!(run(&own).ok(), "Counted to 20.\n");
    assert!(line("npx ").contains(&format!("--cli {} --transport http --method tools/list", demo.url)));
}

#[test]
fn a_demo_with_metrics_counts_its_calls() {
    let demo = Demo::with(&["--metrics", "127.0.0.1:0"]);
    let line = demo.welcome.iter().find(|line| line.starts_with("Metrics at http://")).unwrap();
    let address = line.trim_start_matches("Metrics at http://").trim_end_matches("/metrics");
    run(&["call", &demo.url, "add", "a:=2", "b:=3"]).ok();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let calls = r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="add"} 1"#;
    assert!(text.contains(calls) && text.contains("\nduplexer_http_ready 1\n"), "{text}");
    assert_eq!(demo.running.interrupt(), Some(0));
}

/// With `--auth dev` every request requires a token, and the welcome names the authorization server.
#[test]
fn a_protected_demo_says_where_tokens_come_from() {
    let demo = Demo::with(&["--auth", "dev"]);
    let refused = run(&["ping", &demo.url]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    let welcome = demo.welcome.join("\n");
    let address = demo.url.trim_start_matches("http://").trim_end_matches("/mcp");
    for place in ["oauth-protected-resource/mcp", "oauth-authorization-server"] {
        assert!(welcome.contains(place), "{welcome}");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /.well-known/{place} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(document["scopes_supported"], json!(["mcp"]));
    }
    let elsewhere = run(&["demo", "--auth", "dev", "--host", "0.0.0.0", "--port", "0"]);
    assert_eq!(elsewhere.code, Some(2), "{}", elsewhere.stderr);
}

/// Sends the request of the printed command line.
fn curl(url: &str, line: &str) -> Value {
    let quoted = |flag: &str| -> Vec<String> {
        let begin = format!("{flag} '");
        line.split(&begin).skip(1).map(|text| text.split_once('\'').unwrap().0.to_owned()).collect()
    };
    let (headers, body) = (quoted("-H").join("\r\n"), quoted("-d").concat());
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\n{headers}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn without_a_verb_it_serves_standard_input_and_prints_nothing_else() {
    let ran = run_with(&["--stdio"], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert_eq!(ran.json(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

/// `-v` prints one line per request, also for those that fail; standard output stays free.
#[test]
fn a_verbose_demo_prints_a_line_for_each_request() {
    let mut demo = Demo::with(&["-v"]);
    for (era, name) in [("handshake", "initialize"), ("envelope", "server/discover")] {
        run(&["call", &demo.url, "add", "a:=1", "b:=2", "--era", era]).ok();
        assert!(next_about(&mut demo, name).contains("  ok  "));
        let line = next_about(&mut demo, "tools/call");
        assert!(
            line.starts_with("tools/call add  ") && line.contains("  ok  ") && line.ends_with(" ms"),
            "{line}"
        );
        assert_eq!(run(&["call", &demo.url, "divide", "a:=1", "b:=0", "--era", era]).code, Some(1));
        assert!(next_about(&mut demo, "tools/call").contains("tool error"));
        assert_eq!(run(&["read", &demo.url, "no://where", "--era", era]).code, Some(5));
        let line = next_about(&mut demo, "resources/read");
        assert!(line.contains("resources/read no://where") && line.contains("error -32"), "{line}");
    }
}

/// Returns the next line that the demo prints about a method.
fn next_about(demo: &mut Demo, method: &str) -> String {
    loop {
        let line = demo.running.note();
        assert_ne!(line, "", "the demo has ended");
        if line.starts_with(method) {
            return line;
        }
    }
}

#[test]
fn a_verbose_demo_on_standard_output_prints_only_the_protocol_there() {
    let ran = run_with(&["--stdio", "-v"], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    assert!(ran.stderr.starts_with("ping ") && ran.stderr.contains("  ok  "), "{ran:?}");
    assert_eq!(ran.json(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}
