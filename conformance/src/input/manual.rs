//! A tool that handles its rounds manually, and so accepts an answer to a question that it never asked.
//!
//! The suite requires this: it answers in the first round. Tools that await their questions ask again instead.

use duplexer::Context;
use duplexer::prelude::*;
use duplexer::server::Reply;
use duplexer::types::elicitation::{ElicitAction, ElicitParams, FormSchema, PrimitiveSchema, StringSchema};
use duplexer::types::input::{InputRequiredResult, InputResponse};
use duplexer::types::json::JsonObject;

/// Asks for a name, and again until there is one.
#[tool]
pub(super) async fn test_input_required_result_elicitation(
    cx: Context,
) -> Result<Reply<CallToolResult>, McpError> {
    Ok(match cx.input_responses()?.get("user_name").and_then(name) {
        Some(name) => Reply::Complete(CallToolResult::text(format!("Hello, {name}!"))),
        None => Reply::InputRequired(InputRequiredResult::asking([("user_name", question().into())])),
    })
}

fn question() -> ElicitParams {
    let fields = JsonObject::new().with("name", PrimitiveSchema::String(StringSchema::new()));
    ElicitParams::form("What is your name?", FormSchema::new(fields).required(vec!["name".to_owned()]))
}

/// Ignores other kinds of answers.
fn name(answer: &InputResponse) -> Option<String> {
    match answer {
        InputResponse::Elicit(result) if result.action == ElicitAction::Accept => {
            result.content.as_ref()?.get("name")?.decode().ok()
        }
        _ => None,
    }
}
