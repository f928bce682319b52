//! The fixture server that most tests of the suite use. One tool per behaviour; its handlers are independent of the era
//! and the transport.

pub mod authored;
#[cfg(unix)]
pub mod cluster;
#[cfg(target_os = "linux")]
pub mod costs;
pub mod protected;
pub mod proxy;
pub mod random;
pub mod reply;
pub mod scale;
pub mod store_program;
pub mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use duplexer_core::error::McpError;
use duplexer_server::{Context, Reply, Server};
use duplexer_types::elicitation::{
    ElicitParams, ElicitUrlParams, FormSchema, PrimitiveSchema, UrlElicitationRequired,
};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::{InputRequest, InputRequiredResult};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::logging::{LoggingLevel, SetLevelParams};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::{GetPromptParams, GetPromptResult, ListPromptsResult};
use duplexer_types::sampling::{CreateMessageParams, SamplingMessage, ToolChoice};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, ToolDefinition};
use duplexer_types::version::{ProtocolVersion, Window};
use duplexer_types::wire::{CacheScope, Freshness};
use serde_json::{Value, json};

/// State created by the fixture's lifespan.
#[derive(Debug)]
struct Greeting {
    word: &'static str,
    /// Number of started calls of `wait`.
    waiting: AtomicU32,
}

/// Number of tool calls on one connection.
#[derive(Debug, Default)]
struct Calls(AtomicU32);

type Answer = Result<Reply<CallToolResult>, McpError>;

/// Returns the fixture server.
pub fn server() -> Server {
    let early = Window::until(ProtocolVersion::V2025_03_26);
    Server::builder("fixture", "1.2.3")
        .instructions("Call the tools.")
        .cache_hint("tools/list", Freshness { ttl_ms: Some(1000), scope: None })
        .cache_hint("prompts/list", Freshness { ttl_ms: Some(9), scope: Some(CacheScope::Public) })
        .lifespan(|| async { Ok::<_, McpError>(Greeting { word: "hello", waiting: AtomicU32::new(0) }) })
        .on_shutdown(|_| async { eprintln!("the fixture has ended") })
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(vec![ToolDefinition::new("echo", Json::object())]))
        })
        .on(methods::PromptsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListPromptsResult::new(vec![]).ttl_ms(0_u64))
        })
        .on(methods::PromptsGet, |_: GetPromptParams| async {
            Ok::<_, McpError>(Reply::<GetPromptResult>::InputRequired(InputRequiredResult::resuming("later")))
        })
        .on(methods::LoggingSetLevel, |cx: Context<Greeting>, params: SetLevelParams| async move {
            cx.connection().set_log_level(params.level);
            Ok::<_, McpError>(EmptyResult::new())
        })
        .on(methods::ToolsCall, call)
        .on_custom("test/echo", |params: Value| async { Ok::<_, McpError>(params) })
        .on_custom("test/nothing", |_: Value| async { Ok::<_, McpError>(()) })
        .on_custom("test/list", |_: Value| async { Ok::<_, McpError>([1, 2]) })
        .on_custom_in("test/early", early, |_: Value| async { Ok::<_, McpError>(()) })
        .build()
        .expect("the fixture is well-formed")
}

async fn call(cx: Context<Greeting>, params: CallToolParams) -> Answer {
    match params.name.as_str() {
        "echo" => {
            Ok(text(params.arguments.as_ref().and_then(|given| given.member("text")).unwrap_or("nothing")))
        }
        "facts" => Ok(facts(&cx)),
        "count" => Ok(count(&cx)),
        "fail" => Err(McpError::internal("secret: the cause")),
        "panic" => panic!("secret: the panic"),
        "refuse" => {
            Err(McpError::from(ErrorObject::new(ErrorCode(7), "refused").with_data(json!({ "why": 1 }))))
        }
        "wait" => {
            cx.state().waiting.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        }
        "waiting" => Ok(text(cx.state().waiting.load(Ordering::Relaxed).to_string())),
        "linger" => linger(&cx).await,
        "block" => block(),
        "print" => Ok(print()),
        "odd" => Ok(Reply::Other(odd()?)),
        "unsayable" => Ok(Reply::InputRequired(InputRequiredResult::new())),
        "input" => {
            Ok(Reply::InputRequired(InputRequiredResult::asking([("roots", InputRequest::ListRoots)])))
        }
        "extension" => cx.require_extension("com.example/x").map(|()| text("declared")),
        "url-required" => Err(UrlElicitationRequired::new([url()]).error().into()),
        "progress" | "log" | "changes" => notify(&cx, &params.name).await,
        asks => ask(&cx, asks).await,
    }
}

