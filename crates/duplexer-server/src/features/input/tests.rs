//! Asking for input in results: the rules, and whole rounds on the wire.

use duplexer_types::elicitation::{BooleanSchema, ElicitParams, FormSchema, PrimitiveSchema};
use duplexer_types::input::InputResponse;
use duplexer_types::json::Json;
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::{GetPromptParams, GetPromptResult};
use duplexer_types::resource::{ReadResourceParams, ReadResourceResult};
use duplexer_types::sampling::{CreateMessageParams, SamplingMessage};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult};
use duplexer_types::wire::{CacheScope, Freshness};
use serde_json::{Value, json};

use super::*;
use crate::features::subscriptions::tests::wire::{Over, error};
use crate::kernel::context::Context;
use crate::kernel::handler::Reply;
use crate::middleware::Next;
use crate::registry::{RunningServer, Server};
use duplexer_core::dispatch::Message;

fn form() -> InputRequest {
    ElicitParams::form(
        "ok?",
        FormSchema::new(JsonObject::new().with("ok", PrimitiveSchema::Boolean(BooleanSchema::new()))),
    )
    .into()
}

fn url() -> InputRequest {
    ElicitParams::url("go", "https://example.com").into()
}

fn sample() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::user("hello")], 5)
}

fn asked(requests: Vec<InputRequest>) -> Outcome {
    let named = requests.into_iter().enumerate().map(|(index, request)| (index.to_string(), request));
    Outcome::of(InputRequiredResult::asking(named))
}

fn checked(outcome: &Outcome, capabilities: &str) -> Result<(), (i64, String, Option<String>)> {
    let client = ClientProfile::new(None, Some(serde_json::from_str(capabilities).unwrap()));
    let version = ProtocolVersion::LATEST_ENVELOPE;
    check(outcome, version, &Connection::ready(version, client)).map_err(|error| {
        let error = error.to_wire("tools/call");
        (error.code.0, error.message.into_owned(), error.data.map(|data| data.as_str().to_owned()))
    })
}

