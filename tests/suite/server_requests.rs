//! Requests and notifications that a server sends to its client.

use serde_json::{Value, json};

use crate::matrix::{Link, Needs, everywhere, over_every_link};
use crate::wire::{Wire, error_of};
use crate::{ENVELOPE, HANDSHAKE};

fn no_back_channel(method: &str) -> (i64, String, Value) {
    let text = format!(
        "Cannot send '{method}': this transport context has no back-channel for server-initiated requests."
    );
    (-32600, text, Value::Null)
}

/// Calls a tool that sends a request, checks that request, answers it, and returns the tool's text.
async fn asked(wire: &mut Wire, tool: &str, question: (&str, Value), answer: Value) -> String {
    let id = wire.request("tools/call", json!({ "name": tool })).await;
    let asked = wire.next().await;
    assert_eq!((&asked["method"], &asked["params"]), (&json!(question.0), &question.1));
    wire.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let answer = wire.answer_to(id).await;
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// CONN-10, CONN-14, ELI-03, ELI-04: every server request of the handshake era, and the effect of its response.
#[tokio::test]
async fn a_handshake_client_is_asked() {
    for link in Link::of(HANDSHAKE, Needs::ServerRequests) {
        let mut wire = Wire::fixture(link).await;
        let capabilities = json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {}, "url": {} } });
        wire.open_as(HANDSHAKE, capabilities).await;
        assert_eq!(asked(&mut wire, "ping", ("ping", json!({})), json!({})).await, "pong");
        let roots = json!({ "roots": [{ "uri": "file:///a" }] });
        assert_eq!(asked(&mut wire, "roots", ("roots/list", json!({})), roots).await, "1");
        let form = json!({
            "mode": "form", "message": "Which?",
            "requestedSchema": { "type": "object", "properties": { "deep": { "type": "object" } } },
        });
        let content = json!({ "action": "accept", "content": { "deep": { "un": "checked" } } });
        assert_eq!(asked(&mut wire, "elicit", ("elicitation/create", form), content).await, "1");
        let url = json!({
            "mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "e-1",
        });
        let outcome =
            asked(&mut wire, "elicit-url", ("elicitation/create", url), json!({ "action": "decline" })).await;
        assert_eq!(outcome, "Decline");
        let question = json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 10,
        });
        let said = json!({ "role": "assistant", "content": { "type": "text", "text": "ho" }, "model": "m" });
        assert_eq!(asked(&mut wire, "sample", ("sampling/createMessage", question), said).await, "m");
    }
}

/// CONN-11: a response that does not match its request is -32602 if the handler propagates the error.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_invalid() {
    for link in Link::of(HANDSHAKE, Needs::Session) {
        let mut wire = Wire::fixture(link).await;
        wire.open_as(HANDSHAKE, json!({ "roots": {} })).await;
        let id = wire.request("tools/call", json!({ "name": "roots" })).await;
        let question = wire.next().await["id"].clone();
        wire.send(json!({ "jsonrpc": "2.0", "id": question, "result": { "roots": 5 } })).await;
        let refused = error_of(&wire.answer_to(id).await);
        assert_eq!(refused, (-32602, "Invalid request parameters".to_owned(), json!("")));
        // An error response of the client becomes the tool's error, unless the tool handles it.
        let id = wire.request("tools/call", json!({ "name": "roots" })).await;
        let question = wire.next().await["id"].clone();
        let error = json!({ "code": -32601, "message": "no roots" });
        wire.send(json!({ "jsonrpc": "2.0", "id": question, "error": error })).await;
        assert_eq!(error_of(&wire.answer_to(id).await), (-32601, "no roots".to_owned(), Value::Null));
    }
}

