//! A server written with the public API behaves the same over every link and in both eras.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::matrix::{Link, Needs};
use crate::wire::{Wire, error_of};
use crate::{ENVELOPE, HANDSHAKE};

async fn connect(link: Link) -> Wire {
    match link {
        Link::Child => Wire::spawn_with(&["authored"], Stdio::null()),
        _ => Wire::connect(link, duplexer_tests::authored::server()).await,
    }
}

/// Runs a behaviour over memory, pipes, the standard streams of a process, and HTTP with and without sessions.
async fn everywhere<F: Future<Output = ()>>(behaviour: impl Fn(Wire) -> F) {
    for revision in [HANDSHAKE, ENVELOPE] {
        for link in Link::of(revision, Needs::Answers) {
            let mut wire = connect(link).await;
            wire.open(revision).await;
            behaviour(wire).await;
        }
    }
}

async fn call(wire: &mut Wire, tool: &str, arguments: Value) -> Value {
    wire.result("tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// Returns all items of a paginated method, and the size of each page.
async fn listed(wire: &mut Wire, method: &str, member: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut all, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
    loop {
        let page = wire.result(method, params).await;
        let items = page[member].as_array().unwrap();
        sizes.push(items.len());
        all.extend(items.iter().cloned());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (all, sizes),
        }
    }
}

/// TOOL-03, TOOL-06: definitions come from signatures; results are structured, with one text form.
#[tokio::test]
async fn tools_are_listed_and_called() {
    everywhere(async |mut wire| {
        let (tools, _) = listed(&mut wire, "tools/list", "tools").await;
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["add", "describe", "divide", "refuse", "greet"]);
        let input = json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "The first one." },
                "b": { "type": "integer", "description": "The second one.", "default": 1 },
            },
            "required": ["a"],
        });
        assert_eq!(
            (&tools[0]["description"], &tools[0]["inputSchema"]),
            (&json!("Adds two numbers."), &input)
        );
        assert_eq!(tools[1]["title"], "Describe");
        assert_eq!(tools[1]["annotations"], json!({ "readOnlyHint": true }));
        assert_eq!(tools[1]["outputSchema"]["type"], "object");
        let sum = call(&mut wire, "add", json!({ "a": 2 })).await;
        assert_eq!(sum["content"], json!([{ "type": "text", "text": "3" }]));
        // The only difference: below 2026-07-28 structured content is always an object.
        let structured = if wire.is_enveloped() { json!(3) } else { json!({ "result": 3 }) };
        assert_eq!(sum["structuredContent"], structured);
        let thing = call(&mut wire, "describe", json!({ "name": "x", "size": "large" })).await;
        assert_eq!(thing["structuredContent"], json!({ "name": "x", "size": "large" }));
        assert_eq!(thing["content"][0]["text"], r#"{"name":"x","size":"large"}"#);
    })
    .await;
}

/// TOOL-01 (deviation): errors for the model are results and list every fault of the arguments; errors for the client
/// are protocol errors.
#[tokio::test]
async fn errors_of_tools_reach_their_receiver() {
    everywhere(async |mut wire| {
        let failed = call(&mut wire, "divide", json!({ "a": 1, "b": 0 })).await;
        assert_eq!(failed["isError"], true);
        assert_eq!(failed["content"][0]["text"], "nothing can be divided by zero");
        let unfit = call(&mut wire, "describe", json!({ "name": 5, "size": "huge" })).await;
        let text = unfit["content"][0]["text"].as_str().unwrap();
        assert!(unfit["isError"] == true && text.contains("/name") && text.contains("/size"), "{text}");
        let refused = wire.error("tools/call", json!({ "name": "refuse" })).await;
        assert_eq!(refused, (-5, "not today".to_owned(), Value::Null));
        let (code, text, _) = wire.error("tools/call", json!({ "name": "absent" })).await;
        assert_eq!((code, &*text), (-32602, "Unknown tool: absent"));
    })
    .await;
}

/// RES-01 (deviation), RES-02: text, bytes, and a template with typed variables.
#[tokio::test]
async fn resources_are_listed_and_read() {
    everywhere(async |mut wire| {
        let (resources, _) = listed(&mut wire, "resources/list", "resources").await;
        assert_eq!(resources[0], json!({ "uri": "config://app", "name": "config", "size": 14 }));
        let (templates, _) = listed(&mut wire, "resources/templates/list", "resourceTemplates").await;
        let row = json!({
            "uriTemplate": "db://{table}/{id}", "name": "row", "description": "A row of a table.",
            "mimeType": "text/plain",
        });
        assert_eq!(templates, [row]);
        let read = async |wire: &mut Wire, uri: &str| {
            wire.result("resources/read", json!({ "uri": uri })).await["contents"][0].clone()
        };
        let text = json!({ "uri": "config://app", "mimeType": "text/plain", "text": "verbose = true" });
        assert_eq!(read(&mut wire, "config://app").await, text);
        let blob = json!({ "uri": "data://three", "mimeType": "image/png", "blob": "AQID" });
        assert_eq!(read(&mut wire, "data://three").await, blob);
        assert_eq!(read(&mut wire, "db://users/7").await["text"], "users 7");
        let missing = if wire.is_enveloped() { -32602 } else { -32002 };
        for uri in ["db://users/0", "db://users/x", "db://../7", "none://"] {
            let (code, text, data) = wire.error("resources/read", json!({ "uri": uri })).await;
            assert_eq!(
                (code, text, data),
                (missing, format!("Unknown resource: {uri}"), json!({ "uri": uri }))
            );
        }
    })
    .await;
}

