//! Requests and notifications of the server.

use duplexer_types::capabilities::{ElicitationCapability, SamplingCapability};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::logging::LoggingLevel;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::sampling::{Blocks, CreateMessageParams, CreateMessageResult, SamplingContent};
use serde_json::{Value, json};

use super::super::{ClientBuilder, ServerNotification};
use super::{Recorder, builder, envelope_session, handshake_session};
use duplexer_core::error::McpError;

fn sampling() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9})
}

fn form() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}})
}

fn url() -> Value {
    json!({"mode": "url", "message": "go", "url": "https://e.example", "elicitationId": "1"})
}

async fn model(params: CreateMessageParams) -> Result<CreateMessageResult, McpError> {
    let text = format!("{} of {}", params.messages.len(), params.max_tokens);
    Ok(CreateMessageResult::new(duplexer_types::annotations::Role::Assistant, text.as_str(), "m"))
}

/// CLT-06, P-ROOT-3: a request without a callback gets an error that names the feature.
#[tokio::test(start_paused = true)]
async fn a_request_without_a_callback_is_refused() {
    let (_client, mut server) = handshake_session(builder(), "2025-11-25").await;
    for (method, params, code, message) in [
        ("sampling/createMessage", sampling(), -32600, "Sampling not supported"),
        ("elicitation/create", form(), -32600, "Elicitation not supported"),
        ("roots/list", json!({}), -32601, "List roots not supported"),
    ] {
        let error = server.request(method, params).await;
        assert_eq!(error, json!({"code": code, "message": message}));
    }
}

/// CLT-06: the error for an unknown request, or one that the revision does not have, names its method.
#[tokio::test(start_paused = true)]
async fn an_unknown_request_is_answered_with_its_method() {
    let capable = || builder().on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    let (_client, mut server) = handshake_session(capable(), "2025-03-26").await;
    for method in ["acme/ask", "tools/list", "elicitation/create", "tasks/list"] {
        let error = server.request(method, form()).await;
        assert_eq!(error, json!({"code": -32601, "message": "Method not found", "data": method}));
    }
    let (_client, mut server) = envelope_session(capable()).await;
    assert_eq!(server.request("elicitation/create", form()).await["code"], -32601);
}

/// The client answers `ping` where the revision has it, with and without callbacks.
#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_in_the_handshake_era_only() {
    let (_client, mut server) = handshake_session(builder(), "2024-11-05").await;
    assert_eq!(server.request("ping", json!({})).await, json!({}));
    let (_client, mut server) = envelope_session(builder()).await;
    assert_eq!(server.request("ping", Value::Null).await["code"], -32601);
}

/// TYP-25: a single block is not wrapped in an array; where the revision has no array, several blocks are joined.
#[tokio::test(start_paused = true)]
async fn sampling_results_are_encoded_for_the_revision() {
    let (_client, mut server) = handshake_session(builder().on_sampling(model), "2025-11-25").await;
    let expected = json!({"role": "assistant", "content": {"type": "text", "text": "1 of 9"}, "model": "m"});
    assert_eq!(server.request("sampling/createMessage", sampling()).await, expected);

    let two = |_| async {
        let blocks = Blocks(vec![SamplingContent::text("a"), SamplingContent::text("b")]);
        Ok(CreateMessageResult::new(duplexer_types::annotations::Role::Assistant, blocks, "m"))
    };
    let (_client, mut server) = handshake_session(builder().on_sampling(two), "2025-06-18").await;
    let content = server.request("sampling/createMessage", sampling()).await["content"].take();
    assert_eq!(content, json!({"type": "text", "text": "a\nb"}));
}

