//! Validation of tool results against output schemas.

use serde_json::{Value, json};

use super::{ScriptedServer, builder, envelope_session};
use crate::{Client, ClientError, OutputValidation};

fn schema() -> Value {
    json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]})
}

async fn list(client: &Client, server: &mut ScriptedServer, schema: Value) {
    let (listed, ()) = tokio::join!(client.all_tools(), answer_list(server, schema));
    listed.unwrap();
}

async fn answer_list(server: &mut ScriptedServer, schema: Value) {
    let request = server.expect("tools/list").await;
    let tools = json!([{"name": "add", "inputSchema": {}, "outputSchema": schema}]);
    server.respond(&request, json!({"resultType": "complete", "tools": tools})).await;
}

/// Calls the tool and returns the reason of a failed validation.
async fn call(client: &Client, server: &mut ScriptedServer, content: Option<Value>) -> Option<String> {
    let (outcome, ()) = tokio::join!(client.call_tool("add", ()), answer_call(server, content));
    match outcome {
        Ok(_) => None,
        Err(ClientError::Validation(reason)) => Some(reason.to_string()),
        Err(error) => panic!("{error}"),
    }
}

async fn answer_call(server: &mut ScriptedServer, content: Option<Value>) {
    let request = server.expect("tools/call").await;
    let mut result = json!({"resultType": "complete", "content": []});
    match content {
        Some(content) => result["structuredContent"] = content,
        None => result["isError"] = json!(true),
    }
    server.respond(&request, result).await;
}

/// CLT-07, P-TOOL-12, F-14: results are validated against the schema of the last listing, failures of tools are not.
#[tokio::test(start_paused = true)]
async fn results_of_listed_tools_match_their_output_schema() {
    let (client, mut server) = envelope_session(builder()).await;
    assert_eq!(call(&client, &mut server, Some(json!({}))).await, None);
    list(&client, &mut server, schema()).await;
    assert_eq!(call(&client, &mut server, Some(json!({"sum": 3}))).await, None);
    assert_eq!(call(&client, &mut server, None).await, None);
    let reason = call(&client, &mut server, Some(json!({"sum": "3"}))).await.unwrap();
    assert!(reason.contains("does not match its output schema") && reason.contains("/sum"), "{reason}");
    list(&client, &mut server, json!({"type": "object"})).await;
    assert_eq!(call(&client, &mut server, Some(json!({"sum": "3"}))).await, None);
}

/// CLT-07: an unknown tool is looked up, if the builder says so.
#[tokio::test(start_paused = true)]
async fn unknown_tools_can_be_looked_up() {
    let (client, mut server) = envelope_session(builder().output_validation(OutputValidation::Always)).await;
    let (outcome, ()) = tokio::join!(client.call_tool("add", ()), async {
        answer_call(&mut server, Some(json!({}))).await;
        answer_list(&mut server, schema()).await;
    });
    assert!(matches!(outcome, Err(ClientError::Validation(_))));
    assert_eq!(call(&client, &mut server, Some(json!({"sum": 1}))).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_cannot_be_compiled_does_not_fail_its_tool() {
    let (client, mut server) = envelope_session(builder()).await;
    list(&client, &mut server, json!({"type": "object", "patternProperties": {"(?=a)": {}}})).await;
    assert_eq!(call(&client, &mut server, Some(json!({}))).await, None);
}

#[tokio::test(start_paused = true)]
async fn validation_can_be_turned_off() {
    let (client, mut server) = envelope_session(builder().output_validation(OutputValidation::Off)).await;
    list(&client, &mut server, schema()).await;
    assert_eq!(call(&client, &mut server, Some(json!({}))).await, None);
}
