//! Prompts: typed arguments, and choices that complete themselves.

use duplexer::prelude::*;
use duplexer::types::completion::{CompleteParams, CompletionArgument, CompletionReference, PromptReference};
use duplexer::types::json::JsonObject;
use duplexer::types::prompt::GetPromptParams;
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
        let arguments = |all: &[(&str, &str)]| -> JsonObject<String> {
            all.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        let filled =
            GetPromptParams::new("review").arguments(arguments(&[("code", "x"), ("tone", "strict")]));
        let messages = client.get_prompt(filled).await?.messages;
        same(messages[1].content.as_text(), Some("Be strict."))?;
        let wrong = GetPromptParams::new("review").arguments(arguments(&[("code", "x"), ("tone", "odd")]));
        same(client.get_prompt(wrong).await.is_err(), true)?;
        let reference = CompletionReference::Prompt(PromptReference::new("review"));
        let params = CompleteParams::new(reference, CompletionArgument::new("tone", "s"));
        same(client.complete(params).await?.completion.values, vec!["strict".to_owned()])?;
        client.close().await;
    }
    Ok(())
}