/// P-SAM-1, F-11: sampling with tools requires the capability that is declared with the callback.
#[tokio::test(start_paused = true)]
async fn sampling_with_tools_needs_its_capability() {
    let mut params = sampling();
    params["tools"] = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let (_client, mut server) = handshake_session(builder().on_sampling(model), "2025-11-25").await;
    assert_eq!(server.request("sampling/createMessage", params.clone()).await["code"], -32602);

    let tools = SamplingCapability::new().tools(JsonObject::new());
    let capable = builder().on_sampling_with(tools, model);
    let (_client, mut server) = handshake_session(capable, "2025-11-25").await;
    assert_eq!(server.request("sampling/createMessage", params).await["model"], "m");
}

/// P-ELI-7, P-ELI-8: no mode means form; an undeclared mode is -32602.
#[tokio::test(start_paused = true)]
async fn elicitation_keeps_to_the_declared_modes() {
    let capable = || builder().on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    let forms = capable().elicitation_capability(ElicitationCapability::new());
    let urls = capable().elicitation_capability(ElicitationCapability::new().url(JsonObject::new()));
    let decline = json!({"action": "decline"});
    let check = async |builder: ClientBuilder, version: &str, params: Value, can: bool| {
        let (_client, mut server) = handshake_session(builder, version).await;
        let answer = server.request("elicitation/create", params).await;
        if can { assert_eq!(answer, decline) } else { assert_eq!(answer["code"], -32602, "{answer}") }
    };
    check(capable(), "2025-11-25", form(), true).await;
    check(capable(), "2025-11-25", url(), true).await;
    check(capable(), "2025-11-25", json!({"mode": "smoke", "message": "m"}), false).await;
    check(capable(), "2025-06-18", url(), false).await;
    check(forms.clone(), "2025-11-25", form(), true).await;
    check(forms, "2025-11-25", url(), false).await;
    check(urls, "2025-11-25", form(), false).await;
}

/// CLT-06, P-ROOT-1: an invalid result of a callback is not sent.
#[tokio::test(start_paused = true)]
async fn an_invalid_answer_of_a_callback_is_an_internal_error() {
    let roots = |uri: &'static str| {
        builder().on_roots(move || async move { Ok(ListRootsResult::new([Root::new(uri)])) })
    };
    let (_client, mut server) = handshake_session(roots("https://e.example"), "2025-11-25").await;
    let error = server.request("roots/list", json!({})).await;
    let message = "Client callback returned an invalid result";
    assert_eq!(error, json!({"code": -32603, "message": message}));
    let (_client, mut server) = handshake_session(roots("file:///w"), "2025-11-25").await;
    assert_eq!(server.request("roots/list", json!({})).await, json!({"roots": [{"uri": "file:///w"}]}));
}

/// P-SAM-5: an error object of a callback is sent verbatim; internal failures are not disclosed; invalid params do not
/// reach the callback.
#[tokio::test(start_paused = true)]
async fn errors_of_callbacks_are_sent_as_error_responses() {
    let capable = builder()
        .on_sampling(|_| async { Err(ErrorObject::new(ErrorCode(-1), "User rejected").into()) })
        .on_elicitation(|_| async { Err(McpError::internal("secret")) })
        .on_roots(|| async { panic!("secret") });
    let (_client, mut server) = handshake_session(capable, "2025-11-25").await;
    let rejected = server.request("sampling/createMessage", sampling()).await;
    assert_eq!(rejected, json!({"code": -1, "message": "User rejected"}));
    assert_eq!(server.request("sampling/createMessage", json!({})).await["code"], -32602);
    for (method, params) in [("elicitation/create", form()), ("roots/list", json!({}))] {
        assert_eq!(server.request(method, params).await["message"], "Internal server error");
    }
}

