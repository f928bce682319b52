//! The tools: each shows one thing a server can do while it is called.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_core::error::McpError;
use duplexer_core::server::{Context, Reply};
use duplexer_types::elicitation::{ElicitParams, FormSchema, PrimitiveSchema, StringSchema};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::{InputRequest, InputRequiredResult, InputResponse};
use duplexer_types::json::{Json, Members};
use duplexer_types::logging::LoggingLevel;
use duplexer_types::page::PaginatedParams;
use duplexer_types::sampling::{CreateMessageParams, SamplingMessage};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, Tool};
use duplexer_types::version::Era;
use serde::Deserialize;

use crate::Shared;

type Called = Result<Reply<CallToolResult>, McpError>;

const NAMES: [&str; 10] = [
    "echo",
    "progress",
    "wait",
    "cancelled",
    "log",
    "change",
    "ask_user",
    "ask_model",
    "ask_roots",
    "rounds",
];

pub(crate) async fn list(_: PaginatedParams) -> Result<ListToolsResult, McpError> {
    let schema = Json::parse(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#);
    let schema = schema.map_err(McpError::internal)?;
    let tools =
        NAMES.iter().map(|name| Tool::new(*name, schema.clone()).description(format!("Shows {name}.")));
    Ok(ListToolsResult::new(tools.collect::<Vec<_>>()))
}

pub(crate) async fn call(cx: Context<Shared>, params: CallToolParams) -> Called {
    match params.name.as_str() {
        "echo" => Ok(echo(params)),
        "progress" => progress(&cx).await,
        "wait" => wait(&cx).await,
        "cancelled" => Ok(text(cx.state().cancelled.load(Ordering::SeqCst).to_string())),
        "log" => log(&cx).await,
        "change" => change(&cx).await,
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

fn echo(params: CallToolParams) -> Reply<CallToolResult> {
    #[derive(Deserialize)]
    struct Echo {
        text: String,
    }
    let arguments = params.arguments.unwrap_or_else(Json::object);
    match arguments.decode::<Echo>() {
        Ok(echo) => text(echo.text),
        Err(error) => Reply::Complete(CallToolResult::error(format!("/text: {error}"))),
    }
}

async fn progress(cx: &Context<Shared>) -> Called {
    for step in 1..=3_i32 {
        cx.progress(step.into(), Some(3.0), Some("working")).await;
    }
    Ok(text("done"))
}

/// Never ends by itself: that it is dropped shows in `cancelled`.
async fn wait(cx: &Context<Shared>) -> Called {
    struct Dropped<'a>(&'a AtomicUsize);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let _dropped = Dropped(&cx.state().cancelled);
    cx.progress(1.0, None, Some("waiting")).await;
    pending().await
}

async fn log(cx: &Context<Shared>) -> Called {
    cx.log(LoggingLevel::Debug, Some("interop"), "quiet").await;
    cx.log(LoggingLevel::Warning, Some("interop"), "loud").await;
    Ok(text("logged"))
}

async fn change(cx: &Context<Shared>) -> Called {
    cx.notify_tools_changed().await;
    cx.notify_resource_updated("demo://text").await;
    Ok(text("changed"))
}

fn question() -> ElicitParams {
    let name = PrimitiveSchema::String(StringSchema::new());
    let form = FormSchema::new(Members::new().with("name", name)).required(vec!["name".to_owned()]);
    ElicitParams::form("What is your name?", form)
}

fn sample() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::user("Say hello.")], 16_u64)
}

/// In the handshake era the client is asked while the call waits; in the envelope era the answer is the question.
async fn ask(cx: &Context<Shared>, params: &CallToolParams, key: &str, question: InputRequest) -> Called {
    if cx.protocol_version().era() == Era::Envelope {
        let answers = params.input_responses.as_ref();
        return Ok(match answers.and_then(|answers| answers.get(key)) {
            Some(answer) => text(shown(answer)?),
            None => Reply::InputRequired(InputRequiredResult::asking([(key, question)])),
        });
    }
    let answer = match question {
        InputRequest::Elicit(params) => InputResponse::Elicit(cx.elicit_now(&params).await?),
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

/// Two questions at once, then nothing but a state, then the end: the handler's notes travel with the client.
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
            let answered = params.input_responses.as_ref().map_or(0, Members::len);
            Reply::InputRequired(InputRequiredResult::resuming(format!("answers: {answered}")))
        }
        Some(notes) => text(notes),
    }
}
