//! Runs every example, and the README's first server verbatim.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "examples/sqlite.rs"]
mod sqlite;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

fn run(example: &str, binary: &str) {
    let output = Command::new(binary).output().unwrap();
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_example_succeeds() {
    run("structured", env!("CARGO_BIN_EXE_structured"));
    run("resources", env!("CARGO_BIN_EXE_resources"));
    run("prompts", env!("CARGO_BIN_EXE_prompts"));
    run("progress", env!("CARGO_BIN_EXE_progress"));
    run("middleware", env!("CARGO_BIN_EXE_middleware"));
    run("custom-method", env!("CARGO_BIN_EXE_custom-method"));
    run("elicitation", env!("CARGO_BIN_EXE_elicitation"));
    run("dynamic", env!("CARGO_BIN_EXE_dynamic"));
    run("composition", env!("CARGO_BIN_EXE_composition"));
    run("lifespan", env!("CARGO_BIN_EXE_lifespan"));
}

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
fn the_readme_prints_the_first_server() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let readme = std::fs::read_to_string(format!("{root}/README.md")).unwrap();
    let server = include_str!("../hello/main.rs");
    assert!(server.lines().count() <= 15);
    assert!(readme.contains(&format!("```rust\n{server}```")), "README.md and examples/hello/main.rs differ");
}
