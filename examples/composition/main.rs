//! A server composed of servers: each has its own state and is independent of the others.

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::prelude::*;
use duplexer::server::Outcome;
use duplexer::tool::{ToolCall, ToolMiddleware};
use duplexer_examples::{call, clients, same, text};
use serde_json::json;

struct Shelf(Vec<&'static str>);

/// Finds a book.
#[tool]
async fn find(cx: Context<Shelf>, word: String) -> Result<&'static str, ToolError> {
    let found = cx.state().0.iter().find(|title| title.contains(&word));
    found.copied().ok_or_else(|| ToolError::new("no such book"))
}

fn library(books: &[&'static str]) -> ServerBuilder<Shelf> {
    Server::builder("library", "1.0.0").state(Shelf(books.to_vec())).tool(find)
}

struct Clock(u32);

/// Returns the hour.
#[tool]
async fn hour(cx: Context<Clock>) -> u32 {
    cx.state().0
}

fn clock() -> ServerBuilder<Clock> {
    Server::builder("clock", "1.0.0").lifespan(|| async { Ok::<_, BoxError>(Clock(12)) }).tool(hour)
}

/// Rejects calls that search for secrets, in every part.
fn guard() -> impl ToolMiddleware {
    async |cx: Context, call: ToolCall| -> Result<Outcome, McpError> {
        if call.arguments().as_str().contains("secret") {
            return Ok(Outcome::of(CallToolResult::error("secrets are not available")));
        }
        call.run(cx).await
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("house", "1.0.0")
        .merge(clock())
        .nest("novels", library(&["Emma", "Ulysses"]))
        .nest("letters", library(&["Letters to a Young Poet", "secret letters"]))
        .tool_middleware(guard())
        .build()?;
    for client in clients(&server).await? {
        let names: Vec<_> = client.all_tools().await?.into_iter().map(|tool| tool.name).collect();
        same(names, ["hour", "novels_find", "letters_find"])?;
        same(text(&call(&client, "hour", json!({})).await?), "12")?;
        same(text(&call(&client, "novels_find", json!({"word": "Emma"})).await?), "Emma")?;
        same(text(&call(&client, "letters_find", json!({"word": "Emma"})).await?), "no such book")?;
        let secret = call(&client, "letters_find", json!({"word": "secret"})).await?;
        same(text(&secret), "secrets are not available")?;
        client.close().await;
    }
    // Duplicate names are found when the server is built.
    let clash = Server::builder("house", "0").merge(library(&[])).merge(library(&[])).build();
    same(
        clash.map_err(|error| error.to_string()).err().as_deref(),
        Some("there are two tools 'find': rename one of them"),
    )
}