/// CLT-11: notifications are delivered in order; cancellations, progress and acknowledgements are consumed, malformed
/// notifications dropped.
#[tokio::test(start_paused = true)]
async fn notifications_are_delivered_in_wire_order_and_before_later_responses() {
    let (received, logs) = (Recorder::new(), Recorder::new());
    let builder = builder().on_notification(received.push()).on_log(logs.push());
    let (client, mut server) = handshake_session(builder, "2025-11-25").await;
    let (pong, ()) = tokio::join!(client.ping().into_future(), async {
        let ping = server.expect("ping").await;
        server.notify("notifications/message", json!({"level": "info", "data": [1]})).await;
        server.notify("notifications/message", json!({"level": "loud", "data": 1})).await;
        server.notify("notifications/tools/list_changed", Value::Null).await;
        server.notify("notifications/prompts/list_changed", json!({})).await;
        server.notify("notifications/resources/list_changed", json!({"_meta": {}})).await;
        server.notify("notifications/resources/updated", json!({"uri": "a:b"})).await;
        server.notify("notifications/resources/updated", json!({})).await;
        server.notify("notifications/elicitation/complete", json!({"elicitationId": "1"})).await;
        server.notify("notifications/cancelled", json!({"requestId": 99})).await;
        server.notify("notifications/progress", json!({"progressToken": 99, "progress": 1})).await;
        server.notify("acme/news", json!({"x": 1})).await;
        server.respond(&ping, json!({})).await;
    });
    pong.unwrap();
    let logged = logs.take();
    assert_eq!((logged.len(), logged[0].level), (1, LoggingLevel::Info));
    let received = received.take();
    assert_eq!(received[0], ServerNotification::Log(logged[0].clone()));
    assert_eq!(received[1], ServerNotification::ToolsListChanged);
    assert_eq!(received[2], ServerNotification::PromptsListChanged);
    assert_eq!(received[3], ServerNotification::ResourcesListChanged);
    assert!(matches!(&received[4], ServerNotification::ResourceUpdated(params) if params.uri == "a:b"));
    assert!(matches!(&received[5], ServerNotification::ElicitationComplete(_)));
    let params = Some(Json::parse(r#"{"x":1}"#).unwrap());
    assert_eq!(received[6..], [ServerNotification::Other { method: "acme/news".into(), params }]);
}

/// CLT-11: a notification that the revision does not have is unknown; an acknowledgement is consumed; a panic of the
/// callback does not end the connection.
#[tokio::test(start_paused = true)]
async fn notifications_of_another_revision_are_unknown() {
    let received = Recorder::new();
    let push = received.push();
    let (client, mut server) = envelope_session(builder().on_notification(move |notification| {
        let first = matches!(notification, ServerNotification::ToolsListChanged);
        push(notification);
        assert!(!first, "the callback panics");
    }))
    .await;
    let (listed, ()) = tokio::join!(client.list_tools().into_future(), async {
        let list = server.expect("tools/list").await;
        server.notify("notifications/tools/list_changed", json!({})).await;
        server.notify("notifications/subscriptions/acknowledged", json!({"notifications": {}})).await;
        server.notify("notifications/elicitation/complete", json!({"elicitationId": "1"})).await;
        server.respond(&list, json!({"resultType": "complete", "tools": []})).await;
    });
    listed.unwrap();
    let received = received.take();
    assert_eq!(received[0], ServerNotification::ToolsListChanged);
    let [ServerNotification::Other { method, .. }] = &received[1..] else { panic!("{received:?}") };
    assert_eq!(method, "notifications/elicitation/complete");
}

/// The client accepts batches only in the revision that has them.
#[tokio::test(start_paused = true)]
async fn batches_are_accepted_where_the_revision_has_them() {
    let batch = json!([{"jsonrpc": "2.0", "id": "q", "method": "ping"}]);
    let (_client, mut server) = handshake_session(builder(), "2025-03-26").await;
    server.send(batch.clone()).await;
    assert_eq!(server.next_message().await, Some(json!({"jsonrpc": "2.0", "id": "q", "result": {}})));
    let (_client, mut server) = handshake_session(builder(), "2025-06-18").await;
    server.send(batch).await;
    assert_eq!(server.next_message().await.unwrap()["error"]["code"], -32600);
}
