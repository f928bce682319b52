//! Tools that run as tasks, for the scenarios of the tasks extension.

use std::time::Duration;

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::tasks::Tasks;
use duplexer::types::error::ErrorCode;
use serde::Deserialize;
use tokio::time::sleep;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .extend(Tasks::new().poll_interval(Duration::from_millis(200)))
        .tool(greet)
        .tool(slow_compute)
        .tool(failing_job)
        .tool(protocol_error_job)
        .tool(confirm_delete)
        .tool(multi_input)
        .tool(test_tool_with_task)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

/// Says hello, and is never a task.
#[tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Computes for a while.
#[tool(task)]
async fn slow_compute(seconds: f64, #[default] label: String) -> Result<String, ToolError> {
    let time = Duration::try_from_secs_f64(seconds).map_err(ToolError::of)?;
    sleep(time).await;
    Ok(format!("Computed {label} in {seconds} s"))
}

/// Fails after a while.
#[tool(task(required))]
async fn failing_job() -> Result<String, ToolError> {
    sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("The job has failed, as it always does"))
}

/// Ends with an error of the protocol.
#[tool(task)]
async fn protocol_error_job() -> Result<String, McpError> {
    sleep(Duration::from_millis(100)).await;
    Err(McpError::new(
        ErrorCode::INTERNAL_ERROR,
        "The job has ended with a protocol error, as it always does",
    ))
}

/// Deletes a file, if the user confirms it.
#[tool(task)]
async fn confirm_delete(cx: Context, filename: String) -> Result<String, ToolError> {
    let question = format!("Delete {filename}?");
    let Confirmation { confirm } = cx.elicit("confirm", question).await?.accepted()?;
    Ok(if confirm { format!("Deleted {filename}") } else { format!("Kept {filename}") })
}

/// Asks two questions at once.
#[tool(task)]
async fn multi_input(cx: Context) -> Result<String, ToolError> {
    let (name, confirmation) = tokio::join!(
        cx.elicit::<Name>("name", "What is your name?"),
        cx.elicit::<Confirmation>("confirm", "Are you sure?"),
    );
    let (Name { name }, Confirmation { confirm }) = (name?.accepted()?, confirmation?.accepted()?);
    Ok(format!("{name} said {confirm}"))
}

/// Asks for a name before it becomes a task.
#[tool(task(explicit, required))]
async fn test_tool_with_task(cx: Context) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("user_name", "What is your name?").await?.accepted()?;
    cx.background().await;
    sleep(Duration::from_millis(100)).await;
    Ok(format!("Hello from a task, {name}!"))
}
