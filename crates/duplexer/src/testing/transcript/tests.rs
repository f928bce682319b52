//! Transcripts: the format of files, and replays in both eras.

use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_types::elicitation::{ElicitParams, ElicitResult, FormSchema};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::tool::CallToolParams;

use super::*;
use crate::client::{Client, ClientBuilder, Negotiation};
use crate::error::McpError;
use crate::server::Context;
use crate::testing::TestClient;
use crate::tool::ToolError;
use crate::{Tool, types::methods};

const HEAD: &str = "{\"duplexer\":\"transcript\",\"version\":1}\n";

#[test]
fn a_fault_names_its_line() {
    let check = |text: &str, expected: &str| {
        let error = Transcript::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let message = r#"{"at_ms":5,"from":"client","message":{}}"#;
    check("", "line 1 of the transcript: the file is empty");
    check("{}", "line 1 of the transcript: it must be");
    check(
        "{\"duplexer\":\"transcript\",\"version\":2}",
        "line 1 of the transcript: version 2 is not supported",
    );
    check(&format!("{HEAD}\n{{\"at_ms\":0}}\n"), "line 3 of the transcript: missing field");
    check(
        &format!("{HEAD}{{\"at_ms\":0,\"from\":\"proxy\",\"message\":{{}}}}"),
        "line 2 of the transcript: unknown variant",
    );
    check(
        &format!("{HEAD}{{\"at_ms\":-1,\"from\":\"client\",\"message\":{{}}}}"),
        "line 2 of the transcript: invalid value",
    );
    check(
        &format!("{HEAD}{{\"at_ms\":0,\"from\":\"client\",\"message\":7}}"),
        "line 2 of the transcript: `message` is neither",
    );
    check(
        &format!("{HEAD}{message}\n{}\n", message.replace('5', "4")),
        "line 3 of the transcript: its `at_ms` is before",
    );
    check(&format!("{HEAD}{message}\n{{\"at_ms\":6,\n"), "line 3 of the transcript: EOF");
    let error = Transcript::read("no/such/file").unwrap_err();
    assert_eq!(error.to_string(), "no/such/file cannot be read");
}

/// Unknown members, blank lines, a mark at the begin and a last line that was cut off are no faults.
#[test]
fn a_recording_that_was_cut_off_is_read() {
    let text = format!(
        "\u{feff}{}\r\n\n{{\"at_ms\":0,\"from\":\"client\",\"message\":{{\"a\": 1.50}},\"x\":[]}}\r\n{{\"at_ms\":7,\"from\":\"server\",\"connection\":3,\"message\":[]}}\n{{\"at_ms\":9,\"fro",
        HEAD.trim_end().replace('}', ",\"future\":true}")
    );
    let messages = Transcript::parse(&text).unwrap().messages();
    let shown: Vec<_> =
        messages.iter().map(|one| (one.at.as_millis(), one.from, one.connection, &*one.text)).collect();
    assert_eq!(shown, [(0, Sender::Client, 1, "{\"a\": 1.50}"), (7, Sender::Server, 3, "[]")]);
}

#[test]
fn a_long_line_is_refused() {
    let text = format!("{HEAD}{}", "x".repeat(16 * 1024 * 1024 + 1));
    let error = Transcript::parse(&text).unwrap_err().to_string();
    assert_eq!(error, "line 2 of the transcript: it is longer than 16 MiB");
}

#[test]
fn a_writer_writes_one_line_per_message() {
    let mut file = Vec::new();
    let mut writer = TranscriptWriter::new(&mut file, Some("http"), Some("http://a/mcp")).unwrap();
    assert!(writer.write(Sender::Client, 1, "{\n  \"b\": 1,\r\n  \"a\": \"x\\ny\"\n}").unwrap());
    for noise in ["Starting", "7", "{", ""] {
        assert!(!writer.write(Sender::Server, 1, noise).unwrap(), "{noise}");
    }
    assert!(writer.write(Sender::Server, 2, "[]").unwrap());
    let text = String::from_utf8(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with(
        r#"{"duplexer":"transcript","version":1,"transport":"http","target":"http://a/mcp","by":"#
    ));
    let messages = Transcript::parse(&text).unwrap().messages();
    assert_eq!(messages[0].text.split_whitespace().collect::<String>(), r#"{"b":1,"a":"x\ny"}"#);
    assert_eq!(messages[1].connection, 2);
}

/// A server with progress, a log, a question, and a tool that counts.
fn server() -> Server {
    let count = Arc::new(AtomicUsize::new(0));
    Server::builder("original", "1.2.3")
        .tool(Tool::new("next", move || {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            async move { number.to_string() }
        }))
        .tool(Tool::new("slow", |cx: Context| async move {
            cx.progress(0.5).total(1.0).message("half").await;
            "done"
        }))
        .tool(Tool::new("fails", || async { Err::<String, _>(ToolError::new("no")) }))
        .build()
        .unwrap()
}

async fn recorded(builder: ClientBuilder) -> Transcript {
    let client = TestClient::connect(&server(), builder).await.unwrap();
    for _ in 0..2 {
        client.call_tool("next", ()).await.unwrap();
    }
    client.call_tool("slow", ()).on_progress(|_| {}).await.unwrap();
    assert_eq!(client.call_tool("fails", ()).await.unwrap().is_error, Some(true));
    assert!(client.call_tool("nothing", ()).await.is_err());
    client.all_tools().await.unwrap();
    let mut file = Vec::new();
    client.transcript().write(&mut file).unwrap();
    client.close().await;
    Transcript::parse(&String::from_utf8(file).unwrap()).unwrap()
}

fn older() -> ClientBuilder {
    Client::builder("c", "1").negotiation(Negotiation::Handshake)
}

/// A replay answers like the recorded server, to clients of both eras, and names what it does not know.
#[tokio::test]
async fn a_replay_answers_like_the_recorded_server_in_both_eras() {
    let newer = || Client::builder("c", "1");
    for (recorder, asker, revision) in [
        (older(), older(), "2025-11-25"),
        (newer(), newer(), "2026-07-28"),
        (older(), newer(), "2026-07-28"),
        (newer(), older(), "2025-11-25"),
    ] {
        let transcript = recorded(recorder).await;
        let client = TestClient::connect(&transcript.server().unwrap(), asker).await.unwrap();
        assert_eq!(client.protocol_version().as_str(), revision);
        assert_eq!(client.server_info().unwrap().name, "original");
        // The answers in their order, and then the last one again.
        for expected in ["1", "2", "2"] {
            assert_eq!(client.call_tool("next", ()).await.unwrap().to_text(), expected);
        }
        let progress = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&progress);
        let slow = client.call_tool("slow", ()).on_progress(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(slow.await.unwrap().to_text(), "done");
        assert_eq!(progress.load(Ordering::SeqCst), 1);
        assert_eq!(client.call_tool("fails", ()).await.unwrap().is_error, Some(true));
        assert_eq!(client.all_tools().await.unwrap().len(), 3);
        let error = client.call_tool("nothing", ()).await.unwrap_err().to_string();
        assert!(error.contains("nothing"), "{error}");
        let error =
            client.call_tool("next", JsonObject::<Json>::new().with("a", "b")).await.unwrap_err().to_string();
        assert_eq!(error, "The transcript has 'tools/call' only with other params");
        let error = client.list_prompts().await.unwrap_err().to_string();
        assert!(error.contains("prompts/list"), "{error}");
        client.close().await;
    }
}

/// Questions of the server are asked again.
#[tokio::test]
async fn a_replay_asks_what_the_server_had_asked() {
    let ask = async |cx: Context<()>, _: CallToolParams| {
        let question = ElicitParams::form("Sure?", FormSchema::new(JsonObject::new()));
        let answer = cx.elicit_request(&question).await?;
        Ok::<_, McpError>(duplexer_types::tool::CallToolResult::text(answer.action.as_str()))
    };
    let server = Server::builder("asks", "1").on(methods::ToolsCall, ask).build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let builder = || {
        let asked = Arc::clone(&asked);
        older().on_elicitation(move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            async { Ok(ElicitResult::decline()) }
        })
    };
    let client = TestClient::connect(&server, builder()).await.unwrap();
    client.call_tool("x", ()).await.unwrap();
    let replayed = TestClient::connect(&client.transcript().server().unwrap(), builder()).await.unwrap();
    assert_eq!(replayed.call_tool("x", ()).await.unwrap().to_text(), "decline");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
