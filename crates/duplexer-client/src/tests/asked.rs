//! What the server asks and tells.

use duplexer_types::capabilities::{ElicitationCapability, SamplingCapability};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::logging::LoggingLevel;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::sampling::{Blocks, CreateMessageParams, CreateMessageResult, SamplingContent};
use serde_json::{Value, json};

use super::super::{ClientBuilder, ServerNotification};
use super::{Seen, in_envelope, in_handshake, options};
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
    let said = format!("{} of {}", params.messages.len(), params.max_tokens);
    Ok(CreateMessageResult::new(duplexer_types::annotations::Role::Assistant, said.as_str(), "m"))
}

/// CLT-06: without a callback the answer is a refusal that says so.
#[tokio::test(start_paused = true)]
async fn what_has_no_callback_is_refused() {
    let (_client, mut server) = in_handshake(options(), "2025-11-25").await;
    for (method, params, message) in [
        ("sampling/createMessage", sampling(), "Sampling not supported"),
        ("elicitation/create", form(), "Elicitation not supported"),
        ("roots/list", json!({}), "List roots not supported"),
    ] {
        let error = server.ask(method, params).await;
        assert_eq!(error, json!({"code": -32600, "message": message}));
    }
}

/// CLT-06: unknown requests, and those that the revision does not have, name their method.
#[tokio::test(start_paused = true)]
async fn an_unknown_request_is_answered_with_its_method() {
    let able = || options().on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    let (_client, mut server) = in_handshake(able(), "2025-03-26").await;
    for method in ["acme/ask", "tools/list", "elicitation/create", "tasks/list"] {
        let error = server.ask(method, form()).await;
        assert_eq!(error, json!({"code": -32601, "message": "Method not found", "data": method}));
    }
    let (_client, mut server) = in_envelope(able()).await;
    assert_eq!(server.ask("elicitation/create", form()).await["code"], -32601);
}

/// Somebody is there, in either era and with or without callbacks.
#[tokio::test(start_paused = true)]
async fn a_ping_is_always_answered() {
    let (_client, mut server) = in_handshake(options(), "2024-11-05").await;
    assert_eq!(server.ask("ping", json!({})).await, json!({}));
    let (_client, mut server) = in_envelope(options()).await;
    assert_eq!(server.ask("ping", Value::Null).await, json!({}));
}

/// TYP-25: one block stands alone; where there is only one, several become one.
#[tokio::test(start_paused = true)]
async fn the_model_answers_in_the_words_of_the_revision() {
    let (_client, mut server) = in_handshake(options().on_sampling(model), "2025-11-25").await;
    let said = json!({"role": "assistant", "content": {"type": "text", "text": "1 of 9"}, "model": "m"});
    assert_eq!(server.ask("sampling/createMessage", sampling()).await, said);

    let two = |_| async {
        let blocks = Blocks(vec![SamplingContent::text("a"), SamplingContent::text("b")]);
        Ok(CreateMessageResult::new(duplexer_types::annotations::Role::Assistant, blocks, "m"))
    };
    let (_client, mut server) = in_handshake(options().on_sampling(two), "2025-06-18").await;
    let content = server.ask("sampling/createMessage", sampling()).await["content"].take();
    assert_eq!(content, json!({"type": "text", "text": "a\nb"}));
}

/// P-SAM-1: tools are for clients that declared them.
#[tokio::test(start_paused = true)]
async fn sampling_with_tools_needs_its_capability() {
    let mut asked = sampling();
    asked["tools"] = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let (_client, mut server) = in_handshake(options().on_sampling(model), "2025-11-25").await;
    assert_eq!(server.ask("sampling/createMessage", asked.clone()).await["code"], -32602);

    let tools = SamplingCapability::new().tools(JsonObject::new());
    let able = options().on_sampling(model).sampling_capability(tools);
    let (_client, mut server) = in_handshake(able, "2025-11-25").await;
    assert_eq!(server.ask("sampling/createMessage", asked).await["model"], "m");
}

/// P-ELI-7, P-ELI-8: no mode means a form; what was not declared is -32602.
#[tokio::test(start_paused = true)]
async fn elicitation_keeps_to_the_declared_modes() {
    let able = || options().on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    let forms = able().elicitation_capability(ElicitationCapability::new());
    let urls = able().elicitation_capability(ElicitationCapability::new().url(JsonObject::new()));
    let decline = json!({"action": "decline"});
    let check = async |options: ClientBuilder, version: &str, params: Value, can: bool| {
        let (_client, mut server) = in_handshake(options, version).await;
        let answer = server.ask("elicitation/create", params).await;
        if can { assert_eq!(answer, decline) } else { assert_eq!(answer["code"], -32602, "{answer}") }
    };
    check(able(), "2025-11-25", form(), true).await;
    check(able(), "2025-11-25", url(), true).await;
    check(able(), "2025-11-25", json!({"mode": "smoke", "message": "m"}), false).await;
    check(able(), "2025-06-18", url(), false).await;
    check(forms.clone(), "2025-11-25", form(), true).await;
    check(forms, "2025-11-25", url(), false).await;
    check(urls, "2025-11-25", form(), false).await;
}

/// CLT-06, P-ROOT-1: what cannot be said, or may not be, is not said.
#[tokio::test(start_paused = true)]
async fn an_invalid_answer_of_a_callback_is_an_internal_error() {
    let roots = |uri: &'static str| {
        options().on_roots(move || async move { Ok(ListRootsResult::new([Root::new(uri)])) })
    };
    let (_client, mut server) = in_handshake(roots("https://e.example"), "2025-11-25").await;
    let error = server.ask("roots/list", json!({})).await;
    let message = "Client callback returned an invalid result";
    assert_eq!(error, json!({"code": -32603, "message": message}));
    let (_client, mut server) = in_handshake(roots("file:///w"), "2025-11-25").await;
    assert_eq!(server.ask("roots/list", json!({})).await, json!({"roots": [{"uri": "file:///w"}]}));
}

