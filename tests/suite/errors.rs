//! Reasons to reject a request, and their precedence.

use serde_json::{Value, json};

use crate::matrix::{Link, Needs, everywhere, over_every_link};
use crate::wire::Wire;
use crate::{ENVELOPE, HANDSHAKE};

fn not_found(method: &str) -> (i64, String, Value) {
    (-32601, "Method not found".to_owned(), json!(method))
}

fn invalid() -> (i64, String, Value) {
    (-32602, "Invalid request parameters".to_owned(), json!(""))
}

/// RUN-04, P-RPC-19, P-TASK-14: a method that the revision does not define is not found, even with a registered handler.
#[tokio::test]
async fn a_method_of_another_revision_is_not_found() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        for method in ["server/discover", "subscriptions/listen", "tasks/update"] {
            assert_eq!(wire.error(method, json!({})).await, not_found(method));
        }
    })
    .await;
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        for method in ["ping", "logging/setLevel", "resources/subscribe", "tasks/list", "tasks/result"] {
            assert_eq!(wire.error(method, json!({})).await, not_found(method));
        }
    })
    .await;
}

/// RUN-03, RUN-04, RUN-05, RUN-06: existence, then params, then a handler.
#[tokio::test]
async fn the_first_reason_is_reported() {
    everywhere(Needs::Answers, async |mut wire| {
        assert_eq!(wire.error("no/such", json!({})).await, not_found("no/such"));
        // A method that servers send to clients is not served.
        assert_eq!(
            wire.error("sampling/createMessage", json!({})).await,
            not_found("sampling/createMessage")
        );
        assert_eq!(
            wire.error("resources/read", json!({ "uri": "a://b" })).await,
            not_found("resources/read")
        );
        assert_eq!(wire.error("resources/read", json!({ "uri": 5 })).await, invalid());
        assert_eq!(wire.error("tools/call", json!({})).await, invalid());
        assert_eq!(wire.error("tools/call", json!({ "name": "echo", "arguments": [] })).await, invalid());
        assert_eq!(wire.error("prompts/list", json!({ "cursor": 5 })).await, invalid());
    })
    .await;
}

/// RUN-05, RUN-06: the same before the handshake. A request that would be served says what is missing.
#[tokio::test]
async fn before_the_handshake_too_the_first_reason_is_reported() {
    let mut wire = Wire::fixture(Link::Memory).await;
    assert_eq!(wire.error("no/such", json!({})).await, not_found("no/such"));
    assert_eq!(wire.error("resources/list", json!({})).await, not_found("resources/list"));
    assert_eq!(wire.error("resources/read", json!({})).await, invalid());
    let (code, text, data) = wire.error("prompts/list", json!({})).await;
    assert_eq!((code, data), (-32602, Value::Null));
    assert!(text.ends_with("envelope keys; or begin with `initialize`"), "{text}");
}

/// P-RPC-12: a number beyond the range of a double is valid JSON. A request is refused under its id if a handler decodes
/// the number, and served otherwise.
#[tokio::test]
async fn a_number_of_any_size_is_answered_under_its_id() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        wire.line(r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"other":1e400}}"#).await;
        assert_eq!(wire.answer_to("a").await["result"]["tools"][0]["name"], "echo");
        wire.line(r#"{"jsonrpc":"2.0","id":"b","method":"test/echo","params":{"other":-1e400}}"#).await;
        assert_eq!(wire.answer_to("b").await["error"]["code"], -32602);
    })
    .await;
}

/// RUN-04: the name of a notification is not a request method, and vice versa.
#[tokio::test]
async fn a_notification_with_an_id_is_an_unknown_method() {
    everywhere(Needs::Answers, async |mut wire| {
        for method in ["notifications/cancelled", "notifications/initialized", "notifications/progress"] {
            assert_eq!(wire.error(method, json!({})).await, not_found(method));
        }
    })
    .await;
}

/// RUN-08, TYP-01: missing params count as an empty object.
#[tokio::test]
async fn absent_params_are_an_empty_object() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        for params in ["", r#","params":null"#, r#","params":{}"#] {
            wire.line(&format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/list"{params}}}"#)).await;
            assert_eq!(wire.answer_to("a").await["result"]["tools"][0]["name"], "echo");
            wire.line(&format!(r#"{{"jsonrpc":"2.0","id":"b","method":"test/echo"{params}}}"#)).await;
            assert_eq!(wire.answer_to("b").await["result"], json!({}));
        }
    })
    .await;
}

/// RUN-19, DISP-32: an unmapped failure reveals no detail and ends only its request.
#[tokio::test]
async fn a_failure_is_an_answer_without_detail() {
    everywhere(Needs::Answers, async |mut wire| {
        for tool in ["fail", "panic"] {
            let refused = wire.error("tools/call", json!({ "name": tool })).await;
            assert_eq!(refused, (-32603, "Internal server error".to_owned(), Value::Null));
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
        assert!(!wire.transcript().contains("secret"));
    })
    .await;
}

/// RUN-12, TYP-27: an error meant for the peer reaches it verbatim.
#[tokio::test]
async fn a_deliberate_error_reaches_the_peer() {
    everywhere(Needs::Answers, async |mut wire| {
        let refused = wire.error("tools/call", json!({ "name": "refuse" })).await;
        assert_eq!(refused, (7, "refused".to_owned(), json!({ "why": 1 })));
    })
    .await;
}

/// TYP-18, P-LOG-4: the envelope checks verify that an envelope is present, params decoding verifies its shape.
#[tokio::test]
async fn the_members_of_an_envelope_must_be_well_formed() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        for (name, value) in [
            ("clientCapabilities", json!([])),
            ("clientCapabilities", json!({ "roots": 5 })),
            ("clientInfo", json!({ "name": "c" })),
            ("clientInfo", json!("c")),
            ("logLevel", json!("loud")),
        ] {
            assert_eq!(wire.error("tools/list", json!({ "_meta": { key(name): value } })).await, invalid());
        }
        let served = json!({ "_meta": { key("clientInfo"): null, "com.example/other": [1] } });
        assert!(wire.answer("tools/list", served).await.get("result").is_some());
    })
    .await;
}

/// EXT-03: a custom method has its revisions; elsewhere there is no such method.
#[tokio::test]
async fn a_custom_method_is_served_in_its_revisions_only() {
    everywhere(Needs::Answers, async |mut wire| {
        assert_eq!(wire.error("test/early", json!({})).await, not_found("test/early"));
    })
    .await;
    over_every_link("2025-03-26", Needs::Answers, async |mut wire| {
        assert_eq!(wire.result("test/early", json!({})).await, json!({}));
    })
    .await;
}

/// EXT-05, P-MRTR-6, P-EXT-2, P-EXT-3: the error for a client without the extension names what it must declare.
#[tokio::test]
async fn a_required_extension_must_be_declared() {
    everywhere(Needs::Answers, async |mut wire| {
        let text = "Client did not declare required extension 'com.example/x'";
        let data = json!({ "requiredCapabilities": { "extensions": { "com.example/x": {} } } });
        let refused = wire.error("tools/call", json!({ "name": "extension" })).await;
        assert_eq!(refused, (-32021, text.to_owned(), data));
    })
    .await;
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let declared = json!({ "extensions": { "com.example/x": {} } });
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": declared });
        assert_eq!(wire.tool_text("extension", meta).await, "declared");
        let forgotten = wire.error("tools/call", json!({ "name": "extension" })).await;
        assert_eq!(forgotten.0, -32021, "the next request does not declare it");
    })
    .await;
}
