//! The tools: each uses one feature of the server during a call.

use std::future::pending;
use std::sync::{Mutex, PoisonError};

use duplexer_core::dispatch::StreamClosing;
use duplexer_core::error::McpError;
use duplexer_server::{Context, Reply};
use duplexer_types::elicitation::{ElicitParams, FormSchema, PrimitiveSchema, StringSchema};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::{InputRequest, InputRequiredResult, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::page::PaginatedParams;
use duplexer_types::sampling::{CreateMessageParams, SamplingMessage};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, ToolDefinition};
use duplexer_types::version::Era;
use serde::Deserialize;

use crate::Shared;

type Called = Result<Reply<CallToolResult>, McpError>;

const NAMES: [&str; 11] = [
    "echo",
    "progress",
    "wait",
    "cancelled",
    "log",
    "change",
    "leave",
    "ask_user",
    "ask_model",
    "ask_roots",
    "rounds",
];

pub(crate) async fn list(_: PaginatedParams) -> Result<ListToolsResult, McpError> {
    let schema = Json::parse(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#);
    let schema = schema.map_err(McpError::internal)?;
    let tools = NAMES
        .iter()
        .map(|name| ToolDefinition::new(*name, schema.clone()).description(format!("Shows {name}.")));
    Ok(ListToolsResult::new(tools.collect::<Vec<_>>()))
}

pub(crate) async fn call(cx: Context<Shared>, params: CallToolParams) -> Called {
    match params.name.as_str() {
        "echo" => Ok(echo(&params)),
        "progress" => progress(&cx).await,
        "wait" => wait(&cx, &params).await,
        "cancelled" => Ok(cancelled(&cx, &params)),
        "log" => log(&cx).await,
        "change" => change(&cx, &params).await,
        "leave" => Ok(leave(&cx)),
        "ask_user" => ask(&cx, &params, "user", question().into()).await,
        "ask_model" => ask(&cx, &params, "model", sample().into()).await,
        "ask_roots" => ask(&cx, &params, "roots", InputRequest::ListRoots).await,
        "rounds" => Ok(rounds(&cx, &params)),
        name => {
            let message = format!("Unknown tool: {name}");
            Err(ErrorObject::new(ErrorCode::INVALID_PARAMS, message).into())
        }
    }
}

fn text(text: impl Into<String>) -> Reply<CallToolResult> {
    Reply::Complete(CallToolResult::text(text))
}

/// Arguments of all tools.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments {
    text: Option<String>,
}

fn given(params: &CallToolParams) -> Option<String> {
    params.arguments.as_ref()?.decode::<Arguments>().ok()?.text
}

fn echo(params: &CallToolParams) -> Reply<CallToolResult> {
    match given(params) {
        Some(given) => text(given),
        None => Reply::Complete(CallToolResult::error("/text: expected a string")),
    }
}

async fn progress(cx: &Context<Shared>) -> Called {
    for step in 1..=3_i32 {
        cx.progress(step).total(3.0).message("working").await;
    }
    Ok(text("done"))
}

/// Never ends by itself: its cancellation is recorded in `cancelled`.
async fn wait(cx: &Context<Shared>, params: &CallToolParams) -> Called {
    struct Dropped<'a>(&'a Mutex<Vec<String>>, String);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            let name = std::mem::take(&mut self.1);
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        }
    }
    let _dropped = Dropped(&cx.state().cancelled, given(params).unwrap_or_default());
    cx.progress(1.0).message("waiting").await;
    pending().await
}

fn cancelled(cx: &Context<Shared>, params: &CallToolParams) -> Reply<CallToolResult> {
    let name = given(params).unwrap_or_default();
    let cancelled = cx.state().cancelled.lock().unwrap_or_else(PoisonError::into_inner);
    text(cancelled.iter().filter(|other| **other == name).count().to_string())
}

async fn log(cx: &Context<Shared>) -> Called {
    cx.logger("interop").debug("quiet").await;
    cx.logger("interop").warning("loud").await;
    Ok(text("logged"))
}

async fn change(cx: &Context<Shared>, params: &CallToolParams) -> Called {
    cx.notify_tools_changed().await;
    cx.notify_resource_updated(&given(params).unwrap_or_else(|| "demo://text".to_owned())).await;
    Ok(text("changed"))
}

/// Closes the stream before the response. With an event store the client must resume it.
fn leave(cx: &Context<Shared>) -> Reply<CallToolResult> {
    text(match cx.close_stream() {
        StreamClosing::Closing => "come back",
        StreamClosing::NotSupported => "stay",
    })
}

fn question() -> ElicitParams {
    let name = PrimitiveSchema::String(StringSchema::new());
    let form = FormSchema::new(JsonObject::new().with("name", name)).required(vec!["name".to_owned()]);
    ElicitParams::form("What is your name?", form)
}

fn sample() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::user("Say hello.")], 16)
}

/// In the handshake era the server sends a request during the call (for roots outside the call: over HTTP on the
/// standalone stream); in the envelope era the result contains the request.
async fn ask(cx: &Context<Shared>, params: &CallToolParams, key: &str, question: InputRequest) -> Called {
    if cx.protocol_version().era() == Era::Envelope {
        let answers = params.input_responses.as_ref();
        return Ok(match answers.and_then(|answers| answers.get(key)) {
            Some(answer) => text(shown(answer)?),
            None => Reply::InputRequired(InputRequiredResult::asking([(key, question)])),
        });
    }
    let answer = match question {
        InputRequest::Elicit(params) => InputResponse::Elicit(cx.elicit_request(&params).await?),
        InputRequest::CreateMessage(params) => {
            InputResponse::CreateMessage(cx.create_message(&params).await?)
        }
        _ => InputResponse::ListRoots(cx.connection().list_roots().await?),
    };
    Ok(text(shown(&answer)?))
}

fn shown(answer: &InputResponse) -> Result<String, McpError> {
    Ok(match answer {
        InputResponse::Elicit(result) => {
            let content = result.content.clone().unwrap_or_default();
            let name =
                content.get("name").map(Json::decode::<String>).transpose().map_err(McpError::internal)?;
            format!("{} {}", result.action, name.unwrap_or_default())
        }
        InputResponse::CreateMessage(result) => result.content.text(),
        InputResponse::ListRoots(result) => {
            result.roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => return Err(McpError::internal("an answer of another kind")),
    })
}

/// Two input requests at once, then only a request state, then the result: the client returns the state.
fn rounds(cx: &Context<Shared>, params: &CallToolParams) -> Reply<CallToolResult> {
    if cx.protocol_version().era() == Era::Handshake {
        return text("only where results can ask");
    }
    match params.request_state.as_deref() {
        None => {
            let both = [("user", question().into()), ("roots", InputRequest::ListRoots)];
            Reply::InputRequired(InputRequiredResult::asking(both).request_state("first"))
        }
        Some("first") => {
            let answered = params.input_responses.as_ref().map_or(0, JsonObject::len);
            Reply::InputRequired(InputRequiredResult::resuming(format!("answers: {answered}")))
        }
        Some(notes) => text(notes),
    }
}
