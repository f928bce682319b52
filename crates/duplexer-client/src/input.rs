//! A server that asks for input is answered through the callbacks, and asked again.

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

/// How often a request is asked again before the client gives up.
pub(super) const ROUNDS: u32 = 10;

/// A server that only wants to be asked again is given a little time, and a little more each round.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What a request carries when it is asked again: the answers, and the server's own note, byte by byte.
#[derive(Debug, Default)]
pub(super) struct Retry {
    answers: Option<Json>,
    state: Option<String>,
}

impl Retry {
    /// The params of the first round with what this round adds. What an earlier round added is gone.
    pub(super) fn add_to(&self, params: Option<Json>) -> Result<Option<Json>, CallError> {
        if self.answers.is_none() && self.state.is_none() {
            return Ok(params);
        }
        let decoded = params.map_or_else(|| Ok(JsonObject::new()), |params| params.decode());
        let mut members: JsonObject = decoded.map_err(CallError::Encode)?;
        if let Some(answers) = &self.answers {
            members.insert("inputResponses", answers.clone());
        }
        if let Some(state) = &self.state {
            members.insert("requestState", Json::from(state.as_str()));
        }
        Json::encode(&members).map(Some).map_err(CallError::Encode)
    }
}

/// Answers everything the server asks for, all at once.
pub(super) async fn answer(
    callbacks: &Callbacks,
    asked: InputRequiredResult,
    round: u32,
    version: ProtocolVersion,
) -> Result<Retry, ClientError> {
    let Some(requests) = asked.input_requests.filter(|requests| !requests.is_empty()) else {
        sleep((FIRST_PAUSE * 2_u32.saturating_pow(round.min(8))).min(LONGEST_PAUSE)).await;
        return Ok(Retry { answers: None, state: asked.request_state });
    };
    let questions =
        requests.into_iter().map(|(key, request)| (key, ask(callbacks.clone(), request, version)));
    let answers: JsonObject<InputResponse> = all(questions.collect()).await?;
    let answers = Json::encode(&ForRevision(&answers, Shape::new(version))).map_err(CallError::Encode)?;
    Ok(Retry { answers: Some(answers), state: asked.request_state })
}

type Question = BoxFuture<'static, Result<InputResponse, McpError>>;

fn ask(callbacks: Callbacks, request: InputRequest, version: ProtocolVersion) -> Question {
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

/// Asks all questions together; the first that cannot be answered drops the others.
async fn all(mut open: Vec<(String, Question)>) -> Result<JsonObject<InputResponse>, ClientError> {
    let order: Vec<String> = open.iter().map(|(key, _)| key.clone()).collect();
    let mut answers = JsonObject::new();
    std::future::poll_fn(|cx| {
        let mut failed = None;
        open.retain_mut(|(key, question)| match question.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(answer)) => {
                answers.insert(key.as_str(), answer);
                false
            }
            Poll::Ready(Err(cause)) => {
                failed.get_or_insert((key.clone(), cause));
                false
            }
        });
        match failed {
            Some((key, cause)) => Poll::Ready(Err(ClientError::Unanswered { key, cause })),
            None if open.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await?;
    Ok(order.into_iter().filter_map(|key| answers.remove(&key).map(|answer| (key, answer))).collect())
}
