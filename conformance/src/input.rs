//! Tools and a prompt that need something from the client before they can answer.
//!
//! In the envelope era each runs once per round: a question that has not been answered yet is the answer to that round,
//! and what has been answered travels with the client, sealed. Nothing is kept here in between.

mod by_hand;

use duplexer::ServerBuilder;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::server::Requirement;
use serde::Deserialize;

use crate::asking::model;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .tool(by_hand::test_input_required_result_elicitation)
        .tool(test_streaming_elicitation)
        .tool(test_input_required_result_sampling)
        .tool(test_input_required_result_list_roots)
        .tool(test_input_required_result_request_state)
        .tool(test_input_required_result_tampered_state)
        .tool(test_input_required_result_multiple_inputs)
        .tool(test_input_required_result_multi_round)
        .tool(test_input_required_result_capabilities)
        .prompt(test_input_required_result_prompt)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct About {
    context: String,
}

/// Asks for a name.
#[tool]
async fn test_streaming_elicitation(cx: Context) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("user_name", "What is your name?").await?.accepted()?;
    Ok(format!("Hello, {name}!"))
}

/// Asks the client's model.
#[tool]
async fn test_input_required_result_sampling(cx: Context) -> Result<String, ToolError> {
    let said = model(&cx, "capital_question", "What is the capital of France?").await?;
    Ok(format!("The model said: {said}"))
}

/// Asks where the client works.
#[tool]
async fn test_input_required_result_list_roots(cx: Context) -> Result<String, ToolError> {
    Ok(format!("Roots: {}", roots(&cx).await?))
}

/// Asks for a confirmation. That it was asked for is in the state.
#[tool]
async fn test_input_required_result_request_state(cx: Context) -> Result<String, ToolError> {
    let Confirmation { ok } = cx.elicit("confirm", "Please confirm").await?.accepted()?;
    Ok(format!("state-ok: confirmed {ok}"))
}

/// Does the same. Whether the state is still what it was is not for a tool to find out.
#[tool]
async fn test_input_required_result_tampered_state(cx: Context) -> Result<String, ToolError> {
    let Confirmation { ok } = cx.elicit("confirm", "Please confirm").await?.accepted()?;
    Ok(format!("state-ok: confirmed {ok}"))
}

/// Asks the user, the model and for the roots, all in one round.
#[tool]
async fn test_input_required_result_multiple_inputs(cx: Context) -> Result<String, ToolError> {
    let (user, greeting, roots) = tokio::join!(
        cx.elicit("user_name", "What is your name?"),
        model(&cx, "greeting", "Generate a greeting"),
        roots(&cx),
    );
    let Name { name } = user?.accepted()?;
    Ok(format!("{} from {name} at {}", greeting?, roots?))
}

/// Asks twice, one after the other.
#[tool]
async fn test_input_required_result_multi_round(cx: Context) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("step1", "Step 1: What is your name?").await?.accepted()?;
    let Colour { color } = cx.elicit("step2", "Step 2: What is your favorite color?").await?.accepted()?;
    Ok(format!("{name} likes {color}."))
}

/// Asks for a name: the user, or else the model.
#[tool]
async fn test_input_required_result_capabilities(cx: Context) -> Result<String, ToolError> {
    if !cx.connection().client().supports(&Requirement::ElicitationForm) {
        return Ok(model(&cx, "user_name", "Make up a name").await?);
    }
    let Name { name } = cx.elicit("user_name", "What is your name?").await?.accepted()?;
    Ok(name)
}

/// Asks what it is about before it says something.
#[prompt]
async fn test_input_required_result_prompt(cx: Context) -> Result<String, McpError> {
    let answer = cx.elicit("user_context", "What context should the prompt use?").await?;
    Ok(match answer {
        Elicited::Accepted(About { context }) => format!("Use this context: {context}"),
        Elicited::Declined | Elicited::Cancelled => "Use no context.".to_owned(),
    })
}

/// The URIs of the roots.
async fn roots(cx: &Context) -> Result<String, McpError> {
    let roots = cx.roots().await?;
    Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", "))
}
