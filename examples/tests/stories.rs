//! Runs every story, and the README's first server as it is printed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

fn tell(story: &str, binary: &str) {
    let output = Command::new(binary).output().unwrap();
    assert!(output.status.success(), "{story}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_story_is_true() {
    tell("structured", env!("CARGO_BIN_EXE_structured"));
    tell("resources", env!("CARGO_BIN_EXE_resources"));
    tell("prompts", env!("CARGO_BIN_EXE_prompts"));
    tell("progress", env!("CARGO_BIN_EXE_progress"));
    tell("middleware", env!("CARGO_BIN_EXE_middleware"));
    tell("custom-method", env!("CARGO_BIN_EXE_custom-method"));
    tell("elicitation", env!("CARGO_BIN_EXE_elicitation"));
    tell("dynamic", env!("CARGO_BIN_EXE_dynamic"));
    tell("composition", env!("CARGO_BIN_EXE_composition"));
    tell("lifespan", env!("CARGO_BIN_EXE_lifespan"));
}

/// The answers of the first server to lines on its standard input, by id.
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