fn text(text: impl Into<String>) -> Reply<CallToolResult> {
    Reply::Complete(CallToolResult::text(text))
}

fn facts(cx: &Context<Greeting>) -> Reply<CallToolResult> {
    let client = cx.connection().client();
    let facts = json!({
        "state": cx.state().word,
        "method": cx.method(),
        "id": cx.request_id(),
        "version": cx.protocol_version().as_str(),
        "client": client.info.as_ref().map(|info| &info.name),
        "capabilities": client.capabilities.is_some(),
        "trace": cx.meta().trace.traceparent,
        "meta": cx.raw_meta().is_some(),
        "params": cx.raw_params().is_some(),
        "initialized": cx.connection().is_initialized(),
        "session": cx.connection().session_id(),
        "principal": cx.principal().map(|principal| principal.client_id.as_str()),
    });
    text(facts.to_string())
}

fn count(cx: &Context<Greeting>) -> Reply<CallToolResult> {
    let calls =
        cx.connection().state::<Calls>().unwrap_or_else(|| cx.connection().set_state(Calls::default()));
    text((calls.0.fetch_add(1, Ordering::Relaxed) + 1).to_string())
}

/// Logs when the connection is closing, and never returns.
async fn linger(cx: &Context<Greeting>) -> Answer {
    cx.closing().cancelled().await;
    cx.log(LoggingLevel::Notice, json!("closing")).await;
    std::future::pending().await
}

/// Blocks its thread and never returns.
fn block() -> Answer {
    eprintln!("blocked");
    loop {
        std::thread::park();
    }
}

fn print() -> Reply<CallToolResult> {
    println!("not a frame");
    eprintln!("printed");
    text("printed")
}

fn odd() -> Result<duplexer_server::Outcome, McpError> {
    duplexer_server::Outcome::custom(&json!({ "resultType": "odd", "extra": 1 }))
}

fn url() -> ElicitUrlParams {
    ElicitUrlParams::new("Sign in", "https://example.com/").elicitation_id("e-1")
}

async fn notify(cx: &Context<Greeting>, what: &str) -> Answer {
    let connection = cx.connection();
    match what {
        "progress" => {
            cx.progress(1.0).total(2.0).await;
            cx.progress(1.5).message("nearly").await;
        }
        "log" => {
            cx.logger("fixture").info(json!({ "at": "request" })).await;
            cx.log(LoggingLevel::Error, json!("worse")).await;
            connection.log(LoggingLevel::Critical, json!("beside")).await;
        }
        _ => {
            connection.tools_changed().await;
            connection.prompts_changed().await;
            connection.resources_changed().await;
            connection.resource_updated("a://b").await;
            connection.elicitation_complete("e-1").await;
            cx.notify::<methods::ToolsListChanged>(&duplexer_types::lifecycle::EmptyParams::new()).await;
        }
    }
    Ok(text("sent"))
}

async fn ask(cx: &Context<Greeting>, what: &str) -> Answer {
    let connection = Arc::clone(cx.connection());
    let answer = match what {
        "ping" => connection.ping().await.map(|()| "pong".to_owned())?,
        "roots" => connection.list_roots().await?.roots.len().to_string(),
        "elicit" => {
            // The kernel accepts any form; only the catalog requires a flat one.
            let nested = PrimitiveSchema::Other(json!({ "type": "object" }).into());
            let form = FormSchema::new(JsonObject::new().with("deep", nested));
            let result = cx.elicit_request(&ElicitParams::form("Which?", form)).await?;
            json!(result.content.map(|content| content.len())).to_string()
        }
        "elicit-url" => format!("{:?}", cx.elicit_request(&ElicitParams::Url(url())).await?.action),
        "sample" | "sample-tools" => {
            let mut params = CreateMessageParams::new([SamplingMessage::user("hi")], 10);
            params.tool_choice = (what == "sample-tools").then(ToolChoice::new);
            cx.create_message(&params).await?.model
        }
        _ => {
            let error = ErrorObject::new(ErrorCode::INVALID_PARAMS, format!("Unknown tool: {what}"));
            return Err(error.into());
        }
    };
    Ok(text(answer))
}
