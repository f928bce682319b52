//! Tools that change the catalog. The change itself notifies subscribers.

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::prelude::*;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server.tool(test_trigger_tool_change).tool(test_trigger_prompt_change)
}

/// Is there every other time.
#[tool(read_only)]
async fn test_dynamic_tool() -> &'static str {
    "This tool comes and goes."
}

/// Is there every other time.
#[prompt]
async fn test_dynamic_prompt() -> &'static str {
    "This prompt comes and goes."
}

/// Adds a tool, or removes it again.
#[tool]
async fn test_trigger_tool_change(cx: Context<()>) -> Result<&'static str, ToolError> {
    let catalog = cx.catalog()?;
    let change = catalog.edit(|edit| match edit.remove_tool("test_dynamic_tool") {
        Ok(()) => Ok("The tool is gone."),
        Err(_) => edit.add_tool(test_dynamic_tool).map(|()| "The tool is there."),
    });
    Ok(change.await?)
}

/// Adds a prompt, or removes it again.
#[tool]
async fn test_trigger_prompt_change(cx: Context<()>) -> Result<&'static str, ToolError> {
    let catalog = cx.catalog()?;
    let change = catalog.edit(|edit| match edit.remove_prompt("test_dynamic_prompt") {
        Ok(()) => Ok("The prompt is gone."),
        Err(_) => edit.add_prompt(test_dynamic_prompt).map(|()| "The prompt is there."),
    });
    Ok(change.await?)
}
