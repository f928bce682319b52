//! State beyond a single response: subscriptions to changes, and the request state that a client carries between rounds.

use duplexer_core::error::McpError;
use duplexer_server::request_state::RequestState;
use duplexer_server::subscriptions::MemoryBus;
use duplexer_server::{Context, Reply, Server};
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::Json;
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::resource::{ListResourcesResult, ReadResourceParams, ReadResourceResult};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, ToolDefinition};
use serde_json::{Value, json};

use crate::matrix::{Link, Needs};
use crate::wire::{Wire, error_of};
use crate::{ENVELOPE, HANDSHAKE};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// `change` publishes events, `rounds` requires a second call with its request state.
fn server() -> Server {
    Server::builder("remembering", "0")
        .request_state(RequestState::ephemeral())
        .subscriptions(MemoryBus::new())
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(vec![ToolDefinition::new("change", Json::object())]))
        })
        .on(methods::ResourcesList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListResourcesResult::new(vec![]))
        })
        .on(methods::ResourcesRead, |params: ReadResourceParams| async move {
            Ok::<_, McpError>(ReadResourceResult::text(params.uri, "text"))
        })
        .on(methods::ToolsCall, call)
        .build()
        .unwrap()
}

async fn call(cx: Context<()>, params: CallToolParams) -> Result<Reply<CallToolResult>, McpError> {
    if params.name == "change" {
        cx.notify_tools_changed().await;
        cx.notify_resource_updated("test://other").await;
        cx.notify_resource_updated("test://one").await;
        return Ok(Reply::Complete(CallToolResult::text("changed")));
    }
    Ok(match params.request_state {
        None => Reply::InputRequired(InputRequiredResult::resuming("the state")),
        Some(state) => Reply::Complete(CallToolResult::text(state)),
    })
}

async fn changed(wire: &mut Wire) {
    let id = wire.request("tools/call", json!({ "name": "change" })).await;
    wire.answer_to(id).await;
}

/// SUB-01, SUB-02, SUB-04, P-SUB-1, P-SUB-3, P-SUB-4, P-SUB-7: the acknowledgement comes first, then the requested
/// events, tagged.
#[tokio::test]
async fn a_listener_receives_what_it_requested() {
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wire = Wire::connect(link, server()).await;
        wire.open(ENVELOPE).await;
        let filter = json!({ "toolsListChanged": true, "promptsListChanged": true,
            "resourceSubscriptions": ["test://one"] });
        let id = wire.request("subscriptions/listen", json!({ "notifications": filter })).await;
        let acknowledged = wire.next().await;
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(
            acknowledged["params"],
            json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["test://one"] },
                "_meta": { SUBSCRIPTION: id } })
        );
        changed(&mut wire).await;
        let mut received = wire.take_buffered();
        while received.len() < 2 {
            received.push(wire.next().await);
        }
        let tagged = |frame: &Value| frame["params"]["_meta"][SUBSCRIPTION] == json!(id);
        assert!(received.iter().all(tagged), "{received:?}");
        let methods: Vec<_> = received.iter().map(|frame| frame["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["notifications/tools/list_changed", "notifications/resources/updated"]);
        assert_eq!(received[1]["params"]["uri"], "test://one");
    }
}

/// SUB-11 (deviation), P-RSC-5: in the handshake era a session is notified of the resources it has subscribed to.
#[tokio::test]
async fn a_session_is_notified_of_its_resources() {
    for link in Link::in_process(HANDSHAKE, Needs::Session) {
        let mut wire = Wire::connect(link, server()).await;
        wire.open(HANDSHAKE).await;
        assert_eq!(wire.result("resources/subscribe", json!({ "uri": "test://one" })).await, json!({}));
        changed(&mut wire).await;
        let mut received = wire.take_buffered();
        while !received.iter().any(|frame| frame["params"]["uri"] == "test://one") {
            received.push(wire.next().await);
        }
        assert!(received.iter().all(|frame| frame["params"]["uri"] != "test://other"), "{received:?}");
    }
}

/// RST-02, RST-03, MRTR-01, P-MRTR-8: a state returns unchanged; the client cannot read it, change it, or use it elsewhere.
#[tokio::test]
async fn a_request_state_travels_sealed() {
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wire = Wire::connect(link, server()).await;
        wire.open(ENVELOPE).await;
        let asked = wire.result("tools/call", json!({ "name": "rounds" })).await;
        assert_eq!(asked["resultType"], "input_required");
        let state = asked["requestState"].as_str().unwrap().to_owned();
        assert!(!state.contains("the state"), "{state}");
        let done = wire.result("tools/call", json!({ "name": "rounds", "requestState": state })).await;
        assert_eq!(done["content"][0]["text"], "the state");
        let refused = (
            -32602,
            "Invalid or expired requestState".to_owned(),
            json!({ "reason": "invalid_request_state" }),
        );
        for params in [
            json!({ "name": "rounds", "requestState": format!("{state}A") }),
            json!({ "name": "rounds", "requestState": "forged" }),
            json!({ "name": "other", "requestState": state }),
            json!({ "name": "rounds", "arguments": { "other": 1 }, "requestState": state }),
        ] {
            let id = wire.request("tools/call", params).await;
            assert_eq!(error_of(&wire.answer_to(id).await), refused);
        }
    }
}
