//! The audit log, and observers.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{builder, call, call_with, connection, start};
use crate::kernel::testing;
use crate::middleware::{AuditLog, Ending, Observed, Observer};
use crate::tool::{Tool, ToolError};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_audit_log_has_one_line_per_request_with_its_outcome_and_no_payload() {
    let memory = Memory::default();
    let server = builder()
        .middleware(AuditLog::stream(memory.clone()))
        .tool(Tool::new("ok", || async { "a secret result" }))
        .tool(Tool::new("fails", || async { Err::<(), _>(ToolError::new("no")) }))
        .tool(Tool::new("refuses", || async { Err::<(), _>(McpError::new(ErrorCode(7), "no")) }))
        .tool(Tool::new("hangs", || async { std::future::pending::<()>().await }));
    let running = start(server).await;
    let arguments = r#"{"password": "hunter-2"}"#;
    call_with(&running, "ada", "ok", arguments).await.unwrap();
    call(&running, "", "fails").await.unwrap();
    call(&running, "", "refuses").await.unwrap_err();
    assert!(tokio::time::timeout(Duration::from_secs(1), call(&running, "", "hangs")).await.is_err());
    testing::call(&running, &connection("", &[]), Method::ResourcesRead, r#"{"uri":"a://b"}"#)
        .await
        .unwrap_err();
    let lines = memory.lines();
    let digest = u128::from_str_radix(&lines[0]["arguments_sha256"].as_str().unwrap()[..32], 16).unwrap();
    assert_eq!(digest.to_be_bytes(), Sha256::digest(arguments.as_bytes())[..16]);
    assert_eq!((&lines[0]["client"], &lines[0]["name"]), (&json!("ada"), &json!("ok")));
    assert!(lines[0]["time"].as_str().unwrap().ends_with('Z') && lines[0]["elapsed_ms"].is_number());
    let outcomes: Vec<_> = lines.iter().map(|line| (&line["outcome"], &line["code"])).collect();
    let (ok, none) = (json!("ok"), Value::Null);
    let (tool_error, error, dropped) = (json!("tool_error"), json!("error"), json!("dropped"));
    let (seven, not_found) = (json!(7), json!(-32601));
    assert_eq!(
        outcomes,
        [(&ok, &none), (&tool_error, &none), (&error, &seven), (&dropped, &none), (&error, &not_found)]
    );
    assert_eq!(lines[4]["name"], "a://b");
    let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("hunter-2") && !text.contains("a secret result"), "{text}");
}

/// With two lines that a client tries to forge, the log still has one line per request.
#[tokio::test]
async fn a_client_cannot_write_lines_of_its_own() {
    let memory = Memory::default();
    let running = start(builder().middleware(AuditLog::stream(memory.clone()))).await;
    call(&running, "", r#"x\n{\"outcome\":\"ok\"}\n"#).await.unwrap_err();
    let lines = memory.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["name"], "x\n{\"outcome\":\"ok\"}\n");
}

#[test]
fn an_audit_log_that_cannot_be_opened_is_named() {
    let failed = AuditLog::file("no/such/folder/audit.jsonl").open().map(drop).unwrap_err();
    assert!(failed.to_string().starts_with("no/such/folder/audit.jsonl: "), "{failed}");
    assert_eq!(failed.kind(), io::ErrorKind::NotFound);
}

/// Arguments are kept as they were sent, and JSON allows line breaks between their parts.
#[tokio::test]
async fn arguments_with_line_breaks_are_still_one_line() {
    let path = std::env::temp_dir().join(format!("duplexer-audit-breaks-{}.jsonl", std::process::id()));
    let audit = AuditLog::file(&path).with_arguments().open().unwrap();
    let running = start(builder().middleware(audit).tool(Tool::new("t", || async {}))).await;
    call_with(&running, "", "t", "{\"a\":\n{\"outcome\":\"ok\"}\r\n, \"b\": \"x\\ny\"}").await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(lines[0]["arguments"], json!({"a": {"outcome": "ok"}, "b": "x\ny"}));
}

#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl Observer for Noting {
    fn begun(&self, message: &Observed<'_>) {
        self.0.lock().unwrap().push(format!("begun {}", message.message().method()));
    }

    fn ended(&self, message: &Observed<'_>, ending: Ending<'_>, elapsed: Duration) {
        let ending = match ending {
            Ending::Done(outcome) => format!("done {}", outcome.is_error()),
            Ending::Failed(error) => format!("failed {error}"),
            Ending::Dropped => "dropped".to_owned(),
        };
        self.0.lock().unwrap().push(format!("{:?} {ending} {}", message.tool(), elapsed.as_secs()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_every_message_begin_and_end_once() {
    let notes = Arc::new(Noting::default());
    let server = builder()
        .observer(Arc::clone(&notes))
        .tool(Tool::new("naps", || tokio::time::sleep(Duration::from_secs(2))))
        .tool(Tool::new("hangs", || async { std::future::pending::<()>().await }));
    let running = start(server).await;
    call(&running, "", "naps").await.unwrap();
    call(&running, "", "unknown").await.unwrap_err();
    assert!(tokio::time::timeout(Duration::from_secs(1), call(&running, "", "hangs")).await.is_err());
    let begun = "begun tools/call";
    let expected = [
        begun,
        r#"Some("naps") done false 2"#,
        begun,
        "None failed Unknown tool: unknown 0",
        begun,
        r#"Some("hangs") dropped 1"#,
    ];
    assert_eq!(*notes.0.lock().unwrap(), expected);
}
