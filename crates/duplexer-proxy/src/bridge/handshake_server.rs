//! Requests of a client of the envelope era to a handshake server.
//!
//! The call runs in a task of its own. When the server asks its client something, the client's request ends with the
//! questions, and the call waits. The client sends the request again with the answers, and the call goes on.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::{Message, OutboundRequest};
use duplexer_core::error::{CallError, McpError};
use duplexer_server::{ClientProfile, Context, Outcome};
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputRequiredResult};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::DiscoverResult;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use serde::Deserialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::listen;
use super::questions::{Asked, Questions};
use super::tasks::{self, Wish};
use crate::failure;
use crate::forward::{call_of, level_of, options, unknown_state};
use crate::link::Link;
use crate::messages::{Call, CallEntry};
use crate::pool::Pool;
use crate::progress::ProgressRoute;
use crate::translate::{method_of, params_for_handshake, result_for_envelope};
use crate::upstream::Upstream;

/// A call that the server works on, while its client answers questions.
pub(crate) struct WaitingCall {
    method: Option<Method>,
    wish: Wish,
    /// One task. Dropping it cancels the request at the server.
    running: JoinSet<Result<ByteString, CallError>>,
    asked: mpsc::Receiver<Asked>,
    questions: Questions,
    open: Vec<Open>,
    entry: CallEntry,
    progress: Option<ProgressRoute>,
}

/// A question that the client has not answered.
struct Open {
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Json>,
}

/// Members of a request that the client sends again.
#[derive(Deserialize)]
struct Round {
    #[serde(rename = "requestState")]
    state: Option<String>,
    #[serde(rename = "inputResponses")]
    responses: Option<JsonObject>,
}

/// Serves a request.
pub(crate) async fn request(
    pool: &Pool,
    link: &Arc<Link>,
    upstream: &Arc<Upstream>,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    match message.known() {
        Some(Method::ServerDiscover) => return discover(upstream),
        Some(Method::SubscriptionsListen) => return listen::translated(cx, message, link).await,
        method if tasks::concerns(method) => {
            return tasks::for_envelope_client(link, upstream, message).await;
        }
        Some(method) if method.asks_for_input() => {
            let round: Round = message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
            if let Some(state) = round.state {
                let mut call = upstream.take(&state).ok_or_else(unknown_state)?;
                call.resume(cx);
                return match call.answer(round.responses.unwrap_or_default()) {
                    Answered::Completely => call.run(link, upstream, pool).await,
                    Answered::InPart => call.keep(upstream),
                };
            }
        }
        _ => {}
    }
    if let Some(level) = level_of(cx) {
        set_level(upstream, link, level).await;
    }
    let wish = tasks::wish(upstream, message).await?;
    start(link, upstream, cx, message, wish)?.run(link, upstream, pool).await
}

/// Describes the server as it would describe itself in this era.
fn discover(upstream: &Upstream) -> Result<Outcome, McpError> {
    let client = &upstream.client;
    let versions: Vec<String> = ProtocolVersion::envelope_names().into_iter().map(Into::into).collect();
    let capabilities = tasks::translated(
        client.server_capabilities(),
        client.protocol_version(),
        ProtocolVersion::LATEST_ENVELOPE,
    );
    let mut result = DiscoverResult::new(versions, capabilities);
    result.instructions = client.instructions().map(str::to_owned);
    if let Some(info) = client.server_info() {
        let info = Json::encode(info).map_err(McpError::internal)?;
        result.meta = Some(JsonObject::new().with(key::SERVER_INFO, info));
    }
    Ok(Outcome::of(result))
}

/// Tells the server the level of log messages: in its era the session has one, not the request.
async fn set_level(upstream: &Upstream, link: &Link, level: LoggingLevel) {
    if upstream.client.server_capabilities().logging.is_none() || !upstream.changes_level(level) {
        return;
    }
    let params = Json::from(serde_json::json!({ "level": level.as_str() }));
    let mut request = OutboundRequest::new(Method::LoggingSetLevel.name()).params(params);
    request.options = options(link, upstream, None);
    if let Err(error) = upstream.client.forward(request).await {
        tracing::debug!(%error, "the server has not taken the level of log messages");
    }
}

