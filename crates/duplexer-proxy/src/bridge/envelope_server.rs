//! Requests of a client of the handshake era to an envelope server.
//!
//! A result that requests input becomes requests to the client; then the call is sent again with the answers.

use std::sync::Arc;
use std::time::Duration;

use duplexer_client::ClientError;
use duplexer_core::dispatch::{Message, OutboundRequest};
use duplexer_core::error::{CallError, McpError};
use duplexer_server::{Context, Outcome};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputRequiredResult};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::methods::{Direction, Method};
use duplexer_types::resource::SubscribeParams;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, WireObject, result_type, result_type_of};
use tokio::time::sleep;

use super::tasks::{self, Tasked};
use crate::failure;
use crate::forward::{call_of, options};
use crate::link::Link;
use crate::pool::Pool;
use crate::progress::ProgressRoute;
use crate::translate::{
    INPUT_RESPONSES, REQUEST_STATE, method_of, params_for_envelope, result_for_handshake,
};
use crate::upstream::Upstream;

/// Maximum number of times that a call is sent again with answers.
const MAX_ROUNDS: u32 = 32;
/// Delay before a call is sent again that was not asked anything: doubled with each round, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const MAX_DELAY: Duration = Duration::from_millis(250);

/// Serves a request.
pub(crate) async fn request(
    pool: &Pool,
    link: &Arc<Link>,
    upstream: &Upstream,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    let version = upstream.client.protocol_version();
    match message.known() {
        Some(Method::LoggingSetLevel) => {
            message
                .decode::<duplexer_types::logging::SetLevelParams>()
                .map_err(|error| McpError::InvalidParams(error.into()))?;
            link.kept.remember(message);
            Ok(Outcome::empty())
        }
        Some(Method::ResourcesSubscribe) => {
            link.streams.subscribe(link, resource(message)?).await?;
            Ok(Outcome::empty())
        }
        Some(Method::ResourcesUnsubscribe) => {
            link.streams.unsubscribe(&resource(message)?);
            Ok(Outcome::empty())
        }
        method if tasks::concerns(method) => tasks::for_handshake_client(link, upstream, cx, message).await,
        Some(method) if !method.exists(Direction::ClientToServer, version) => {
            Err(failure::inexpressible("request of this kind"))
        }
        _ => call(pool, link, upstream, cx, message).await,
    }
}

fn resource(message: &Message) -> Result<String, McpError> {
    let params: SubscribeParams = message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
    Ok(params.uri)
}

/// What a request declares that its client can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declaration {
    /// What the client has declared.
    OfClient,
    /// Tasks too.
    Tasks,
}

/// Sends a call in rounds until there is a result.
async fn call(
    pool: &Pool,
    link: &Link,
    upstream: &Upstream,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    let mut params = params_for_envelope(message)?;
    let progress = ProgressRoute::of(cx);
    let tasks = Tasked::new(cx, link, upstream);
    let is_requested = tasks.is_requested(message)?;
    let mut declaration = if is_requested { Declaration::Tasks } else { Declaration::OfClient };
    let _entry = upstream.messages.enter(call_of(cx));
    for round in 0..MAX_ROUNDS {
        let mut request = OutboundRequest::new(method_of(message)).params(Json::from(params.clone()));
        if let Some(level) = link.kept.level() {
            request.meta.insert(key::LOG_LEVEL, Json::from(level.as_str()));
        }
        request.options = options(link, upstream, progress.as_ref());
        if message.known() == Some(Method::ToolsCall) {
            request.options.headers = pool.tool_headers().emit(message);
        }
        let sent = match declaration {
            Declaration::Tasks => tasks.send(request).await,
            Declaration::OfClient => upstream.client.request_custom(request).await,
        };
        let text = match sent {
            Err(ClientError::Call(CallError::Rpc(error)))
                if declaration == Declaration::OfClient && tasks.is_required(&error) =>
            {
                // The tool runs as a task only. Nothing has run yet; the proxy waits for the task.
                declaration = Declaration::Tasks;
                continue;
            }
            sent => sent.map_err(failure::of_client)?,
        };
        let text = text.as_str();
        match &*result_type_of(text).map_err(McpError::internal)? {
            result_type::INPUT_REQUIRED if message.known().is_some_and(Method::asks_for_input) => {
                let required: InputRequiredResult = serde_json::from_str(text).map_err(McpError::internal)?;
                answer(cx, required, &mut params, round).await?;
            }
            result_type::TASK if declaration == Declaration::Tasks => {
                return if is_requested {
                    Tasked::created(text)
                } else {
                    result_for_handshake(message.known(), &tasks.waited(text).await?)
                };
            }
            result_type::COMPLETE if is_requested => return tasks.finished(text),
            result_type::COMPLETE if message.known() == Some(Method::ToolsList) => {
                pool.tool_headers().learn(text);
                return tasks.listed(text);
            }
            result_type::COMPLETE => return result_for_handshake(message.known(), text),
            _ => return Err(failure::inexpressible("results of the kind that it has sent")),
        }
    }
    let text = format!("The server has requested input more than {MAX_ROUNDS} times");
    Err(McpError::new(ErrorCode::INTERNAL_ERROR, text))
}

/// Asks the client what the server wants to know, and adds the answers to the params of the next round.
async fn answer(
    cx: &Context,
    required: InputRequiredResult,
    params: &mut JsonObject,
    round: u32,
) -> Result<(), McpError> {
    params.remove(INPUT_RESPONSES);
    params.remove(REQUEST_STATE);
    let requests = required.input_requests.unwrap_or_default();
    if requests.is_empty() {
        sleep((FIRST_DELAY * 2_u32.saturating_pow(round.min(8))).min(MAX_DELAY)).await;
    } else {
        let mut responses = JsonObject::new();
        for (name, request) in requests {
            responses.insert(name, ask(cx, &request, None).await?);
        }
        params.insert(INPUT_RESPONSES, Json::from(responses));
    }
    if let Some(state) = required.request_state {
        params.insert(REQUEST_STATE, Json::from(state));
    }
    Ok(())
}

/// Sends a question to the client, with the task that it belongs to. It was declared in the envelope, so the server knows
/// what the client answers.
pub(super) async fn ask(cx: &Context, question: &InputRequest, task: Option<Json>) -> Result<Json, McpError> {
    let version = cx.protocol_version();
    let (method, params) = match question {
        InputRequest::Elicit(params) => (Method::ElicitationCreate, shaped(&**params, version)?),
        InputRequest::CreateMessage(params) => (Method::SamplingCreateMessage, shaped(&**params, version)?),
        InputRequest::ListRoots => (Method::RootsList, Json::object()),
        _ => return Err(failure::inexpressible("question of the kind that it asks")),
    };
    if !method.exists(Direction::ServerToClient, version) {
        let text = format!("The server asks for '{method}', which revision {version} does not have");
        return Err(McpError::new(ErrorCode::INVALID_REQUEST, text));
    }
    let mut request = OutboundRequest::new(method.name()).params(params);
    if let Some(task) = task {
        request.meta.insert(key::RELATED_TASK, task);
    }
    let answer = cx.channel().request(request).await.map_err(McpError::from)?;
    Json::parse(&answer).map_err(McpError::internal)
}

fn shaped<P: WireObject>(params: &P, version: ProtocolVersion) -> Result<Json, McpError> {
    let mut text = Vec::new();
    wire::write_params(&mut text, params, version, None).map_err(McpError::internal)?;
    Json::parse(&String::from_utf8_lossy(&text)).map_err(McpError::internal)
}
