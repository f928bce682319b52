//! Rules that hold for every frame of a server, and the correlation of frames.

use std::collections::BTreeSet;

use duplexer_types::meta;
use serde_json::{Value, json};

use crate::matrix::{Link, Needs, everywhere, over_every_link};
use crate::wire::{Wire, envelope, error_of};
use crate::{ENVELOPE, HANDSHAKE};

/// Checks that a frame is valid JSON-RPC. Every frame that the suite reads is checked here.
pub fn check(frame: &Value) {
    assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
    let id = frame.get("id");
    assert!(id.is_none_or(|id| id.is_string() || id.is_i64()), "an id is a text or an integer: {frame}");
    match (frame.get("method"), frame.get("result"), frame.get("error")) {
        (Some(method), None, None) => {
            let params = frame.get("params");
            assert!(method.is_string() && params.is_none_or(Value::is_object), "{frame}");
            lint(&frame["params"]["_meta"]);
        }
        (None, Some(result), None) => {
            assert!(id.is_some() && result.is_object(), "{frame}");
            lint(&result["_meta"]);
        }
        (None, None, Some(error)) => {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{frame}");
        }
        _ => panic!("neither a request nor a notification nor a response: {frame}"),
    }
}

/// Checks that keys follow their grammar, and that a key with a reserved prefix is one that the protocol defines.
fn lint(meta: &Value) {
    use duplexer_types::meta::key::{
        CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID,
    };
    // Keys of the client appear where a handler of the fixture echoes its input.
    let known = [SERVER_INFO, SUBSCRIPTION_ID, PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES];
    for key in meta.as_object().into_iter().flat_map(|meta| meta.keys()) {
        assert!(meta::valid_key(key), "{key}");
        assert!(!meta::reserved(key) || known.contains(&&**key), "{key}");
    }
}

/// P-RPC-1, P-RPC-4, P-RPC-8, P-META-11: every response is JSON-RPC, whatever the request.
#[tokio::test]
async fn every_frame_is_one_of_json_rpc() {
    everywhere(Needs::Notifications, async |mut wire| {
        for tool in ["echo", "facts", "fail", "panic", "refuse", "odd", "unsayable", "extension", "absent"] {
            let answer = wire.tool(tool).await;
            assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
        }
        for method in ["tools/list", "prompts/list", "test/nothing", "test/list", "no/such", "resources/read"]
        {
            wire.answer(method, json!({})).await;
        }
        wire.tool_text("progress", json!({ "progressToken": "p" })).await;
        wire.tool_text("log", json!({ "io.modelcontextprotocol/logLevel": "debug" })).await;
        assert!(wire.take_buffered().len() >= 4, "notifications were sent");
    })
    .await;
}

/// P-RPC-3, P-RPC-6: a response carries the id verbatim, and the id is free again after the response.
#[tokio::test]
async fn an_id_can_be_used_again_after_its_answer() {
    everywhere(Needs::Answers, async |mut wire| {
        for id in [json!(7), json!("7"), json!(0), json!(""), json!(-1), json!(i64::MAX), json!(7)] {
            let meta = if wire.is_enveloped() { envelope(ENVELOPE) } else { json!({}) };
            let params = json!({ "name": "echo", "_meta": meta });
            wire.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
            assert!(wire.answer_to(id).await.get("result").is_some());
        }
    })
    .await;
}

/// P-RPC-7: the server never reuses the id of one of its requests in a session.
#[tokio::test]
async fn the_server_s_own_ids_are_used_once() {
    over_every_link(HANDSHAKE, Needs::Session, async |mut wire| {
        let mut used = BTreeSet::new();
        for _ in 0..50 {
            let call = wire.request("tools/call", json!({ "name": "ping" })).await;
            let ping = wire.next().await;
            assert!(used.insert(ping["id"].to_string()), "{ping}");
            wire.send(json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} })).await;
            wire.answer_to(call).await;
        }
    })
    .await;
}

