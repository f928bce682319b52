//! A server written with the public API: a few items of every kind.

use duplexer::Context;
use duplexer::completion::CompletionRequest;
use duplexer::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Returns a server whose handlers behave the same over every transport and in both eras.
pub fn server() -> Server {
    Server::builder("authored", "0")
        .page_size(2)
        .tool(add)
        .tool(describe)
        .tool(divide)
        .tool(refuse)
        .tool(greet)
        .resource(Resource::text("config://app", "verbose = true").name("config"))
        .resource(Resource::bytes("data://three", [1, 2, 3]).mime_type("image/png"))
        .resource(row)
        .prompt(review)
        .build()
        .expect("the authored fixture is well-formed")
}

/// Adds two numbers.
#[tool]
async fn add(
    /// The first one.
    a: i64,
    /// The second one.
    #[default(1)]
    b: i64,
) -> i64 {
    a + b
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Serialize, JsonSchema)]
struct Thing {
    name: String,
    size: Size,
}

#[tool(title = "Describe", read_only)]
async fn describe(name: String, size: Option<Size>) -> Thing {
    Thing { name, size: size.unwrap_or(Size::Small) }
}

#[tool]
async fn divide(a: f64, b: f64) -> Result<f64, ToolError> {
    if b == 0.0 { Err(ToolError::new("nothing can be divided by zero")) } else { Ok(a / b) }
}

#[tool]
async fn refuse() -> Result<String, McpError> {
    Err(McpError::new(duplexer::types::error::ErrorCode(-5), "not today"))
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[tool]
async fn greet(cx: Context, greeting: String) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("name", "What is your name?").await?.accepted()?;
    Ok(format!("{greeting}, {name}!"))
}

async fn tables(request: CompletionRequest) -> Vec<String> {
    request.filter(["users", "units", "orders"])
}

/// A row of a table.
#[resource("db://{table}/{id}", mime_type = "text/plain")]
async fn row(#[complete(tables)] table: String, id: u32) -> Result<String, ResourceError> {
    if id == 0 { Err(ResourceError::NotFound) } else { Ok(format!("{table} {id}")) }
}

/// Asks for a review.
#[prompt]
async fn review(
    /// What to look at.
    code: String,
    size: Option<Size>,
) -> Vec<PromptMessage> {
    let depth = if matches!(size, Some(Size::Large)) { "thoroughly" } else { "briefly" };
    vec![PromptMessage::user(format!("Review {depth}: {code}")), PromptMessage::assistant("I will.")]
}
