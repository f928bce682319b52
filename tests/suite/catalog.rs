//! The catalog of a server made of plain functions: equal for all clients and instances, and served as advertised.

use duplexer_server::completion::CompletionRequest;
use duplexer_server::prompt::Prompt;
use duplexer_server::request_state::RequestState;
use duplexer_server::resource::Resource;
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{Context, Server};
use duplexer_types::content::Content;
use duplexer_types::content::EmbeddedResource;
use duplexer_types::prompt::PromptMessage;
use duplexer_types::resource::ResourceContents;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::matrix::{Link, Needs, in_both_eras};
use crate::wire::{Wire, error_of, initialize};
use crate::{ENVELOPE, HANDSHAKE};

const PIXEL: &str = "AAEC/w==";

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Limit {
    limit: Option<u8>,
}

/// One of several equal instances, which share only a key.
fn instance() -> Server {
    let mut builder = Server::builder("instances", "0")
        .page_size(2)
        .request_state(RequestState::keys([[7_u8; 32]]).unwrap())
        .tool(Tool::new("picture", || async { Content::image(PIXEL, "image/png") }))
        .tool(Tool::new("count", |Limit { limit }| async move { format!("up to {limit:?}") }))
        .tool(Tool::new("greet", |cx: Context| async move {
            let name: Name = cx.elicit("name", "Who are you?").await?.accepted()?;
            Ok::<_, ToolError>(format!("Hello {}!", name.name))
        }))
        .prompt(Prompt::new("look", || async {
            let text = ResourceContents::text("file:///a.txt", "a").mime_type("text/plain");
            [
                PromptMessage::user(Content::image(PIXEL, "image/png")),
                PromptMessage::user(Content::audio(PIXEL, "audio/wav")),
                PromptMessage::user(Content::Resource(EmbeddedResource::new(text))),
            ]
        }))
        .prompt(Prompt::new("call", |Name { name }| async move { name }).complete("name", names));
    for number in 0..5 {
        let (uri, name) = (format!("test://{number}"), format!("tool-{number}"));
        builder = builder.resource(Resource::text(uri, "x")).tool(Tool::new(name, || async {}));
    }
    builder.build().unwrap()
}

async fn names(request: CompletionRequest) -> Vec<String> {
    request.filter(["Ada", "Alan"])
}

/// Returns the capabilities that the server advertises, in either era.
async fn capabilities(wire: &mut Wire, revision: &str) -> Value {
    if revision == ENVELOPE {
        wire.open(ENVELOPE).await;
        return wire.result("server/discover", json!({})).await["capabilities"].clone();
    }
    let opened = wire.result("initialize", initialize(revision, json!({}))).await;
    wire.notify("notifications/initialized", json!({})).await;
    opened["capabilities"].clone()
}

/// P-DISC-3, P-TOOL-1, P-PRM-1, P-CMP-1, P-CMP-4: what is advertised is served, and what is not advertised is not found.
#[tokio::test]
async fn capabilities_are_what_is_served() {
    let plain = || Prompt::new("p", || async { "hello" });
    let completed = || Prompt::new("p", |Name { name }| async move { name }).complete("name", names);
    let asked = [
        ("tools", "tools/list", json!({})),
        ("tools", "tools/call", json!({ "name": "t" })),
        ("prompts", "prompts/list", json!({})),
        ("prompts", "prompts/get", json!({ "name": "p", "arguments": { "name": "x" } })),
        ("resources", "resources/list", json!({})),
        ("resources", "resources/templates/list", json!({})),
        ("resources", "resources/read", json!({ "uri": "test://r" })),
        (
            "completions",
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "name", "value": "A" } }),
        ),
    ];
    let builder = || Server::builder("s", "0");
    let servers: [(&dyn Fn() -> Server, &[&str]); 5] = [
        (&|| builder().build().unwrap(), &[]),
        (&|| builder().tool(Tool::new("t", || async {})).build().unwrap(), &["tools"]),
        (&|| builder().prompt(plain()).build().unwrap(), &["prompts"]),
        (&|| builder().prompt(completed()).build().unwrap(), &["completions", "prompts"]),
        (&|| builder().resource(Resource::text("test://r", "r")).build().unwrap(), &["resources"]),
    ];
    for (server, expected) in servers {
        for revision in [HANDSHAKE, ENVELOPE] {
            for link in Link::in_process(revision, Needs::Answers) {
                let mut wire = Wire::connect(link, server()).await;
                let advertised = capabilities(&mut wire, revision).await;
                let named: Vec<_> = advertised.as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(named, expected, "{revision}");
                for (capability, method, params) in &asked {
                    let answer = wire.answer(method, params.clone()).await;
                    if advertised.get(capability).is_some() {
                        assert!(answer.get("result").is_some(), "{method}: {answer}");
                    } else {
                        assert_eq!(error_of(&answer).0, -32601, "{method}");
                    }
                }
            }
        }
    }
}

/// Reads every page of a list, each from the next instance.
async fn pages(wires: &mut [Wire], method: &str, member: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut items, mut scopes, mut params) = (Vec::new(), Vec::new(), json!({}));
    for turn in 0.. {
        let page = wires[turn % wires.len()].result(method, params.clone()).await;
        items.extend(page[member].as_array().unwrap().iter().cloned());
        scopes.push(page["cacheScope"].clone());
        match page.get("nextCursor") {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
    }
    (items, scopes)
}