/// P-RPC-12, P-RPC-2: an unreadable frame gets an error by its kind, and the next request is served.
#[tokio::test]
async fn an_unreadable_frame_is_answered_and_serving_continues() {
    everywhere(Needs::Answers, async |mut wire| {
        for (line, code) in [
            ("{bad", -32700),
            ("nonsense", -32700),
            ("5", -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"id":77,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":78,"method":"ping","params":[]}"#, -32600),
        ] {
            wire.line(line).await;
            assert_eq!(error_of(&wire.next().await).0, code, "{line}");
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// P-RPC-13, P-RPC-14, P-RPC-15: the envelope era uses the standard codes and its own three, and no others.
#[tokio::test]
async fn the_envelope_era_has_few_codes() {
    const KNOWN: [i64; 8] = [-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022];
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let mut codes = BTreeSet::new();
        for tool in ["fail", "panic", "unsayable", "extension", "input", "url-required", "absent", "elicit"] {
            codes.insert(error_of(&wire.tool(tool).await).0);
        }
        for method in ["no/such", "initialize", "ping", "tools/call", "test/list", "subscriptions/listen"] {
            codes.insert(wire.error(method, json!({ "cursor": 5 })).await.0);
        }
        let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1900-01-01" } });
        codes.insert(wire.error("tools/list", other).await.0);
        for line in ["{", "[]", r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#] {
            wire.line(line).await;
            codes.insert(error_of(&wire.next().await).0);
        }
        assert!(codes.len() >= 7, "{codes:?}");
        assert!(codes.iter().all(|code| KNOWN.contains(code)), "{codes:?}");
    })
    .await;
}

/// P-META-9: the client's declared identity does not change behaviour.
#[tokio::test]
async fn a_client_s_name_changes_nothing() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        for (method, params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "echo" })),
            ("tools/call", json!({ "name": "refuse" })),
        ] {
            let mut answers = BTreeSet::new();
            for client in [
                json!(null),
                json!({ "name": "a", "version": "" }),
                json!({ "name": "claude", "version": "9" }),
            ] {
                let mut params = params.clone();
                params["_meta"] = json!({ "io.modelcontextprotocol/clientInfo": client });
                let answer = wire.answer(method, params).await;
                answers.insert(json!([answer.get("result"), answer.get("error")]).to_string());
            }
            assert_eq!(answers.len(), 1, "{answers:?}");
        }
    })
    .await;
}

/// P-STDIO-9: while tools run, other requests are answered and cancellations take effect.
#[tokio::test]
async fn a_waiting_tool_delays_nothing() {
    everywhere(Needs::Cancelling, async |mut wire| {
        let mut waiting = Vec::new();
        for _ in 0..20 {
            waiting.push(wire.request("tools/call", json!({ "name": "wait" })).await);
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
        wire.until_waiting(waiting.len()).await;
        for id in &waiting {
            wire.notify("notifications/cancelled", json!({ "requestId": id })).await;
        }
        wire.end_with_cancelled(&waiting).await;
    })
    .await;
}

/// P-LTASK-1, P-TASK-14: without the capability a request for a task is ignored.
#[tokio::test]
async fn a_request_for_a_task_is_ignored() {
    everywhere(Needs::Answers, async |mut wire| {
        let result = wire.result("tools/call", json!({ "name": "echo", "task": { "ttl": 60_000 } })).await;
        assert_eq!(result["content"][0]["text"], "nothing");
        assert_eq!((result.get("task"), result.get("taskId")), (None, None));
    })
    .await;
    for link in Link::of(HANDSHAKE, Needs::Answers) {
        let mut wire = Wire::fixture(link).await;
        let opened = wire.result("initialize", crate::wire::initialize(HANDSHAKE, json!({}))).await;
        assert_eq!(opened["capabilities"].get("tasks"), None);
    }
}
