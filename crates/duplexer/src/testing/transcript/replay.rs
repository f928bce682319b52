//! A server that gives recorded answers.

use std::sync::{Arc, Mutex};

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{RawFrame, RequestId, batch, read};
use duplexer_types::meta::{RequestMeta, key};
use duplexer_types::methods::{
    Initialize, Method, Notification as _, Ping, Progress, Request as _, ServerDiscover,
};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::result_type;
use serde_json::{Value, json};

use super::{Sender, TranscriptMessage};
use crate::dispatch::{Message, OutboundRequest, lock};
use crate::error::McpError;
use crate::middleware::Next;
use crate::server::{BuildError, Context, Outcome, Server};

/// A recorded request, and what the server sent because of it.
#[derive(Debug)]
struct Exchange {
    connection: u64,
    id: RequestId,
    method: String,
    /// Params without `_meta`.
    params: Value,
    progress_token: Option<RequestId>,
    /// What the server sent before its answer.
    before: Vec<Sent>,
    /// `None` if the recording ended first.
    answer: Option<Result<String, ErrorObject>>,
}

/// A message of the server that is no answer.
#[derive(Clone, Debug)]
struct Sent {
    /// Requests wait for the client's answer.
    is_request: bool,
    method: String,
    params: Option<Json>,
}

/// The recorded exchanges, and which of them were replayed.
#[derive(Debug)]
struct Replay {
    exchanges: Vec<Exchange>,
    used: Mutex<Vec<bool>>,
}

/// Builds the server.
pub(super) fn server(messages: &[TranscriptMessage]) -> Result<Server, BuildError> {
    let exchanges = exchanges(messages);
    let used = Mutex::new(vec![false; exchanges.len()]);
    let replay = Arc::new(Replay { exchanges, used });
    Server::builder("transcript", "1")
        .middleware(move |cx: Context, message: Message, next: Next| {
            let replay = Arc::clone(&replay);
            async move {
                if cx.request_id().is_none() {
                    return next.run(cx, message).await;
                }
                replay.answer(&cx, &message).await
            }
        })
        .build()
}

/// Sorts the messages of a transcript into exchanges.
fn exchanges(messages: &[TranscriptMessage]) -> Vec<Exchange> {
    let mut all: Vec<Exchange> = Vec::new();
    for message in messages {
        match read(&message.text) {
            Ok(RawFrame::Batch(text)) => {
                for part in batch(text).into_iter().flatten() {
                    add(&mut all, message, part);
                }
            }
            _ => add(&mut all, message, &message.text),
        }
    }
    all
}

fn add(all: &mut Vec<Exchange>, message: &TranscriptMessage, text: &str) {
    let connection = message.connection;
    let is_open = |exchange: &&mut Exchange| exchange.connection == connection && exchange.answer.is_none();
    match (message.from, read(text)) {
        (Sender::Client, Ok(RawFrame::Request { id, call })) => all.push(Exchange {
            connection,
            id,
            method: call.method.to_string(),
            params: without_meta(call.params),
            progress_token: progress_token(call.params),
            before: Vec::new(),
            answer: None,
        }),
        (Sender::Server, Ok(RawFrame::Success { id, result })) => {
            if let Some(exchange) = all.iter_mut().filter(is_open).find(|exchange| exchange.id == id) {
                exchange.answer = Some(Ok(result.to_owned()));
            }
        }
        (Sender::Server, Ok(RawFrame::Failure { id: Some(id), error })) => {
            if let Some(exchange) = all.iter_mut().filter(is_open).find(|exchange| exchange.id == id) {
                let error = serde_json::from_str(error);
                let unreadable =
                    |_| ErrorObject::new(ErrorCode::INTERNAL_ERROR, "An error that is not readable");
                exchange.answer = Some(Err(error.unwrap_or_else(unreadable)));
            }
        }
        (Sender::Server, Ok(RawFrame::Notification(call))) => {
            let token = progress_of(&call.method, call.params);
            let owner = all
                .iter_mut()
                .rev()
                .filter(is_open)
                .find(|exchange| token.is_none() || exchange.progress_token == token);
            let sent = Sent { is_request: false, method: call.method.to_string(), params: json(call.params) };
            if let Some(exchange) = owner {
                exchange.before.push(sent);
            }
        }
        (Sender::Server, Ok(RawFrame::Request { call, .. })) => {
            let sent = Sent { is_request: true, method: call.method.to_string(), params: json(call.params) };
            let owner = all.iter_mut().rev().find(is_open);
            if let Some(exchange) = owner {
                exchange.before.push(sent);
            }
        }
        _ => {}
    }
}

fn json(params: Option<&str>) -> Option<Json> {
    params.and_then(|params| Json::parse(params).ok())
}

fn without_meta(params: Option<&str>) -> Value {
    let params = params.and_then(|params| serde_json::from_str(params).ok());
    let mut params = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    if let Some(members) = params.as_object_mut() {
        members.remove("_meta");
        // Some clients send empty arguments, others none.
        if members
            .get("arguments")
            .is_some_and(|value| value.as_object().is_some_and(serde_json::Map::is_empty))
        {
            members.remove("arguments");
        }
    }
    params
}

fn progress_token(params: Option<&str>) -> Option<RequestId> {
    let params = Json::parse(params?).ok()?;
    RequestMeta::read(params.member("_meta")?).ok()?.progress_token
}

