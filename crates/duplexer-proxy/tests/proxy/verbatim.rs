//! Where both sides have the same revision, results are those of the server, byte by byte.

use duplexer::client::prelude::*;
use duplexer::dispatch::OutboundRequest;
use duplexer::types::completion::PromptReference;
use duplexer::types::version::Era;
use serde_json::json;

use crate::support::{Speaks, client, everything, open, proxied, through};

async fn results(client: &Client) -> Vec<String> {
    let echo =
        OutboundRequest::new("com.example/echo").params(json!({ "odd": { "b": 1, "a": [1.50, null] } }));
    vec![
        client.list_tools().raw().await.unwrap().to_string(),
        client.list_resources().raw().await.unwrap().to_string(),
        client.list_resource_templates().raw().await.unwrap().to_string(),
        client.list_prompts().raw().await.unwrap().to_string(),
        client.call_tool("add", json!({ "a": 2, "b": 3 })).raw().await.unwrap().to_string(),
        client.call_tool("fail", ()).raw().await.unwrap().to_string(),
        client.read_resource("note://one").raw().await.unwrap().to_string(),
        client.read_resource("note://two").raw().await.unwrap().to_string(),
        client.get_prompt("greet", [("name", "ada")]).raw().await.unwrap().to_string(),
        client.complete(PromptReference::new("greet"), "name", "a").raw().await.unwrap().to_string(),
        client.request_custom(echo).await.unwrap().to_string(),
        client.call_tool("none", ()).await.unwrap_err().to_string(),
        client.read_resource("other://none").await.unwrap_err().to_string(),
        client.request_custom(OutboundRequest::new("com.example/none")).await.unwrap_err().to_string(),
        format!("{:?} {:?}", client.server_info(), client.server_capabilities()),
        format!("{:?} {}", client.instructions(), client.protocol_version()),
        client.opening_result().to_owned(),
    ]
}

#[tokio::test]
async fn results_pass_as_text_where_the_revisions_agree() {
    for era in [Era::Handshake, Era::Envelope] {
        let direct = open(&everything(), Speaks::Both, client(era)).await.unwrap();
        let proxied = through(proxied(&everything(), Speaks::Both), client(era)).await;
        let (expected, got) = (results(&direct).await, results(&proxied).await);
        for (expected, got) in expected.iter().zip(&got) {
            assert_eq!(got, expected, "{era:?}");
        }
        proxied.close().await;
        direct.close().await.unwrap();
    }
}
