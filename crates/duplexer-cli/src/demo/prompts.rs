//! Prompts: arguments with types, and suggestions while they are typed.

use duplexer::completion::CompletionRequest;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use serde::Deserialize;

async fn greetings(request: CompletionRequest) -> Vec<String> {
    request.filter(["hello", "good morning", "good evening"])
}

/// Greets a person.
#[prompt]
pub(super) async fn greet(
    /// The name of the person.
    name: String,
    /// The greeting to use.
    #[complete(greetings)]
    greeting: Option<String>,
) -> String {
    format!("Say {} to {name}, in one friendly sentence.", greeting.as_deref().unwrap_or("hello"))
}

/// Style of a review. Its values are completed automatically.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tone {
    Kind,
    Strict,
}

/// Reviews a text.
#[prompt]
pub(super) async fn review(
    /// The text to review.
    text: String,
    /// Maximum number of remarks.
    #[default(3)]
    remarks: u8,
    tone: Option<Tone>,
) -> Vec<PromptMessage> {
    let how = match tone {
        Some(Tone::Strict) => "Be strict.",
        Some(Tone::Kind) | None => "Be kind.",
    };
    vec![
        PromptMessage::user(format!("Review this text, with {remarks} remarks at most. {how}")),
        PromptMessage::user(text),
    ]
}
