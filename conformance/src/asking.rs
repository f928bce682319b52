//! Tools that ask the user or the client's model, with the same code in both eras.

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::elicit::Elicited;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::types::elicitation::{Choice, EnumSchema, FormSchema, MultiSelectSchema, PrimitiveSchema};
use duplexer::types::json::JsonObject;
use duplexer::types::sampling::{CreateMessageParams, SamplingMessage};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .tool(test_sampling)
        .tool(test_elicitation)
        .tool(test_elicitation_sep1034_defaults)
        .tool(test_elicitation_sep1330_enums)
}

/// Asks the client's model.
#[tool]
async fn test_sampling(
    cx: Context,
    /// The question.
    prompt: String,
) -> Result<String, ToolError> {
    Ok(format!("LLM response: {}", model(&cx, "prompt", &prompt).await?))
}

/// Asks the client's model. The library returns the error of a client without sampling.
pub(crate) async fn model(cx: &Context, key: &str, question: &str) -> Result<String, McpError> {
    let question = CreateMessageParams::new(vec![SamplingMessage::user(question)], 100);
    Ok(cx.sample(key, question).await?.content.text())
}

#[derive(Deserialize, JsonSchema)]
struct User {
    /// What to call you.
    username: String,
    /// Where to write to.
    email: String,
}

/// Asks the user.
#[tool]
async fn test_elicitation(
    cx: Context,
    /// What to ask.
    message: String,
) -> Result<String, ToolError> {
    let User { username, email } = cx.elicit("user", &message).await?.accepted()?;
    Ok(format!("User response: {username} <{email}>"))
}

/// A form that is filled in before the user changes it.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
struct Profile {
    name: String,
    age: u8,
    score: f64,
    status: Status,
    verified: bool,
}

impl Default for Profile {
    fn default() -> Self {
        Self { name: "John Doe".to_owned(), age: 30, score: 95.5, status: Status::Active, verified: true }
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

/// Asks the user, who can accept all defaults.
#[tool]
async fn test_elicitation_sep1034_defaults(cx: Context) -> Result<String, ToolError> {
    let profile: Elicited<Profile> = cx.elicit("profile", "Please check your profile").await?;
    Ok(format!("Elicitation completed: {profile:?}"))
}

/// Asks the user to choose, with every kind of choice that a form can have.
#[tool]
async fn test_elicitation_sep1330_enums(cx: Context) -> Result<String, ToolError> {
    let chosen = cx.elicit_form("choices", "Please choose", choices()).await?;
    Ok(format!("Elicitation completed: {chosen:?}"))
}

/// Built manually: no type generates the older form of a choice, without `oneOf`.
fn choices() -> FormSchema {
    let plain = || ["option1", "option2", "option3"].map(Choice::new);
    let titled = || [("value1", "First"), ("value2", "Second"), ("value3", "Third")].map(titled);
    let earlier = json!({
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    });
    let fields = JsonObject::new()
        .with("untitledSingle", PrimitiveSchema::Enum(EnumSchema::new(plain())))
        .with("titledSingle", PrimitiveSchema::Enum(EnumSchema::new(titled())))
        .with("legacyEnum", PrimitiveSchema::Other(earlier.into()))
        .with("untitledMulti", PrimitiveSchema::MultiSelect(MultiSelectSchema::new(plain())))
        .with("titledMulti", PrimitiveSchema::MultiSelect(MultiSelectSchema::new(titled())));
    FormSchema::new(fields)
}

fn titled((value, title): (&str, &str)) -> Choice {
    Choice::titled(value, title)
}