/// P-LEG-5, P-ELI-2: the server sends a handshake client only the requests and modes that it has declared.
#[tokio::test]
async fn a_client_is_asked_only_what_it_has_declared() {
    for link in Link::of(HANDSHAKE, Needs::ServerRequests) {
        for (capabilities, tool, needed) in [
            (json!({}), "roots", json!({ "roots": {} })),
            (json!({}), "sample", json!({ "sampling": {} })),
            (json!({}), "elicit", json!({ "elicitation": { "form": {} } })),
            (json!({ "elicitation": {} }), "elicit-url", json!({ "elicitation": { "url": {} } })),
            (json!({ "elicitation": { "url": {} } }), "elicit", json!({ "elicitation": { "form": {} } })),
        ] {
            let mut wire = Wire::fixture(link).await;
            wire.open_as(HANDSHAKE, capabilities).await;
            let (code, text, data) = wire.error("tools/call", json!({ "name": tool })).await;
            assert_eq!((code, data), (-32021, json!({ "requiredCapabilities": needed })));
            assert!(text.starts_with("Client did not declare the capability required by '"), "{text}");
            assert!(wire.take_buffered().is_empty(), "{tool}");
        }
    }
}

/// CONN-12, P-SAM-1: tools only for clients that have declared support for them; the server sends nothing to others.
#[tokio::test]
async fn sampling_with_tools_needs_their_capability() {
    for link in Link::of(HANDSHAKE, Needs::ServerRequests) {
        let mut wire = Wire::fixture(link).await;
        wire.open_as(HANDSHAKE, json!({ "sampling": {} })).await;
        let refused = wire.error("tools/call", json!({ "name": "sample-tools" })).await;
        assert_eq!((refused.0, &*refused.1), (-32602, "Client does not support sampling tools capability"));
        assert!(wire.take_buffered().is_empty());
        let mut wire = Wire::fixture(link).await;
        wire.open_as(HANDSHAKE, json!({ "sampling": { "tools": {} } })).await;
        wire.request("tools/call", json!({ "name": "sample-tools" })).await;
        assert_eq!(wire.next().await["method"], "sampling/createMessage");
    }
}

/// TYP-13: the server does not send requests that the revision does not define.
#[tokio::test]
async fn an_older_revision_is_not_asked_what_it_does_not_have() {
    over_every_link("2025-03-26", Needs::ServerRequests, async |mut wire| {
        let (code, text, _) = wire.error("tools/call", json!({ "name": "elicit" })).await;
        assert_eq!(code, -32601);
        assert_eq!(text, "Cannot send 'elicitation/create': revision 2025-03-26 does not have it");
        assert!(wire.take_buffered().is_empty());
    })
    .await;
}

/// ERA-07, CONN-06, P-RPC-17: in the envelope era the server sends no requests, neither within a client request nor
/// outside one.
#[tokio::test]
async fn an_envelope_client_is_never_asked() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        for (tool, method) in [
            ("ping", "ping"),
            ("roots", "roots/list"),
            ("elicit", "elicitation/create"),
            ("sample", "sampling/createMessage"),
        ] {
            assert_eq!(wire.error("tools/call", json!({ "name": tool })).await, no_back_channel(method));
        }
        assert!(wire.take_buffered().is_empty());
    })
    .await;
}

/// ELI-05, TYP-28, P-RPC-14, P-ELI-11: a tool that requires the user to open a URL first fails with the error code for
/// it, in the revision that defines the code.
#[tokio::test]
async fn a_url_to_be_opened_first_is_an_error_of_its_own() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let (code, text, data) = wire.error("tools/call", json!({ "name": "url-required" })).await;
        assert_eq!((code, &*text), (-32042, "URL elicitation required"));
        assert_eq!(data["elicitations"][0]["elicitationId"], "e-1");
    })
    .await;
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let failed = (-32603, "URL elicitation required".to_owned(), Value::Null);
        assert_eq!(wire.error("tools/call", json!({ "name": "url-required" })).await, failed);
    })
    .await;
}

