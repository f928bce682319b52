//! Tools with every kind of content, progress and log messages.

use std::time::Duration;

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::prelude::*;
use duplexer::types::logging::LoggingLevel;
use duplexer::types::resource::ResourceContents;
use tokio::time::sleep;

use crate::asking::model;
use crate::contents::{picture, sound};

/// Pause between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    // The suite calls the first tool without arguments, so that one has none.
    server
        .tool(test_simple_text)
        .tool(test_image_content)
        .tool(test_audio_content)
        .tool(test_embedded_resource)
        .tool(test_multiple_content_types)
        .tool(test_error_handling)
        .tool(test_tool_with_progress)
        .tool(test_tool_with_logging)
        .tool(test_logging_tool)
        .tool(test_reconnection)
        .tool(test_missing_capability)
}

/// Answers with a text.
#[tool(read_only)]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers with a picture.
#[tool(read_only)]
async fn test_image_content() -> Content {
    picture()
}

/// Answers with a sound.
#[tool(read_only)]
async fn test_audio_content() -> Content {
    sound()
}

/// Answers with a resource.
#[tool(read_only)]
async fn test_embedded_resource() -> Content {
    let text = "This is an embedded resource content.";
    Content::resource(ResourceContents::text("test://embedded-resource", text).mime_type("text/plain"))
}

/// Answers with a text, a picture and a resource.
#[tool(read_only)]
async fn test_multiple_content_types() -> [Content; 3] {
    let json = r#"{"test":"data","value":123}"#;
    let resource = ResourceContents::text("test://mixed-content-resource", json);
    [
        Content::text("Multiple content types test:"),
        picture(),
        Content::resource(resource.mime_type("application/json")),
    ]
}

/// Always fails with an error for the model.
#[tool(read_only)]
async fn test_error_handling() -> Result<String, ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing"))
}

/// Reports progress.
#[tool(read_only)]
async fn test_tool_with_progress(cx: Context) -> &'static str {
    for step in [0.0, 50.0, 100.0] {
        cx.progress(step).total(100.0).await;
        sleep(PAUSE).await;
    }
    "Done."
}

/// Logs what it does.
#[tool(read_only)]
async fn test_tool_with_logging(cx: Context) -> &'static str {
    for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        cx.log(LoggingLevel::Info, step).await;
        sleep(PAUSE).await;
    }
    "Done."
}

/// Logs; the messages reach only clients that requested them.
#[tool(read_only)]
async fn test_logging_tool(cx: Context) -> &'static str {
    cx.log(LoggingLevel::Info, "The tool has been called.").await;
    "Logged."
}

/// Closes the stream before the response: the client must resume it.
#[tool(read_only)]
async fn test_reconnection(cx: Context) -> &'static str {
    cx.close_stream();
    sleep(PAUSE).await;
    "The stream was resumed."
}

/// Requires a client with sampling.
#[tool(read_only)]
async fn test_missing_capability(cx: Context) -> Result<String, McpError> {
    model(&cx, "greeting", "Say hello.").await
}
