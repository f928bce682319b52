//! Prompts: arguments with types, and suggestions while they are typed.

use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use serde::Deserialize;

async fn greetings(typed: Completing) -> Vec<String> {
    typed.filter(["hello", "good morning", "good evening"])
}

/// A greeting for somebody.
#[prompt]
pub(super) async fn greet(
    /// Who is greeted.
    name: String,
    /// With which words.
    #[complete(greetings)]
    greeting: Option<String>,
) -> String {
    format!("Say {} to {name}, in one friendly sentence.", greeting.as_deref().unwrap_or("hello"))
}

/// How to judge. Its values complete themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tone {
    Kind,
    Strict,
}

/// A review of a text.
#[prompt]
pub(super) async fn review(
    /// What to look at.
    text: String,
    /// How many remarks at most.
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
