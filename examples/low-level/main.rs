//! The low-level server: handlers of single methods, which check no arguments, for proxies, generated tools and own methods.
//!
//! Run: `cargo run -p duplexer-examples --bin low-level`; it serves standard input and output.
//! Try: `duplexer call shout text=hello -- target/debug/low-level`
//! Then call the method of your own, with one line for its standard input: `{"jsonrpc":"2.0","id":1,"method":"com.example/words","params":
//! {"text":"a b","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`.

use duplexer::Json;
use duplexer::prelude::*;
use duplexer::types::error::ErrorCode;
use duplexer::types::methods;
use duplexer::types::page::PaginatedParams;
use duplexer::types::tool::{CallToolParams, ListToolsResult, ToolDefinition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// Answers `tools/list`.
async fn list(_: PaginatedParams) -> Result<ListToolsResult, McpError> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let mut shout = ToolDefinition::new("shout", Json::from(schema));
    shout.description = Some("Shouts.".into());
    Ok(ListToolsResult::new(vec![shout]))
}

/// Answers `tools/call`.
async fn call(params: CallToolParams) -> Result<CallToolResult, McpError> {
    if params.name != "shout" {
        return Err(McpError::new(ErrorCode::INVALID_PARAMS, format!("Unknown tool: {}", params.name)));
    }
    let arguments = params.arguments.unwrap_or_else(Json::object);
    let Text { text } = arguments.decode().or_show()?;
    Ok(CallToolResult::text(text.to_uppercase()))
}

#[derive(Serialize)]
struct Words {
    count: usize,
}

/// Answers a method of our own. Its params are decoded before it runs.
async fn words(Text { text }: Text) -> Result<Words, McpError> {
    Ok(Words { count: text.split_whitespace().count() })
}

fn main() -> Result<(), BoxError> {
    let server = Server::builder("low-level", "1.0.0")
        .on(methods::ToolsList, list)
        .on(methods::ToolsCall, call)
        .on_custom("com.example/words", words)
        .build()?;
    Ok(run_stdio(&server)?)
}
