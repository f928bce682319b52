//! Progress and log messages of a running handler, in both eras.

use duplexer_types::json::Json;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use serde_json::{Value, json};

use super::LastProgress;
use crate::features::subscriptions::tests::wire::{Over, Wire, notification};
use crate::kernel::context::Context;
use crate::registry::{RunningServer, Server};
use duplexer_core::error::McpError;

/// P-PROG-2: progress grows strictly; a request that breaks the rule logs one warning.
#[test]
fn the_first_report_that_does_not_grow_is_noticed() {
    let check = |reports: &[f64], noticed: &[bool]| {
        let reported = LastProgress::none();
        let seen: Vec<_> = reports.iter().map(|report| reported.falls_back(*report)).collect();
        assert_eq!(seen, noticed, "{reports:?}");
    };
    check(&[0.0, 0.5, 1.0, 100.0], &[false; 4]);
    check(&[1.0, 1.0, 1.0, 0.0], &[false, true, false, false]);
    check(&[-1.0, -2.0], &[false, true]);
    check(&[f64::NAN, 1.0], &[true, false]);
}

async fn work(cx: Context<()>, _: CallToolParams) -> Result<CallToolResult, McpError> {
    cx.progress(0.5).total(1.0).message("half").await;
    cx.log(LoggingLevel::Info, Json::from("fine")).await;
    cx.logger("work").error("bad").await;
    cx.connection().log(LoggingLevel::Error, Json::from("beside")).await;
    cx.progress(1.0).await;
    Ok(CallToolResult::text("done"))
}

async fn running() -> RunningServer {
    Server::builder("test", "0")
        .on(methods::ToolsCall, work)
        .logging()
        .build()
        .unwrap()
        .start()
        .await
        .unwrap()
}

/// Reads the notifications that precede the response.
async fn notifications(wire: &mut Wire) -> Vec<Value> {
    let mut received = Vec::new();
    loop {
        let message = wire.next().await;
        if message["id"].is_number() {
            assert_eq!(message["result"]["content"][0]["text"], "done");
            return received;
        }
        received.push(message);
    }
}

fn logged(level: &str, logger: Option<&str>, data: &str) -> Value {
    let mut params = json!({"level": level, "data": data});
    if let Some(logger) = logger {
        params["logger"] = logger.into();
    }
    notification("notifications/message", params)
}

fn half(token: &Value) -> Value {
    let params = json!({"progressToken": token, "progress": 0.5, "total": 1, "message": "half"});
    notification("notifications/progress", params)
}

fn whole(token: &Value) -> Value {
    notification("notifications/progress", json!({"progressToken": token, "progress": 1}))
}

/// CONN-09, P-LOG-2, P-LOG-3, P-PROG-1: only what this very request asks for, from the level it names.
#[tokio::test]
async fn an_envelope_requests_its_own_progress_and_log_messages() {
    for over in Over::BOTH {
        let running = running().await;
        let mut wire = over.connect(&running);
        let mut check = async |meta: Value, expected: Vec<Value>| {
            wire.ask_with(1, "tools/call", json!({"name": "work"}), meta.clone()).await;
            assert_eq!(notifications(&mut wire).await, expected, "{over:?} {meta}");
        };
        let level = |level: &str| json!({"io.modelcontextprotocol/logLevel": level});
        check(json!({}), vec![]).await;
        check(level("critical"), vec![]).await;
        check(level("error"), vec![logged("error", Some("work"), "bad")]).await;
        let both = vec![logged("info", None, "fine"), logged("error", Some("work"), "bad")];
        check(level("debug"), both).await;
        for token in [json!(7), json!("7"), json!("")] {
            check(json!({"progressToken": token}), vec![half(&token), whole(&token)]).await;
        }
    }
}

/// P-LOG-4: an unknown level is refused.
#[tokio::test]
async fn an_unknown_level_is_refused() {
    let mut wire = Over::Memory.connect(&running().await);
    let meta = json!({"io.modelcontextprotocol/logLevel": "loud"});
    wire.ask_with(1, "tools/call", json!({"name": "work"}), meta).await;
    assert_eq!(wire.next().await["error"]["code"], -32602);
    wire.ask(2, "logging/setLevel", json!({"level": "error"})).await;
    assert_eq!(wire.next().await["error"]["code"], -32601);
}

/// CONN-09, P-LOG-1, P-LOG-5, P-LOG-6, P-PROG-1: everything until a level is set, then what reaches it.
#[tokio::test]
async fn a_session_sets_the_level_of_its_log_messages() {
    for over in Over::BOTH {
        let running = running().await;
        let mut wire = over.connect(&running);
        assert_eq!(wire.initialize().await["capabilities"]["logging"], json!({}));
        wire.notify("notifications/initialized", json!({})).await;
        let error = || vec![logged("error", Some("work"), "bad"), logged("error", None, "beside")];
        wire.request(1, "tools/call", json!({"name": "work"})).await;
        let mut all = vec![logged("info", None, "fine")];
        all.extend(error());
        assert_eq!(notifications(&mut wire).await, all, "{over:?}");
        wire.request(2, "logging/setLevel", json!({"level": "error"})).await;
        wire.expect(json!({"jsonrpc": "2.0", "id": 2, "result": {}})).await;
        wire.request(3, "logging/setLevel", json!({"level": "loud"})).await;
        assert_eq!(wire.next().await["error"]["code"], -32602);
        let params = json!({"name": "work", "_meta": {"progressToken": 9}});
        wire.request(4, "tools/call", params).await;
        let mut expected = vec![half(&json!(9))];
        expected.extend(error());
        expected.push(whole(&json!(9)));
        assert_eq!(notifications(&mut wire).await, expected, "{over:?}");
    }
}