/// Returns the token of a progress notification.
fn progress_of(method: &str, params: Option<&str>) -> Option<RequestId> {
    if method != Progress::METHOD.name() {
        return None;
    }
    serde_json::from_str(Json::parse(params?).ok()?.member(key::PROGRESS_TOKEN)?).ok()
}

impl Replay {
    async fn answer(&self, cx: &Context, message: &Message) -> Result<Outcome, McpError> {
        if let Some(description) = self.translated(message) {
            return Ok(Outcome::raw(description));
        }
        let Some(exchange) = self.find(message)? else { return Ok(Outcome::empty()) };
        for sent in &exchange.before {
            send(cx, sent).await;
        }
        match &exchange.answer {
            Some(Ok(result)) => Ok(Outcome::raw(result.clone())),
            Some(Err(error)) => Err(McpError::Rpc(error.clone())),
            // There was no answer; the client or the connection ends the request.
            None => {
                cx.closing().cancelled().await;
                Err(McpError::new(ErrorCode::CONNECTION_CLOSED, "The recording ended before the answer"))
            }
        }
    }

    /// Returns the description of the server for a client of the other era than the recorded one.
    fn translated(&self, message: &Message) -> Option<String> {
        let wanted = message.known().filter(|method| is_opening(*method))?;
        let recorded = |method: Method| {
            let mut same = self.exchanges.iter().filter(|exchange| exchange.method == method.name());
            same.find_map(|exchange| exchange.answer.as_ref()?.as_ref().ok())
        };
        if recorded(wanted).is_some() {
            return None;
        }
        let value = |text: &String| serde_json::from_str::<Value>(text).ok();
        let described = if wanted == Initialize::METHOD {
            let result = value(recorded(ServerDiscover::METHOD)?)?;
            json!({
                "protocolVersion": ProtocolVersion::LATEST_HANDSHAKE.as_str(),
                "capabilities": result["capabilities"],
                "serverInfo": result["_meta"].get(key::SERVER_INFO).cloned().unwrap_or_else(unnamed),
            })
        } else {
            let result = value(recorded(Initialize::METHOD)?)?;
            json!({
                "resultType": result_type::COMPLETE,
                "supportedVersions": [ProtocolVersion::LATEST_ENVELOPE.as_str()],
                "capabilities": result["capabilities"],
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {key::SERVER_INFO: result["serverInfo"]},
            })
        };
        Some(described.to_string())
    }

    /// Returns the recorded request that a message repeats. A ping need not be recorded.
    fn find(&self, message: &Message) -> Result<Option<&Exchange>, McpError> {
        let method = message.method();
        let same = |exchange: &&(usize, &Exchange)| exchange.1.method == method;
        let candidates: Vec<(usize, &Exchange)> =
            self.exchanges.iter().enumerate().collect::<Vec<_>>().iter().filter(same).copied().collect();
        if candidates.is_empty() {
            if method == Ping::METHOD.name() {
                return Ok(None);
            }
            let text = format!("The transcript has no request '{method}'");
            return Err(McpError::new(ErrorCode::METHOD_NOT_FOUND, text));
        }
        let is_opening = matches!(message.known(), Some(known) if is_opening(known));
        let params = without_meta(message.params());
        let fits = |(_, exchange): &&(usize, &Exchange)| is_opening || exchange.params == params;
        let fitting: Vec<_> = candidates.iter().filter(fits).collect();
        let mut used = lock(&self.used);
        let fresh = fitting.iter().find(|(index, _)| used.get(*index) == Some(&false));
        let Some((index, exchange)) = fresh.or(fitting.last()) else {
            let text = format!("The transcript has '{method}' only with other params");
            return Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
        };
        if let Some(used) = used.get_mut(*index) {
            *used = true;
        }
        Ok(Some(exchange))
    }
}

/// Returns the identity of a server that has not sent any.
fn unnamed() -> Value {
    json!({"name": "transcript", "version": "1"})
}

/// Returns whether a request describes the client, which may be another one now.
fn is_opening(method: Method) -> bool {
    method == Initialize::METHOD || method == ServerDiscover::METHOD
}

async fn send(cx: &Context, sent: &Sent) {
    let params = match with_token(cx, sent) {
        Ok(params) => params,
        Err(NoProgress) => return,
    };
    if !sent.is_request {
        return match &params {
            Some(params) => cx.notify_raw(&sent.method, Some(params)).await,
            None => cx.notify_raw(&sent.method, None).await,
        };
    }
    let request = OutboundRequest::new(sent.method.clone());
    let request = match params {
        Some(params) => request.params(params),
        None => request,
    };
    // Any answer will do.
    if let Err(error) = cx.channel().request(request).await {
        tracing::debug!(%error, method = sent.method, "a recorded request of the server was not answered");
    }
}

/// The client has not requested progress.
struct NoProgress;

/// Returns the params of a message; progress gets the token of the client's request.
fn with_token(cx: &Context, sent: &Sent) -> Result<Option<Json>, NoProgress> {
    if sent.method != Progress::METHOD.name() {
        return Ok(sent.params.clone());
    }
    let token = cx.meta().progress_token.ok_or(NoProgress)?;
    let mut params: JsonObject =
        sent.params.as_ref().and_then(|params| params.decode().ok()).unwrap_or_default();
    if let Ok(token) = Json::encode(&token) {
        params.insert(key::PROGRESS_TOKEN, token);
    }
    Ok(Some(Json::from(params)))
}
