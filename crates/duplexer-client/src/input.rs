//! Input rounds: the callbacks answer the input requests of a result, and the request is sent again.

use std::task::Poll;
use std::time::Duration;

use duplexer_types::input::{InputRequest, InputRequiredResult, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{ForRevision, Shape};
use tokio::time::sleep;

use super::ClientError;
use super::handler::Callbacks;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{CallError, McpError};

/// Maximum number of times a request is sent again, unless the builder sets another.
pub(super) const MAX_RETRIES: u32 = 10;

/// Backoff before a retry that carries only the request state: doubled in each round, up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_millis(250);

/// Members that a retry adds to the params: the input responses, and the server's request state, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Retry {
    responses: Option<Json>,
    state: Option<String>,
}

impl Retry {
    /// Adds the members of this round to the params of the first. Members of earlier rounds are not repeated.
    pub(super) fn add_to(&self, params: Option<Json>) -> Result<Option<Json>, CallError> {
        if self.responses.is_none() && self.state.is_none() {
            return Ok(params);
        }
        let decoded = params.map_or_else(|| Ok(JsonObject::new()), |params| params.decode());
        let mut members: JsonObject = decoded.map_err(CallError::Encode)?;
        if let Some(responses) = &self.responses {
            members.insert("inputResponses", responses.clone());
        }
        if let Some(state) = &self.state {
            members.insert("requestState", Json::from(state.as_str()));
        }
        Json::encode(&members).map(Some).map_err(CallError::Encode)
    }
}

/// Answers all input requests of a result concurrently.
pub(super) async fn respond(
    callbacks: &Callbacks,
    required: InputRequiredResult,
    round: u32,
    version: ProtocolVersion,
) -> Result<Retry, ClientError> {
    let Some(requests) = required.input_requests.filter(|requests| !requests.is_empty()) else {
        sleep((FIRST_BACKOFF * 2_u32.saturating_pow(round.min(8))).min(MAX_BACKOFF)).await;
        return Ok(Retry { responses: None, state: required.request_state });
    };
    let pending =
        requests.into_iter().map(|(key, request)| (key, run_callback(callbacks.clone(), request, version)));
    let responses: JsonObject<InputResponse> = try_join_by_key(pending.collect()).await?;
    let responses = Json::encode(&ForRevision(&responses, Shape::new(version))).map_err(CallError::Encode)?;
    Ok(Retry { responses: Some(responses), state: required.request_state })
}

pub(super) type PendingResponse = BoxFuture<'static, Result<InputResponse, McpError>>;

pub(super) fn run_callback(
    callbacks: Callbacks,
    request: InputRequest,
    version: ProtocolVersion,
) -> PendingResponse {
    Box::pin(async move {
        match request {
            InputRequest::Elicit(params) => {
                callbacks.elicit(*params, version).await.map(InputResponse::Elicit)
            }
            InputRequest::CreateMessage(params) => {
                callbacks.create_message(*params).await.map(InputResponse::CreateMessage)
            }
            InputRequest::ListRoots => callbacks.list_roots().await.map(InputResponse::ListRoots),
            _ => Err(McpError::internal("the server asks for something this client does not know")),
        }
    })
}

/// Awaits all futures concurrently and returns their outputs in the given order. The first error drops the others.
async fn try_join_by_key(
    mut pending: Vec<(String, PendingResponse)>,
) -> Result<JsonObject<InputResponse>, ClientError> {
    let order: Vec<String> = pending.iter().map(|(key, _)| key.clone()).collect();
    let mut responses = JsonObject::new();
    std::future::poll_fn(|cx| {
        let mut failed = None;
        pending.retain_mut(|(key, future)| match future.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(response)) => {
                responses.insert(key.as_str(), response);
                false
            }
            Poll::Ready(Err(cause)) => {
                failed.get_or_insert((key.clone(), cause));
                false
            }
        });
        match failed {
            Some((key, cause)) => Poll::Ready(Err(ClientError::Unanswered { key, cause })),
            None if pending.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await?;
    Ok(order.into_iter().filter_map(|key| responses.remove(&key).map(|response| (key, response))).collect())
}
