//! Input rounds.

use duplexer_types::elicitation::{ElicitParams, ElicitResult};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::ToolsCall;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::tool::CallToolResult;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::{Call, Client, ClientError};
use super::{ClientBuilder, ScriptedServer, builder, envelope_session};
use duplexer_core::error::McpError;

fn capable() -> ClientBuilder {
    builder()
        .on_elicitation(async |params| match params {
            ElicitParams::Form(form) => {
                let answer = Json::from(form.message.as_str());
                Ok(ElicitResult::accept(JsonObject::new().with("echo", answer)))
            }
            _ => Err(McpError::new(ErrorCode(-1), "the user refuses")),
        })
        .on_roots(async || Ok(ListRootsResult::new(vec![Root::new("file:///a")])))
}

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"echo": {"type": "string"}}});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

async fn rounds(server: &mut ScriptedServer, answers: Vec<Value>) -> Vec<Value> {
    let mut seen = Vec::new();
    for answer in answers {
        let request = server.expect("tools/call").await;
        server.respond(&request, answer).await;
        seen.push(request);
    }
    seen
}

fn call(client: &Client) -> Call<ToolsCall> {
    client.call_tool("t", json!({"n": 1}))
}

fn done() -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})
}

fn text(result: &CallToolResult) -> Option<&str> {
    result.content[0].as_text()
}

/// CLT-08, P-MRTR-16, P-MRTR-17: a retry has a new id, the same params, responses under the same keys, and the state byte
/// by byte.
#[tokio::test(start_paused = true)]
async fn input_requests_are_answered_and_the_request_is_sent_again() {
    let (client, mut server) = envelope_session(capable()).await;
    let state = "st\u{e4}te \" \\ \u{1f980}";
    let questions = json!({"b": form("two"), "a": {"method": "roots/list"}});
    let first = json!({"resultType": "input_required", "inputRequests": questions, "requestState": state});
    let second = json!({"resultType": "input_required", "inputRequests": {"c": form("three")}});
    let (result, seen) = tokio::join!(call(&client), rounds(&mut server, vec![first, second, done()]));
    assert_eq!(text(&result.unwrap()), Some("done"));
    let params: Vec<_> = seen.iter().map(|request| &request["params"]).collect();
    assert!(params[0].get("inputResponses").is_none() && params[0].get("requestState").is_none());
    assert_eq!(
        params[1]["inputResponses"],
        json!({"b": {"action": "accept", "content": {"echo": "two"}}, "a": {"roots": [{"uri": "file:///a"}]}})
    );
    assert_eq!(params[1]["requestState"], state);
    assert_eq!(params[2]["inputResponses"], json!({"c": {"action": "accept", "content": {"echo": "three"}}}));
    assert!(params[2].get("requestState").is_none(), "a state belongs to one retry");
    for request in &seen {
        assert_eq!(request["params"]["name"], "t");
        assert_eq!(request["params"]["arguments"], json!({"n": 1}));
        assert_eq!(request["params"]["_meta"], params[0]["_meta"]);
    }
    let ids: std::collections::HashSet<_> = seen.iter().map(|request| request["id"].to_string()).collect();
    assert_eq!(ids.len(), 3);
}

/// CLT-08, P-MRTR-19: retries without input requests are delayed, and their number is limited.
#[tokio::test(start_paused = true)]
async fn retries_without_input_requests_are_delayed_and_limited_to_ten() {
    let (client, mut server) = envelope_session(capable()).await;
    let stall = || json!({"resultType": "input_required", "requestState": "later"});
    let start = Instant::now();
    let answers = (0..11).map(|_| stall()).collect();
    let (result, seen) = tokio::join!(call(&client), rounds(&mut server, answers));
    let error = result.unwrap_err();
    assert!(matches!(error, ClientError::TooManyRounds { rounds: 10, .. }), "{error}");
    assert_eq!(seen.len(), 11);
    assert!(seen[1]["params"].get("inputResponses").is_none());
    assert_eq!(start.elapsed().as_millis(), 50 + 100 + 200 + 7 * 250);
}

/// CLT-08: the first input request that fails ends the call; the others are dropped.
#[tokio::test(start_paused = true)]
async fn an_input_request_that_fails_ends_the_call() {
    let (client, mut server) = envelope_session(capable()).await;
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "https://a"}});
    for (question, cause) in [
        (url, "the user refuses"),
        (
            json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}),
            "Sampling not supported",
        ),
        (json!({"method": "x/y"}), "internal error"),
    ] {
        let asked =
            json!({"resultType": "input_required", "inputRequests": {"k": form("m"), "bad": question}});
        let (result, _) = tokio::join!(call(&client), rounds(&mut server, vec![asked]));
        let Err(ClientError::Unanswered { key, cause: why }) = result else { panic!("{result:?}") };
        assert_eq!((key.as_str(), why.to_string().as_str()), ("bad", cause));
    }
}

/// P-MRTR-18: concurrent calls do not get each other's responses or state.
#[tokio::test(start_paused = true)]
async fn concurrent_calls_keep_their_states_apart() {
    let (client, mut server) = envelope_session(capable()).await;
    let plain = async { client.call_tool("plain", ()).await };
    let asked = async { client.call_tool("asked", ()).await };
    let script = async {
        for _ in 0..3 {
            let request = server.expect("tools/call").await;
            let retried = request["params"].get("requestState").is_some();
            assert_eq!(retried, request["params"]["name"] == "asked" && retried);
            let result = if request["params"]["name"] == "asked" && !retried {
                json!({"resultType": "input_required", "inputRequests": {"a": form("x")}, "requestState": "s"})
            } else {
                assert!(retried || request["params"].get("inputResponses").is_none());
                done()
            };
            server.respond(&request, result).await;
        }
    };
    let (plain, asked, ()) = tokio::join!(plain, asked, script);
    assert!(plain.is_ok() && asked.is_ok());
}
