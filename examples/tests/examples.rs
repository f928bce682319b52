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

/// Runs a client and returns what it prints.
fn client(binary: &str, words: &[&str]) -> (bool, String) {
    let output = Command::new(binary).args(words).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_client_over_stdio_starts_a_server_and_calls_its_tool() {
    let binary = env!("CARGO_BIN_EXE_client-stdio");
    let (success, text) = client(binary, &[env!("CARGO_BIN_EXE_hello")]);
    assert!(success, "{text}");
    assert!(text.contains("add: Adds two numbers.") && text.contains("40 + 2 = 42"), "{text}");
    assert!(text.contains("without arguments: The arguments do not fit this tool:"), "{text}");
    let (success, text) = client(binary, &["/no/such/program"]);
    assert!(!success && text.contains("cannot be started"), "{text}");
}

/// A server over HTTP with the tool that the client books a table with.
mod restaurant {
    use duplexer::prelude::*;
    use duplexer::{Context, http::StreamableHttp};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Booking {
        /// How many people?
        #[schemars(range(min = 1, max = 12))]
        guests: u8,
    }

    /// Books a table.
    #[tool]
    async fn book(cx: Context, day: String) -> Result<String, ToolError> {
        let booking: Booking = cx.elicit("booking", "For how many?").await?.accepted()?;
        Ok(format!("A table for {} on {day}.", booking.guests))
    }

    pub(crate) async fn serve(
        until: tokio::sync::oneshot::Receiver<()>,
    ) -> (String, tokio::task::JoinHandle<()>) {
        let server = Server::builder("restaurant", "0").tool(book).build().unwrap();
        let bound = StreamableHttp::builder(server).build().unwrap().bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr().unwrap());
        let serving = tokio::task::spawn_local(async move {
            bound.serve_until(async { drop(until.await) }).await;
        });
        (url, serving)
    }
}

#[test]
fn the_client_over_http_answers_the_question_of_the_server() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (url, serving) = restaurant::serve(stopped).await;
        let run = async |words: Vec<String>| {
            let run = tokio::task::spawn_blocking(move || {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                client(env!("CARGO_BIN_EXE_client-http"), &words)
            });
            run.await.unwrap()
        };
        let (success, text) = run(vec![url.clone(), "4".to_owned()]).await;
        assert!(success && text.contains("A table for 4 on Friday."), "{text}");
        let (success, text) = run(vec![url.clone(), "0".to_owned()]).await;
        assert!(success && text.contains("`guests` must be an integer of at least 1"), "{text}");
        assert!(text.contains("not booked: The user declined to answer."), "{text}");
        let (success, text) = run(vec!["http://127.0.0.1:1/mcp".to_owned()]).await;
        assert!(!success && text.contains("nothing listens there"), "{text}");
        drop(stop);
        serving.await.unwrap();
    });
}