/// P-SAM-5: a callback's own error reaches the server as it is; its failures do not; bad params do not reach it.
#[tokio::test(start_paused = true)]
async fn errors_of_callbacks_are_answers() {
    let able = options()
        .on_sampling(|_| async { Err(ErrorObject::new(ErrorCode(-1), "User rejected").into()) })
        .on_elicitation(|_| async { Err(McpError::internal("secret")) })
        .on_roots(|| async { panic!("secret") });
    let (_client, mut server) = in_handshake(able, "2025-11-25").await;
    let rejected = server.ask("sampling/createMessage", sampling()).await;
    assert_eq!(rejected, json!({"code": -1, "message": "User rejected"}));
    assert_eq!(server.ask("sampling/createMessage", json!({})).await["code"], -32602);
    for (method, params) in [("elicitation/create", form()), ("roots/list", json!({}))] {
        assert_eq!(server.ask(method, params).await["message"], "Internal server error");
    }
}

/// CLT-11: in order; signals and acknowledgements are nobody's business; the malformed is dropped.
#[tokio::test(start_paused = true)]
async fn notifications_come_in_the_order_of_the_wire_and_before_what_follows_them() {
    let (told, logs) = (Seen::new(), Seen::new());
    let options = options().on_notification(told.push()).on_log(logs.push());
    let (client, mut server) = in_handshake(options, "2025-11-25").await;
    let (pong, ()) = tokio::join!(client.ping().into_future(), async {
        let ping = server.next("ping").await;
        server.tell("notifications/message", json!({"level": "info", "data": [1]})).await;
        server.tell("notifications/message", json!({"level": "loud", "data": 1})).await;
        server.tell("notifications/tools/list_changed", Value::Null).await;
        server.tell("notifications/prompts/list_changed", json!({})).await;
        server.tell("notifications/resources/list_changed", json!({"_meta": {}})).await;
        server.tell("notifications/resources/updated", json!({"uri": "a:b"})).await;
        server.tell("notifications/resources/updated", json!({})).await;
        server.tell("notifications/elicitation/complete", json!({"elicitationId": "1"})).await;
        server.tell("notifications/cancelled", json!({"requestId": 99})).await;
        server.tell("notifications/progress", json!({"progressToken": 99, "progress": 1})).await;
        server.tell("acme/news", json!({"x": 1})).await;
        server.answer(&ping, json!({})).await;
    });
    pong.unwrap();
    let logged = logs.take();
    assert_eq!((logged.len(), logged[0].level), (1, LoggingLevel::Info));
    let told = told.take();
    assert_eq!(told[0], ServerNotification::Log(logged[0].clone()));
    assert_eq!(told[1], ServerNotification::ToolsListChanged);
    assert_eq!(told[2], ServerNotification::PromptsListChanged);
    assert_eq!(told[3], ServerNotification::ResourcesListChanged);
    assert!(matches!(&told[4], ServerNotification::ResourceUpdated(params) if params.uri == "a:b"));
    assert!(matches!(&told[5], ServerNotification::ElicitationComplete(_)));
    let params = Some(Json::parse(r#"{"x":1}"#).unwrap());
    assert_eq!(told[6..], [ServerNotification::Other { method: "acme/news".into(), params }]);
}

/// CLT-11: what the revision does not have is unknown; an acknowledgement is consumed; a panic harms nobody.
#[tokio::test(start_paused = true)]
async fn notifications_of_another_revision_are_unknown() {
    let told = Seen::new();
    let push = told.push();
    let (client, mut server) = in_envelope(options().on_notification(move |notification| {
        let first = matches!(notification, ServerNotification::ToolsListChanged);
        push(notification);
        assert!(!first, "a bug of the host");
    }))
    .await;
    let (listed, ()) = tokio::join!(client.list_tools().into_future(), async {
        let list = server.next("tools/list").await;
        server.tell("notifications/tools/list_changed", json!({})).await;
        server.tell("notifications/subscriptions/acknowledged", json!({"notifications": {}})).await;
        server.tell("notifications/elicitation/complete", json!({"elicitationId": "1"})).await;
        server.answer(&list, json!({"resultType": "complete", "tools": []})).await;
    });
    listed.unwrap();
    let told = told.take();
    assert_eq!(told[0], ServerNotification::ToolsListChanged);
    let [ServerNotification::Other { method, .. }] = &told[1..] else { panic!("{told:?}") };
    assert_eq!(method, "notifications/elicitation/complete");
}

/// Arrays of messages are frames where the revision has them, and nowhere else.
#[tokio::test(start_paused = true)]
async fn batches_are_taken_apart_where_they_exist() {
    let batch = json!([{"jsonrpc": "2.0", "id": "q", "method": "ping"}]);
    let (_client, mut server) = in_handshake(options(), "2025-03-26").await;
    server.send(batch.clone()).await;
    assert_eq!(server.maybe_next().await, Some(json!({"jsonrpc": "2.0", "id": "q", "result": {}})));
    let (_client, mut server) = in_handshake(options(), "2025-06-18").await;
    server.send(batch).await;
    assert_eq!(server.maybe_next().await.unwrap()["error"]["code"], -32600);
}
