//! A dynamic catalog: one tool adds another at run time.

use duplexer::Context;
use duplexer::prelude::*;
use duplexer_examples::{call, clients, same, text};
use serde_json::json;

/// Describes what is behind the door.
#[tool]
async fn look() -> &'static str {
    "a garden"
}

/// Opens the door, which adds the tool `look`.
#[tool]
async fn open(cx: Context<()>) -> Result<(), ToolError> {
    cx.catalog()?.edit(|edit| edit.replace_tool(look)).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("house", "1.0.0").dynamic().tool(open).build()?;
    let [client, later] = clients(&server).await?;
    same(call(&client, "look", json!({})).await.is_err(), true)?;
    call(&client, "open", json!({})).await?;
    same(text(&call(&client, "look", json!({})).await?), "a garden")?;
    same(later.all_tools().await?.len(), 2)?;
    client.close().await;
    later.close().await;
    Ok(())
}
