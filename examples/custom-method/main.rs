//! A custom method, in addition to the methods of the protocol.

use duplexer::Json;
use duplexer::dispatch::OutboundRequest;
use duplexer::prelude::*;
use duplexer_examples::{clients, same};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Search {
    words: Vec<String>,
}

#[derive(Serialize)]
struct Found {
    count: usize,
}

async fn search(Search { words }: Search) -> Result<Found, McpError> {
    Ok(Found { count: words.len() })
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("finder", "1.0.0").on_custom("com.example/search", search).build()?;
    for client in clients(&server).await? {
        let request =
            OutboundRequest::new("com.example/search").params(Json::from(json!({"words": ["a", "b"]})));
        let found: Value = client.request_custom(request).await?.decode()?;
        same(found["count"].clone(), json!(2))?;
        client.close().await;
    }
    Ok(())
}
