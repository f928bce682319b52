//! The first server, which is the one of the README.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the responses of the first server to lines on its standard input, sorted by id.
fn answers(lines: &[&str]) -> Vec<Value> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_hello"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    server.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let output = server.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_i64());
    answers
}

#[test]
fn the_first_server_of_the_readme_runs_in_both_eras() {
    let handshake = answers(&[
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}"#,
    ]);
    assert_eq!(handshake[1]["result"]["structuredContent"]["result"], 3);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"add","arguments":{{"a":1,"b":2}},{meta}}}}}"#
    );
    let list = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{meta}}}}}"#);
    let envelope = answers(&[&call, &list]);
    assert_eq!(envelope[0]["result"]["structuredContent"], 3);
    assert_eq!(envelope[1]["result"]["tools"][0]["description"], "Adds two numbers.");
}

#[test]
fn the_readme_and_the_first_guide_print_the_first_server() {
    let server = include_str!("../../hello/main.rs");
    assert!(server.lines().count() <= 15);
    for (page, fence) in
        [("README.md", "```rust\n"), ("crates/duplexer/guide/first_server.md", "```no_run\n")]
    {
        let text = fs::read_to_string(format!("{ROOT}/{page}")).unwrap();
        assert!(text.contains(&format!("{fence}{server}```")), "{page} and examples/hello/main.rs differ");
    }
}

/// Each example says what it shows, how to run it and what to try.
#[test]
fn every_other_example_begins_with_what_to_try() {
    let mut examples = 0;
    for entry in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap().map(Result::unwrap) {
        let Ok(source) = fs::read_to_string(entry.path().join("main.rs")) else { continue };
        let name = entry.file_name().into_string().unwrap();
        if name == "hello" {
            continue;
        }
        examples += 1;
        let header: Vec<&str> = source.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!((5..=6).contains(&header.len()), "{name} begins with {} lines", header.len());
        assert!(header.iter().any(|line| line.contains(&format!("--bin {name}"))), "{name}: how is it run?");
        assert!(header.iter().any(|line| line.starts_with("//! Try: ")), "{name}: what is there to try?");
    }
    assert!(examples >= 9, "{examples} examples");
}
