//! Prompts: typed arguments, and enums that provide their own completions.

use duplexer::prelude::*;
use duplexer::types::completion::PromptReference;
use duplexer_examples::{clients, same};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Kind,
    Strict,
}

/// Asks for a review.
#[prompt]
async fn review(
    /// What to look at.
    code: String,
    tone: Option<Tone>,
) -> Vec<PromptMessage> {
    let how = if matches!(tone, Some(Tone::Strict)) { "Be strict." } else { "Be kind." };
    vec![PromptMessage::user(format!("Review this: {code}")), PromptMessage::user(how)]
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("reviewer", "1.0.0").prompt(review).build()?;
    for client in clients(&server).await? {
        let messages = client.get_prompt("review", [("code", "x"), ("tone", "strict")]).await?.messages;
        same(messages[1].content.as_text(), Some("Be strict."))?;
        let wrong = client.get_prompt("review", [("code", "x"), ("tone", "odd")]).await;
        same(wrong.is_err(), true)?;
        let found = client.complete(PromptReference::new("review"), "tone", "s").await?;
        same(found.completion.values, vec!["strict".to_owned()])?;
        client.close().await;
    }
    Ok(())
}