/// Starts a call at the server.
fn start(
    link: &Link,
    upstream: &Arc<Upstream>,
    cx: &Context,
    message: &Message,
    wish: Wish,
) -> Result<WaitingCall, McpError> {
    let progress = ProgressRoute::of(cx);
    let mut request = OutboundRequest::new(method_of(message)).params(params_for_handshake(message, wish)?);
    request.options = options(link, upstream, progress.as_ref());
    let client = ClientProfile::new(None, Some(link.caller().capabilities.clone()));
    let (questions, asked) = Questions::new(client);
    let call = Call {
        questions: message
            .known()
            .filter(|method| method.asks_for_input())
            .map(|_| Box::new(questions.clone())),
        ..call_of(cx)
    };
    let entry = upstream.messages.enter(call);
    let client = upstream.client.clone();
    let mut running = JoinSet::new();
    running.spawn(async move { client.forward(request).await });
    let method = message.known();
    Ok(WaitingCall { method, wish, running, asked, questions, open: Vec::new(), entry, progress })
}

/// Whether the client has answered all questions.
enum Answered {
    Completely,
    InPart,
}

impl WaitingCall {
    /// Continues on behalf of a request that was sent again.
    fn resume(&mut self, cx: &Context) {
        self.entry.replace(Call { questions: Some(Box::new(self.questions.clone())), ..call_of(cx) });
        if let Some(progress) = &self.progress {
            progress.replace(cx);
        }
    }

    fn answer(&mut self, mut responses: JsonObject) -> Answered {
        for question in std::mem::take(&mut self.open) {
            match responses.remove(&question.key) {
                // The server may have withdrawn it.
                Some(response) => drop(question.answer.send(response)),
                None if question.answer.is_closed() => {}
                None => self.open.push(question),
            }
        }
        if self.open.is_empty() { Answered::Completely } else { Answered::InPart }
    }

    fn ask(&mut self, Asked { request, answer }: Asked) {
        if !answer.is_closed() {
            let key = format!("question-{}", self.open.len() + 1);
            self.open.push(Open { key, request, answer });
        }
    }

    /// Waits for the result or for questions.
    async fn run(mut self, link: &Link, upstream: &Arc<Upstream>, pool: &Pool) -> Result<Outcome, McpError> {
        loop {
            tokio::select! {
                biased;
                ended = self.running.join_next() => return self.finish(ended, link, upstream, pool),
                Some(asked) = self.asked.recv() => self.ask(asked),
            }
            while let Ok(asked) = self.asked.try_recv() {
                self.ask(asked);
            }
            if !self.open.is_empty() {
                return self.keep(upstream);
            }
        }
    }

    fn finish(
        &self,
        ended: Ended,
        link: &Link,
        upstream: &Arc<Upstream>,
        pool: &Pool,
    ) -> Result<Outcome, McpError> {
        let text = match ended {
            Some(Ok(outcome)) => outcome.map_err(failure::of_call)?,
            Some(Err(error)) => return Err(McpError::internal(error)),
            None => return Err(McpError::internal("a call has no task")),
        };
        if self.method == Some(Method::ToolsList) {
            pool.tool_headers().learn(&text);
            upstream.messages.followed().learn(&text);
        }
        if self.wish == Wish::Task {
            return tasks::created(upstream, link, &text);
        }
        result_for_envelope(&text, upstream.client.server_info())
    }

    /// Ends the request of the client with the open questions, and keeps the call.
    fn keep(self, upstream: &Upstream) -> Result<Outcome, McpError> {
        let state = random_state()?;
        let questions = self.open.iter().map(|question| (question.key.clone(), question.request.clone()));
        let required = InputRequiredResult::asking(questions).request_state(state.as_str());
        if upstream.keep(state, self) {
            return Ok(Outcome::of(required));
        }
        let text = "Too many calls wait for answers of their clients";
        Err(McpError::new(ErrorCode::INTERNAL_ERROR, text))
    }
}

type Ended = Option<Result<Result<ByteString, CallError>, tokio::task::JoinError>>;

/// Returns a random text that no other client can guess.
pub(super) fn random_state() -> Result<String, McpError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| McpError::internal(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
