//! Prompts: without arguments, with arguments, and with content other than text.

use duplexer::ServerBuilder;
use duplexer::completion::CompletionRequest;
use duplexer::prelude::*;
use duplexer::types::resource::ResourceContents;

use crate::contents::picture;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .prompt(test_simple_prompt)
        .prompt(test_prompt_with_arguments)
        .prompt(test_prompt_with_embedded_resource)
        .prompt(test_prompt_with_image)
}

/// Says one thing.
#[prompt]
async fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// Says what it is given.
#[prompt]
async fn test_prompt_with_arguments(
    /// The first thing to say.
    #[complete(suggest)]
    arg1: String,
    /// The second thing to say.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

async fn suggest(request: CompletionRequest) -> Vec<String> {
    request.filter(["paris", "park", "party", "test value"])
}

/// Shows a resource.
#[prompt]
async fn test_prompt_with_embedded_resource(
    /// The resource's URI.
    #[serde(rename = "resourceUri")]
    uri: String,
) -> Vec<PromptMessage> {
    let resource = ResourceContents::text(uri, "Embedded resource content for testing.");
    vec![
        PromptMessage::user(Content::resource(resource.mime_type("text/plain"))),
        PromptMessage::user("Please process the embedded resource above."),
    ]
}

/// Shows a picture.
#[prompt]
async fn test_prompt_with_image() -> Vec<PromptMessage> {
    vec![PromptMessage::user(picture()), PromptMessage::user("Please analyze the image above.")]
}
