//! The server for clients of tasks: each tool ends in another way.

use std::future::pending;
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_server::tasks::{TaskPolicy, Tasks};
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{BuildError, Context, Server};
use duplexer_types::error::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    sure: bool,
}

/// Long enough that a call waits, and short enough for a test.
const WORK: Duration = Duration::from_millis(50);

pub(crate) fn server() -> Result<Server, BuildError> {
    let optional = TaskPolicy::new;
    Server::builder("tasks", "1.0.0")
        .extend(Tasks::new().poll_interval(Duration::from_millis(20)))
        .tool(Tool::new("greet", |Name { name }| async move { format!("Hello, {name}!") }))
        .tool(Tool::new("render", render).task(optional()))
        .tool(Tool::new("publish", publish).task(optional()))
        .tool(Tool::new("refuse", refuse).task(optional()))
        .tool(Tool::new("fail", fail).task(optional()))
        .tool(Tool::new("wait", wait).task(optional()))
        .tool(Tool::new("migrate", migrate).task(TaskPolicy::new().required()))
        .build()
}

async fn render(cx: Context) -> &'static str {
    cx.progress(1).total(2).message("drawing").await;
    sleep(WORK).await;
    "rendered"
}

async fn publish(cx: Context) -> Result<String, ToolError> {
    sleep(WORK).await;
    let Confirmation { sure } = cx.elicit("sure", "Publish it?").await?.accepted()?;
    Ok(format!("published: {sure}"))
}

async fn refuse() -> Result<String, ToolError> {
    sleep(WORK).await;
    Err(ToolError::new("There is no paper."))
}

async fn fail() -> Result<String, McpError> {
    sleep(WORK).await;
    Err(McpError::new(ErrorCode::INVALID_PARAMS, "The press is broken"))
}

async fn wait(cx: Context) -> &'static str {
    cx.progress(1).message("waiting").await;
    pending().await
}

async fn migrate() -> &'static str {
    sleep(WORK).await;
    "migrated"
}
