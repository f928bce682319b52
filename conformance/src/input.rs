//! Tools and a prompt that request input from the client.
//!
//! In the envelope era each runs once per round: an unanswered request is the result of that round, and earlier answers
//! are sent back by the client in the sealed request state. The server keeps no state between rounds.

mod manual;

use duplexer::Context;
use duplexer::ServerBuilder;
use duplexer::elicit::Elicited;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::server::ClientCapability;
use serde::Deserialize;

use crate::asking::model;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .tool(manual::test_input_required_result_elicitation)
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
    let answer = model(&cx, "capital_question", "What is the capital of France?").await?;
    Ok(format!("The model said: {answer}"))
}

/// Asks where the client works.
#[tool]
async fn test_input_required_result_list_roots(cx: Context) -> Result<String, ToolError> {
    Ok(format!("Roots: {}", roots(&cx).await?))
}

/// Asks for a confirmation. The request state records that it was requested.
#[tool]
async fn test_input_required_result_request_state(cx: Context) -> Result<String, ToolError> {
    let Confirmation { ok } = cx.elicit("confirm", "Please confirm").await?.accepted()?;
    Ok(format!("state-ok: confirmed {ok}"))
}

/// Asks for a confirmation. The server checks the integrity of the state, not the tool.
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
    if !cx.connection().client().supports(&ClientCapability::ElicitationForm) {
        return Ok(model(&cx, "user_name", "Make up a name").await?);
    }
    let Name { name } = cx.elicit("user_name", "What is your name?").await?.accepted()?;
    Ok(name)
}

/// Asks for a topic first.
#[prompt]
async fn test_input_required_result_prompt(cx: Context) -> Result<String, McpError> {
    let answer = cx.elicit("user_context", "What context should the prompt use?").await?;
    Ok(match answer {
        Elicited::Accepted(About { context }) => format!("Use this context: {context}"),
        Elicited::Declined | Elicited::Cancelled => "Use no context.".to_owned(),
    })
}

/// Returns the URIs of the roots.
async fn roots(cx: &Context) -> Result<String, McpError> {
    let roots = cx.roots("roots").await?;
    Ok(roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", "))
}
