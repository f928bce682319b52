//! Tools and a prompt that need something from the client before they can answer.
//!
//! Nothing is kept here between two rounds. The first answer says what is needed; the client asks again with it, and
//! with the state it was given, which the server has sealed.

mod round;

use duplexer::prelude::*;
use duplexer::server::{Reply, Requirement, ServerBuilder};
use duplexer::types::input::{InputRequest, InputRequiredResult};
use duplexer::types::prompt::GetPromptResult;

use self::round::{Round, boolean, form, model, text_field};

/// What a tool of several rounds answers.
type Answer = Result<Reply<CallToolResult>, McpError>;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server
        .tool(test_streaming_elicitation)
        .tool(test_input_required_result_elicitation)
        .tool(test_input_required_result_sampling)
        .tool(test_input_required_result_list_roots)
        .tool(test_input_required_result_request_state)
        .tool(test_input_required_result_multiple_inputs)
        .tool(test_input_required_result_multi_round)
        .tool(test_input_required_result_tampered_state)
        .tool(test_input_required_result_capabilities)
        .prompt(test_input_required_result_prompt)
}

fn complete(text: impl Into<String>) -> Answer {
    Ok(Reply::Complete(CallToolResult::text(text)))
}

fn ask<const N: usize>(questions: [(&str, InputRequest); N]) -> InputRequiredResult {
    InputRequiredResult::asking(questions)
}

fn name() -> InputRequest {
    form("What is your name?", "name", text_field())
}

fn confirmation(message: &str) -> InputRequest {
    form(message, "ok", boolean())
}

/// Asks for a name.
#[tool]
async fn test_streaming_elicitation(cx: Context) -> Answer {
    greeted(&Round::of(&cx)?)
}

/// Asks for a name, and again until there is one.
#[tool]
async fn test_input_required_result_elicitation(cx: Context) -> Answer {
    greeted(&Round::of(&cx)?)
}

fn greeted(round: &Round) -> Answer {
    match round.text("user_name", "name") {
        Some(name) => complete(format!("Hello, {name}!")),
        None => Ok(Reply::InputRequired(ask([("user_name", name())]))),
    }
}

/// Asks the client's model.
#[tool]
async fn test_input_required_result_sampling(cx: Context) -> Answer {
    match Round::of(&cx)?.said("capital_question") {
        Some(said) => complete(format!("The model said: {said}")),
        None => {
            Ok(Reply::InputRequired(ask([("capital_question", model("What is the capital of France?"))])))
        }
    }
}

/// Asks where the client works.
#[tool]
async fn test_input_required_result_list_roots(cx: Context) -> Answer {
    match Round::of(&cx)?.roots("client_roots") {
        Some(roots) => complete(format!("Roots: {}", roots.join(", "))),
        None => Ok(Reply::InputRequired(ask([("client_roots", InputRequest::ListRoots)]))),
    }
}

/// Asks for a confirmation, and remembers that it did in a state.
#[tool]
async fn test_input_required_result_request_state(cx: Context) -> Answer {
    confirmed(&Round::of(&cx)?, "Do you confirm?")
}

/// Does the same. That nobody changed the state is not for the tool to find out.
#[tool]
async fn test_input_required_result_tampered_state(cx: Context) -> Answer {
    confirmed(&Round::of(&cx)?, "Do you confirm, with a state that is yours to keep as it is?")
}

fn confirmed(round: &Round, question: &str) -> Answer {
    match (round.state(), round.form("confirm")) {
        (Some("asked"), Some(_)) => complete("state-ok: confirmed"),
        _ => Ok(Reply::InputRequired(ask([("confirm", confirmation(question))]).request_state("asked"))),
    }
}

/// Asks the user, the model and for the roots, all at once.
#[tool]
async fn test_input_required_result_multiple_inputs(cx: Context) -> Answer {
    let round = Round::of(&cx)?;
    let answers = (round.text("user_name", "name"), round.said("greeting"), round.roots("client_roots"));
    if let (Some(name), Some(greeting), Some(roots)) = answers {
        return complete(format!("{greeting}, {name}, at {}!", roots.join(", ")));
    }
    let questions = [
        ("user_name", name()),
        ("greeting", model("Write a greeting.")),
        ("client_roots", InputRequest::ListRoots),
    ];
    Ok(Reply::InputRequired(ask(questions).request_state("asked")))
}

/// Asks twice, and carries the first answer over in the state.
#[tool]
async fn test_input_required_result_multi_round(cx: Context) -> Answer {
    let round = Round::of(&cx)?;
    if let Some(first) = round.state().and_then(|state| state.strip_prefix("name: "))
        && let Some(colour) = round.text("step2", "color")
    {
        return complete(format!("{first} likes {colour}."));
    }
    let asking = match round.text("step1", "name") {
        None => ask([("step1", name())]).request_state("nothing yet"),
        Some(name) => {
            let question = form("What is your favourite colour?", "color", text_field());
            ask([("step2", question)]).request_state(format!("name: {name}"))
        }
    };
    Ok(Reply::InputRequired(asking))
}

/// Asks for whatever this client has said it can give.
#[tool]
async fn test_input_required_result_capabilities(cx: Context) -> Answer {
    let round = Round::of(&cx)?;
    if let Some(answer) = round.text("user_name", "name").or_else(|| round.said("greeting")) {
        return complete(format!("Got: {answer}"));
    }
    let client = cx.connection().client();
    let mut questions = Vec::new();
    if client.supports(&Requirement::ElicitationForm) {
        questions.push(("user_name", name()));
    }
    if client.supports(&Requirement::Sampling) {
        questions.push(("greeting", model("Write a greeting.")));
    }
    if questions.is_empty() {
        return complete("There is nothing this client could be asked.");
    }
    Ok(Reply::InputRequired(InputRequiredResult::asking(questions)))
}

/// Asks what it is about before it says something.
#[prompt]
async fn test_input_required_result_prompt(cx: Context) -> Result<Reply<GetPromptResult>, McpError> {
    Ok(match Round::of(&cx)?.text("user_context", "context") {
        Some(context) => {
            let message = PromptMessage::user(format!("Use this context: {context}"));
            Reply::Complete(GetPromptResult::new(vec![message]))
        }
        None => {
            let question = form("What context should the prompt use?", "context", text_field());
            Reply::InputRequired(ask([("user_context", question)]))
        }
    })
}
