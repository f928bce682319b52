//! Tools that make the server say it has changed, to whoever has subscribed to that.

use duplexer::prelude::*;
use duplexer::server::ServerBuilder;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server.tool(test_trigger_tool_change).tool(test_trigger_prompt_change)
}

/// Says that the tools have changed.
#[tool]
async fn test_trigger_tool_change(cx: Context) -> &'static str {
    cx.notify_tools_changed().await;
    "Subscribers of the tools have been told."
}

/// Says that the prompts have changed.
#[tool]
async fn test_trigger_prompt_change(cx: Context) -> &'static str {
    cx.notify_prompts_changed().await;
    "Subscribers of the prompts have been told."
}