/// P-TOOL-2, P-TOOL-3, P-RSC-7, P-PAG-3, P-CACHE-2: a list is the same and in the same order for every connection and
/// from every instance, page by page.
#[tokio::test]
async fn a_list_is_the_same_everywhere() {
    for revision in [HANDSHAKE, ENVELOPE] {
        for link in Link::in_process(revision, Needs::Answers) {
            let mut one = [Wire::connect(link, instance()).await];
            let mut many = [Wire::connect(link, instance()).await, Wire::connect(link, instance()).await];
            for wire in one.iter_mut().chain(&mut many) {
                wire.open(revision).await;
            }
            // Earlier requests make no difference.
            many[0].answer("tools/call", json!({ "name": "picture" })).await;
            for (method, member, count) in [("tools/list", "tools", 8), ("resources/list", "resources", 5)] {
                let (alone, scopes) = pages(&mut one, method, member).await;
                let (together, others) = pages(&mut many, method, member).await;
                assert_eq!((alone.len(), &alone), (count, &together), "{method}");
                let scope = if revision == ENVELOPE { json!("private") } else { Value::Null };
                assert!(
                    scopes.len() > 2 && scopes.iter().chain(&others).all(|one| *one == scope),
                    "{scopes:?}"
                );
            }
        }
    }
}

/// P-TOOL-14, P-PRM-3: binary content is base64 and has a media type.
#[tokio::test]
async fn binary_content_is_base64_with_its_type() {
    in_both_eras(instance, async |mut wire| {
        let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
        let picture = wire.tool("picture").await["result"]["content"][0].clone();
        assert_eq!(picture, image);
        let prompt = wire.result("prompts/get", json!({ "name": "look" })).await;
        let contents: Vec<_> =
            prompt["messages"].as_array().unwrap().iter().map(|message| message["content"].clone()).collect();
        let file = json!({ "uri": "file:///a.txt", "mimeType": "text/plain", "text": "a" });
        let audio = json!({ "type": "audio", "data": PIXEL, "mimeType": "audio/wav" });
        assert_eq!(contents, [image, audio, json!({ "type": "resource", "resource": file })]);
    })
    .await;
}

/// P-TOOL-16, P-PRM-4: arguments can be omitted where none are required; an argument of a prompt is a string.
#[tokio::test]
async fn arguments_can_be_omitted_and_those_of_prompts_are_strings() {
    in_both_eras(instance, async |mut wire| {
        for (tool, text) in [("count", "up to None"), ("tool-0", "")] {
            let result = wire.tool(tool).await["result"].clone();
            assert_eq!(result.get("isError"), None, "{result}");
            assert_eq!(result["content"][0]["text"].as_str().unwrap_or_default(), text);
        }
        for arguments in [json!({ "name": 5 }), json!({ "name": null }), json!([])] {
            let error = wire.error("prompts/get", json!({ "name": "call", "arguments": arguments })).await;
            assert_eq!(error.0, -32602, "{error:?}");
        }
        let called = json!({ "name": "call", "arguments": { "name": "5" } });
        let result = wire.result("prompts/get", called).await;
        assert_eq!(result["messages"][0]["content"]["text"], "5");
    })
    .await;
}

fn greeting(state: Option<&Value>, answers: Option<Value>) -> Value {
    let able = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let mut params = json!({ "name": "greet", "_meta": able });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    if let Some(answers) = answers {
        params["inputResponses"] = answers;
    }
    params
}

/// P-MRTR-12, P-MRTR-13, P-MRTR-14, P-STATE-2, P-STATE-3, P-HTTP-21: rounds share only the state that the client
/// carries, so any instance can continue; a missing or unusable answer is requested again.
#[tokio::test]
async fn any_instance_continues_where_another_has_asked() {
    let ada = json!({ "action": "accept", "content": { "name": "Ada" } });
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wires = [Wire::connect(link, instance()).await, Wire::connect(link, instance()).await];
        for wire in &mut wires {
            wire.open(ENVELOPE).await;
        }
        let [one, other] = &mut wires;
        let asked = one.result("tools/call", greeting(None, None)).await;
        let state = &asked["requestState"];
        assert_eq!(asked["inputRequests"]["name"]["method"], "elicitation/create");
        for unanswered in [None, Some(json!({})), Some(json!({ "absent": ada })), Some(json!({ "name": {} }))]
        {
            let again = other.result("tools/call", greeting(Some(state), unanswered)).await;
            assert_eq!(again["resultType"], "input_required");
            assert_eq!(again["inputRequests"], asked["inputRequests"]);
        }
        for malformed in [json!({ "name": 12345 }), json!({ "name": null }), json!(5)] {
            let answer = other.answer("tools/call", greeting(Some(state), Some(malformed))).await;
            let asked_again = answer["result"]["resultType"] == "input_required";
            assert!(asked_again || error_of(&answer).0 == -32602, "{answer}");
        }
        let answers = json!({ "name": ada, "unknown": { "action": "decline" } });
        let done = other.result("tools/call", greeting(Some(state), Some(answers))).await;
        assert_eq!(done["content"][0]["text"], "Hello Ada!");
    }
}
