//! Arguments of tools that are mirrored in headers (envelope era).

use duplexer_client::{Client, ErrorKind};
use serde_json::{Value, json};

use crate::script::{Asked, Script, calling, options};

fn answer(asked: Asked, result: Value) {
    let mut result = result;
    result["resultType"] = json!("complete");
    let message = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
    asked.json(&message);
}

fn page(tools: &[(&str, Value)]) -> Value {
    let tools: Vec<_> = tools
        .iter()
        .map(|(name, properties)| json!({"name": name, "inputSchema": {"type": "object", "properties": properties}}))
        .collect();
    json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

fn annotated(header: &str) -> Value {
    json!({"region": {"type": "string", "x-mcp-header": header}, "query": {"type": "string"}})
}

async fn session(script: &mut Script) -> Client {
    let (client, ()) = script
        .connecting(options(), async |script| {
            let probe = script.posted("server/discover").await;
            let found = json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 0, "cacheScope": "private"});
            answer(probe, found);
        })
        .await;
    client.unwrap()
}

async fn list(client: &Client, script: &mut Script, tools: &[(&str, Value)]) -> Vec<String> {
    let all = async { client.all_tools().await };
    let (listed, ()) = tokio::join!(all, async { answer(script.posted("tools/list").await, page(tools)) });
    listed.unwrap().into_iter().map(|tool| tool.name).collect()
}

async fn header_of(client: &Client, script: &mut Script, region: Value) -> Option<String> {
    let call = client.call_tool("search", json!({"region": region, "query": "q"})).into_future();
    let (result, header) = tokio::join!(call, async {
        let asked = script.posted("tools/call").await;
        let header = asked.header("mcp-param-region").map(str::to_owned);
        assert_eq!(asked.header("mcp-param-query"), None);
        answer(asked, json!({"content": []}));
        header
    });
    result.unwrap();
    header
}

/// CLT-04, P-HDR-9, P-HDR-21, D-2: headers follow the last listing; tools whose annotations are invalid are left out of it.
#[tokio::test]
async fn annotated_arguments_are_mirrored_in_headers() {
    let mut script = Script::start().await;
    let client = session(&mut script).await;
    assert_eq!(header_of(&client, &mut script, json!("eu")).await, None, "nothing is listed yet");
    let tools = [("search", annotated("Region")), ("unfit", annotated("not a token")), ("plain", json!({}))];
    assert_eq!(list(&client, &mut script, &tools).await, ["search", "plain"]);
    assert_eq!(header_of(&client, &mut script, json!("eu")).await.as_deref(), Some("eu"));
    let encoded = header_of(&client, &mut script, json!("\u{e4}")).await;
    assert_eq!(encoded.as_deref(), Some("=?base64?w6Q=?="));
    assert_eq!(header_of(&client, &mut script, Value::Null).await, None);
    assert_eq!(list(&client, &mut script, &[("search", json!({}))]).await, ["search"]);
    assert_eq!(header_of(&client, &mut script, json!("eu")).await, None, "the annotation is gone");
}

/// CLT-09, P-HDR-22, D-2: after -32020 the tools are listed again, and the call is sent again once.
#[tokio::test]
async fn a_mismatch_of_headers_is_corrected_once() {
    let mismatch = |asked: Asked| {
        let error = json!({"code": -32020, "message": "Mcp-Param-Region is missing"});
        let message = json!({"jsonrpc": "2.0", "id": asked.body["id"], "error": error});
        asked.json(&message);
    };
    let mut script = Script::start().await;
    let client = session(&mut script).await;
    let call = client.call_tool("search", json!({"region": "eu"})).into_future();
    let (result, ()) = tokio::join!(call, async {
        mismatch(script.posted("tools/call").await);
        answer(script.posted("tools/list").await, page(&[("search", annotated("Region"))]));
        let again = script.posted("tools/call").await;
        assert_eq!(again.header("mcp-param-region"), Some("eu"));
        answer(again, json!({"content": []}));
    });
    result.unwrap();
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        mismatch(asked);
        answer(script.posted("tools/list").await, page(&[]));
        mismatch(script.posted("tools/call").await);
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Refused, "Mcp-Param-Region is missing".to_owned())));
    assert!(script.unexpected().is_none());
}