/// DISP-36, ERA-07, P-PROG-1, P-PROG-4: progress goes to the request that asked for it, with the token's own JSON type.
#[tokio::test]
async fn progress_is_reported_to_the_request_that_asked() {
    everywhere(Needs::Notifications, async |mut wire| {
        wire.tool_text("progress", json!({})).await;
        assert!(wire.take_buffered().is_empty());
        for token in [json!(7), json!("7")] {
            wire.tool_text("progress", json!({ "progressToken": token })).await;
            let reports: Vec<_> = wire.take_buffered().iter().map(|frame| frame["params"].clone()).collect();
            let expected = [
                json!({ "progressToken": token, "progress": 1, "total": 2 }),
                json!({ "progressToken": token, "progress": 1.5, "message": "nearly" }),
            ];
            assert_eq!(reports, expected);
        }
    })
    .await;
}

/// Compares received values. Over HTTP, notifications outside a request have no order relative to those of the request.
fn assert_received<'a>(wire: &Wire, mut received: Vec<&'a str>, expected: &[&'a str]) {
    let mut expected = expected.to_vec();
    if wire.link().is_http() {
        received.sort_unstable();
        expected.sort_unstable();
    }
    assert_eq!(received, expected);
}

fn levels(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["params"]["level"].as_str().unwrap()).collect()
}

/// CONN-09, P-LOG-5: a handshake client gets every log message until it sets a minimum level.
#[tokio::test]
async fn a_handshake_client_sets_its_level_once() {
    over_every_link(HANDSHAKE, Needs::ServerRequests, async |mut wire| {
        wire.tool("log").await;
        let frames = wire.received(3).await;
        assert_received(&wire, levels(&frames), &["info", "error", "critical"]);
        let expected = json!({ "level": "info", "logger": "fixture", "data": { "at": "request" } });
        assert!(frames.iter().any(|frame| frame["params"] == expected), "{frames:?}");
        assert_eq!(wire.result("logging/setLevel", json!({ "level": "error" })).await, json!({}));
        wire.tool("log").await;
        let frames = wire.received(2).await;
        assert_received(&wire, levels(&frames), &["error", "critical"]);
        assert_eq!(wire.error("logging/setLevel", json!({ "level": "loud" })).await.0, -32602);
    })
    .await;
}

/// CONN-09, P-LOG-2, P-LOG-3: in the envelope era each request sets its own level, and nothing is logged outside a request.
#[tokio::test]
async fn an_envelope_request_asks_for_its_own_messages() {
    over_every_link(ENVELOPE, Needs::Notifications, async |mut wire| {
        wire.tool("log").await;
        assert!(wire.take_buffered().is_empty());
        for (level, expected) in [("debug", &["info", "error"][..]), ("error", &["error"]), ("alert", &[])] {
            wire.tool_text("log", json!({ "io.modelcontextprotocol/logLevel": level })).await;
            assert_eq!(levels(&wire.take_buffered()), expected);
        }
        wire.tool("log").await;
        assert!(wire.take_buffered().is_empty());
    })
    .await;
}

/// CONN-07, CONN-10, ELI-03, P-ELI-11: change notifications are sent on a handshake connection, and never on an
/// envelope connection.
#[tokio::test]
async fn changes_are_not_sent_on_the_shared_envelope_channel() {
    over_every_link(HANDSHAKE, Needs::ServerRequests, async |mut wire| {
        wire.tool("changes").await;
        let received = wire.received(6).await;
        let received = received.iter().map(|frame| frame["method"].as_str().unwrap()).collect();
        let expected = [
            "notifications/tools/list_changed",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/elicitation/complete",
            "notifications/tools/list_changed",
        ];
        assert_received(&wire, received, &expected);
    })
    .await;
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        wire.tool("changes").await;
        assert!(wire.take_buffered().is_empty());
    })
    .await;
    over_every_link("2025-06-18", Needs::ServerRequests, async |mut wire| {
        wire.tool("changes").await;
        let mut received = wire.received(5).await;
        let (rest, _) = wire.finish().await;
        received.extend(rest);
        assert!(
            received.len() == 5
                && received.iter().all(|received| received["method"] != "notifications/elicitation/complete")
        );
    })
    .await;
}