/// PRM-01 (deviation), PRM-02, MCPS-07: prompts are rendered from string arguments; arguments and variables have
/// completions.
#[tokio::test]
async fn prompts_are_filled_and_completed() {
    everywhere(async |mut wire| {
        let (prompts, _) = listed(&mut wire, "prompts/list", "prompts").await;
        let arguments = json!([
            { "name": "code", "description": "What to look at.", "required": true },
            { "name": "size", "required": false },
        ]);
        assert_eq!((&prompts[0]["name"], &prompts[0]["arguments"]), (&json!("review"), &arguments));
        let params = json!({ "name": "review", "arguments": { "code": "x", "size": "large" } });
        let filled = wire.result("prompts/get", params).await;
        let messages = json!([
            { "role": "user", "content": { "type": "text", "text": "Review thoroughly: x" } },
            { "role": "assistant", "content": { "type": "text", "text": "I will." } },
        ]);
        assert_eq!(filled["messages"], messages);
        let (code, text, _) = wire.error("prompts/get", json!({ "name": "review" })).await;
        assert_eq!((code, &*text), (-32602, "Missing required arguments: code"));
        let params = json!({ "name": "review", "arguments": { "code": "x", "size": "huge" } });
        let (code, text, _) = wire.error("prompts/get", params).await;
        assert_eq!(code, -32602);
        assert_eq!(text, r#"Invalid argument: size: expected one of small, large, got "huge""#);
        let completed = async |wire: &mut Wire, reference: Value, name: &str, value: &str| {
            let params = json!({ "ref": reference, "argument": { "name": name, "value": value } });
            wire.result("completion/complete", params).await["completion"]["values"].clone()
        };
        let prompt = json!({ "type": "ref/prompt", "name": "review" });
        assert_eq!(completed(&mut wire, prompt.clone(), "size", "l").await, json!(["large"]));
        assert_eq!(completed(&mut wire, prompt, "code", "l").await, json!([]));
        let template = json!({ "type": "ref/resource", "uri": "db://{table}/{id}" });
        assert_eq!(completed(&mut wire, template, "table", "U").await, json!(["users", "units"]));
    })
    .await;
}

/// MCPS-02 (deviation): pages have the configured size; an invalid cursor is rejected.
#[tokio::test]
async fn lists_come_in_pages() {
    everywhere(async |mut wire| {
        assert_eq!(listed(&mut wire, "tools/list", "tools").await.1, [2, 2, 1]);
        assert_eq!(listed(&mut wire, "resources/list", "resources").await.1, [2]);
        let methods = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
        for method in methods {
            let (code, text, _) = wire.error(method, json!({ "cursor": "???" })).await;
            assert_eq!((code, &*text), (-32602, "Invalid cursor"), "{method}");
        }
    })
    .await;
}

const FORM: &str = "What is your name?";

/// MRTR-01, MRTR-08: one API for input. In the handshake era it sends a request to the client.
#[tokio::test]
async fn a_tool_asks_a_handshake_client() {
    for link in Link::of(HANDSHAKE, Needs::ServerRequests) {
        let mut wire = connect(link).await;
        wire.open_as(HANDSHAKE, json!({ "elicitation": {} })).await;
        for (answer, expected) in [
            (json!({ "action": "accept", "content": { "name": "Ada" } }), "Hello, Ada!"),
            (json!({ "action": "decline" }), "The user declined to answer."),
        ] {
            let params = json!({ "name": "greet", "arguments": { "greeting": "Hello" } });
            let id = wire.request("tools/call", params).await;
            let asked = wire.next().await;
            assert_eq!(
                (&asked["method"], &asked["params"]["message"]),
                (&json!("elicitation/create"), &json!(FORM))
            );
            assert_eq!(asked["params"]["requestedSchema"]["required"], json!(["name"]));
            wire.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
            assert_eq!(wire.answer_to(id).await["result"]["content"][0]["text"], expected);
        }
    }
}

/// MRTR-01, MRTR-08, MRTR-12: in the envelope era it returns a result, and the client repeats the call with the answer.
#[tokio::test]
async fn a_tool_asks_an_envelope_client() {
    for link in Link::of(ENVELOPE, Needs::Answers) {
        let mut wire = connect(link).await;
        wire.open(ENVELOPE).await;
        let params = || json!({ "name": "greet", "arguments": { "greeting": "Hello" } });
        let (code, ..) = wire.error("tools/call", params()).await;
        assert_eq!(code, -32021, "a client that cannot be asked");
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        let mut first = params();
        first["_meta"] = meta;
        let asked = wire.result("tools/call", first.clone()).await;
        assert_eq!(asked["resultType"], "input_required");
        let question = &asked["inputRequests"]["name"];
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!(FORM))
        );
        for (answer, expected) in [
            (json!({ "action": "accept", "content": { "name": "Ada" } }), "Hello, Ada!"),
            (json!({ "action": "decline" }), "The user declined to answer."),
        ] {
            let mut second = first.clone();
            second["inputResponses"] = json!({ "name": answer });
            second["requestState"] = asked["requestState"].clone();
            assert_eq!(wire.result("tools/call", second).await["content"][0]["text"], expected);
        }
        let mut unfit = first.clone();
        unfit["inputResponses"] = json!({ "name": { "action": "accept", "content": { "name": 5 } } });
        unfit["requestState"] = asked["requestState"].clone();
        let id = wire.request("tools/call", unfit).await;
        assert_eq!(error_of(&wire.answer_to(id).await).0, -32602);
    }
}