/// MRTR-12, P-MRTR-4, P-MRTR-5, P-MRTR-6: kinds and modes as declared in this request, or -32021 and what is missing.
#[test]
fn only_what_the_client_declared_is_asked_for() {
    let check = |requests: Vec<InputRequest>, has: &str, missing: Option<(&str, &str)>| {
        let expected = missing.map_or(Ok(()), |(name, data)| {
            let text = format!("Client did not declare the {name} capability");
            Err((-32021, text, Some(format!(r#"{{"requiredCapabilities":{data}}}"#))))
        });
        assert_eq!(checked(&asked(requests.clone()), has), expected, "{requests:?} {has}");
    };
    let tools = || InputRequest::from(sample().tools(Vec::new()));
    check(vec![form(), url()], r#"{"elicitation":{"form":{},"url":{}}}"#, None);
    check(vec![form()], r#"{"elicitation":{}}"#, None);
    let no_form = Some(("form elicitation", r#"{"elicitation":{"form":{}}}"#));
    check(vec![form()], r#"{"elicitation":{"url":{}}}"#, no_form);
    check(vec![form()], r#"{"sampling":{}}"#, no_form);
    check(vec![url()], r#"{"elicitation":{}}"#, Some(("URL elicitation", r#"{"elicitation":{"url":{}}}"#)));
    check(vec![sample().into()], "{}", Some(("sampling", r#"{"sampling":{}}"#)));
    check(vec![sample().into()], r#"{"sampling":{}}"#, None);
    check(vec![tools()], r#"{"sampling":{}}"#, Some(("sampling.tools", r#"{"sampling":{"tools":{}}}"#)));
    check(vec![tools()], r#"{"sampling":{"tools":{}}}"#, None);
    check(vec![InputRequest::ListRoots], "{}", Some(("roots", r#"{"roots":{}}"#)));
    let all = r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#;
    let each = vec![form(), url(), sample().into(), tools(), InputRequest::ListRoots];
    check(each.clone(), "{}", Some(("form elicitation", all)));
    check(each, all, None);
}

/// P-MRTR-2, P-MRTR-3: something is asked for or given to keep, and of kinds that exist.
#[test]
fn a_result_that_asks_for_nothing_or_for_nonsense_is_no_result() {
    let invalid = Err((-32603, "Handler returned an invalid result".to_owned(), None));
    let other = |text: &str| InputRequest::Other(Json::parse(text).unwrap());
    assert_eq!(checked(&Outcome::of(InputRequiredResult::new()), "{}"), invalid);
    assert_eq!(checked(&asked(vec![]), "{}"), invalid);
    assert_eq!(checked(&asked(vec![other(r#"{"method":"tools/call","params":{}}"#)]), "{}"), invalid);
    assert_eq!(checked(&Outcome::of(InputRequiredResult::resuming("s")), "{}"), Ok(()));
    let stateful = InputRequiredResult::asking(Vec::<(String, InputRequest)>::new()).request_state("");
    assert_eq!(checked(&Outcome::of(stateful), "{}"), Ok(()));
}

/// A result without a type is held to the same rules; finished text is its maker's business.
#[test]
fn a_result_without_a_type_is_checked_too() {
    let custom = |text: &str| Outcome::custom(&Json::parse(text).unwrap()).unwrap();
    let roots = r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}"#;
    assert_eq!(checked(&custom(roots), "{}").unwrap_err().0, -32021);
    assert_eq!(checked(&custom(roots), r#"{"roots":{}}"#), Ok(()));
    assert_eq!(checked(&custom(r#"{"resultType":"input_required"}"#), "{}").unwrap_err().0, -32603);
    let odd = r#"{"resultType":"input_required","inputRequests":7}"#;
    assert_eq!(checked(&custom(odd), "{}").unwrap_err().0, -32603);
    assert_eq!(checked(&custom("{}"), "{}"), Ok(()));
    assert_eq!(checked(&Outcome::raw(roots), "{}"), Ok(()));
}

/// Three rounds: two questions at once, then nothing but a state, then the answer.
async fn rounds(params: CallToolParams) -> Result<Reply<CallToolResult>, McpError> {
    let ask = || InputRequiredResult::asking([("sure", form()), ("where", InputRequest::ListRoots)]);
    let answers = params.input_responses.unwrap_or_default();
    Ok(match (params.request_state.as_deref(), answers.get("sure")) {
        (Some("twice"), _) => Reply::Complete(CallToolResult::text("done")),
        (Some("once"), Some(InputResponse::Elicit(_))) => {
            Reply::InputRequired(InputRequiredResult::resuming("twice"))
        }
        _ => Reply::InputRequired(ask().request_state("once")),
    })
}

async fn read(params: ReadResourceParams) -> Result<Reply<ReadResourceResult>, McpError> {
    Ok(match params.request_state {
        Some(_) => Reply::Complete(ReadResourceResult::new(Vec::new())),
        None => Reply::InputRequired(InputRequiredResult::resuming("again")),
    })
}

async fn running() -> RunningServer {
    Server::builder("test", "0")
        .on(methods::ToolsCall, rounds)
        .on(methods::ResourcesRead, read)
        .on(methods::PromptsGet, |_: GetPromptParams| async {
            Ok::<Reply<GetPromptResult>, McpError>(Reply::InputRequired(InputRequiredResult::asking([(
                "u",
                url(),
            )])))
        })
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<Reply<ListToolsResult>, McpError>(Reply::InputRequired(InputRequiredResult::resuming("s")))
        })
        .on_custom("own/method", |_: Value| async {
            Ok::<_, McpError>(json!({"resultType": "input_required"}))
        })
        .cache_hint("resources/read", Freshness { ttl_ms: Some(7), scope: Some(CacheScope::Public) })
        .build()
        .unwrap()
        .start()
        .await
        .unwrap()
}

fn can(capabilities: &Value) -> Value {
    json!({"io.modelcontextprotocol/clientCapabilities": capabilities})
}

/// MRTR-01, MRTR-02, P-MRTR-7, P-MRTR-15: several questions at once, state alone, several rounds, new ids.
#[tokio::test]
async fn a_call_is_answered_after_several_rounds() {
    for over in Over::BOTH {
        let mut wire = over.connect(&running().await);
        let meta = can(&json!({"elicitation": {}, "roots": {}}));
        wire.ask_with(1, "tools/call", json!({"name": "t"}), meta.clone()).await;
        let mut first = wire.next().await["result"].take();
        first.as_object_mut().unwrap().remove("_meta");
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let form = json!({"mode": "form", "message": "ok?", "requestedSchema": schema});
        let expected = json!({"resultType": "input_required", "requestState": "once", "inputRequests": {
            "sure": {"method": "elicitation/create", "params": form},
            "where": {"method": "roots/list", "params": {}},
        }});
        assert_eq!(first, expected, "{over:?}");
        let answers = json!({"sure": {"action": "accept", "content": {"ok": true}}, "where": {"roots": []}});
        let retry = json!({"name": "t", "requestState": "once", "inputResponses": answers});
        wire.ask_with(2, "tools/call", retry, meta.clone()).await;
        let mut second = wire.next().await["result"].take();
        second.as_object_mut().unwrap().remove("_meta");
        assert_eq!(second, json!({"resultType": "input_required", "requestState": "twice"}), "{over:?}");
        wire.ask_with(3, "tools/call", json!({"name": "t", "requestState": "twice"}), meta.clone()).await;
        assert_eq!(wire.next().await["result"]["content"][0]["text"], "done", "{over:?}");
    }
}

/// P-MRTR-4, P-MRTR-5, P-MRTR-6: what the previous request declared does not count.
#[tokio::test]
async fn a_capability_is_declared_with_each_request() {
    let mut wire = Over::Memory.connect(&running().await);
    let prompt = json!({"name": "p"});
    wire.ask_with(1, "prompts/get", prompt.clone(), can(&json!({"elicitation": {"url": {}}}))).await;
    assert_eq!(wire.next().await["result"]["inputRequests"]["u"]["params"]["mode"], "url");
    wire.ask_with(2, "prompts/get", prompt, can(&json!({"elicitation": {}}))).await;
    let mut expected = error(2, -32021, "Client did not declare the URL elicitation capability");
    expected["error"]["data"] = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
    wire.expect(expected).await;
}

/// P-MRTR-1, MRTR-03: other methods, and the handshake era, cannot ask for input in a result.
#[tokio::test]
async fn input_is_asked_for_where_that_exists() {
    let running = running().await;
    let mut wire = Over::Memory.connect(&running);
    wire.ask(1, "tools/list", json!({})).await;
    wire.expect(error(1, -32603, "Handler returned an invalid result")).await;
    let mut wire = Over::Memory.connect(&running);
    wire.handshake().await;
    wire.request(1, "tools/call", json!({"name": "t"})).await;
    wire.expect(error(1, -32603, "Handler returned an invalid result")).await;
    // There the word means nothing in the result of a method that is not the protocol's.
    wire.request(2, "own/method", json!({})).await;
    wire.expect(json!({"jsonrpc": "2.0", "id": 2, "result": {"resultType": "input_required"}})).await;
}

/// P-MRTR-20, P-CACHE-1, CACHE-02, CACHE-03, CACHE-04: freshness on final results of the envelope era alone.
#[tokio::test]
async fn an_interim_result_says_nothing_of_freshness() {
    let running = running().await;
    let mut wire = Over::Memory.connect(&running);
    wire.ask(1, "resources/read", json!({"uri": "file:///a"})).await;
    let interim = wire.next().await["result"].take();
    assert_eq!((&interim["ttlMs"], &interim["cacheScope"]), (&Value::Null, &Value::Null));
    wire.ask(2, "resources/read", json!({"uri": "file:///a", "requestState": "again"})).await;
    let last = wire.next().await["result"].take();
    assert_eq!((&last["ttlMs"], &last["cacheScope"]), (&json!(7), &json!("public")));
    wire.ask(3, "server/discover", json!({})).await;
    let plain = wire.next().await["result"].take();
    assert_eq!((&plain["ttlMs"], &plain["cacheScope"]), (&json!(0), &json!("private")));
    let mut wire = Over::Memory.connect(&running);
    wire.handshake().await;
    wire.request(1, "resources/read", json!({"uri": "file:///a", "requestState": "again"})).await;
    let result = wire.next().await;
    assert_eq!(result["result"]["ttlMs"], Value::Null, "{result}");
}

/// The check comes after all middleware: what it turns a result into is what counts.
#[tokio::test]
async fn middleware_cannot_ask_for_more_than_handlers() {
    async fn asks(_: Context, message: Message, _: Next) -> Result<Outcome, McpError> {
        assert_eq!(message.method(), "tools/call");
        Ok(asked(vec![sample().into()]))
    }
    let server =
        Server::builder("test", "0").on(methods::ToolsCall, rounds).middleware(asks).build().unwrap();
    let mut wire = Over::Memory.connect(&server.start().await.unwrap());
    wire.ask(1, "tools/call", json!({"name": "t"})).await;
    assert_eq!(wire.next().await["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
}
