//! Input rounds: [`Context::ask`] in both eras. In the handshake era a question is a request to the client. In the
//! envelope era it is recorded and its future stays pending; the pending handler is dropped and the response holds all
//! open questions. The client retries with the answers, and the handler runs again from the start. Earlier answers
//! travel in the sealed request state. A digest binds an answer to its question.

use std::pin::Pin;
use std::sync::{Mutex, OnceLock};
use std::task::Poll;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_types::elicitation::ElicitParams;
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputRequiredResult, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods;
use duplexer_types::version::{Era, ProtocolVersion, feature};
use duplexer_types::wire::{ForRevision, Shape};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::features::input;
use crate::features::tasks::TaskCall;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, CallOptions, lock};
use duplexer_core::error::McpError;

/// The questions and answers of one request, created by the first question.
#[derive(Default)]
pub(crate) struct InputRounds(OnceLock<Mutex<RoundState>>);

#[derive(Default)]
struct RoundState {
    token: RoundToken,
    /// The answers that arrived with this round.
    responses: JsonObject<InputResponse>,
    open: Vec<(String, InputRequest, String)>,
}

/// The state that travels through the client between rounds.
#[derive(Default, Serialize, Deserialize)]
struct RoundToken {
    v: u32,
    /// The answers of all rounds so far.
    outcomes: JsonObject<Answered>,
    /// Digests of the questions of the last round.
    asked: JsonObject<String>,
}

#[derive(Serialize, Deserialize)]
struct Answered {
    q: String,
    data: Json,
}

/// Version of [`RoundToken`]. A token of another version is ignored, and every question is asked again.
const TOKEN_VERSION: u32 = 3;

/// The members of the params that belong to a round.
#[derive(Default, Deserialize)]
struct RoundParams {
    #[serde(default, rename = "inputResponses")]
    responses: Option<JsonObject<InputResponse>>,
    #[serde(default, rename = "requestState")]
    state: Option<String>,
}

impl<S> Context<S> {
    /// Requests input from the client, in both eras. The key identifies the question within this request.
    ///
    /// In the envelope era the handler runs once per round, from the start: what it does before a question is done
    /// again. Questions that are awaited together (`tokio::join!`) are asked in one round. Blocking handlers cannot
    /// ask.
    ///
    /// # Errors
    ///
    /// Returns -32021 if the client has not declared the capability, and -32602 if the answer is of the wrong kind.
    pub async fn ask(&self, key: &str, request: impl Into<InputRequest>) -> Result<InputResponse, McpError> {
        let request = request.into();
        input::require(&request, key, self.connection().client())?;
        self.scope().note_question();
        if let Some(task) = self.scope().task() {
            return Box::pin(self.ask_in_task(task, key, request)).await;
        }
        let response = match self.protocol_version().era() {
            Era::Handshake => self.ask_directly(request.clone()).await?,
            Era::Envelope => match self.lookup_answer(key, &request)? {
                Some(response) => response,
                None => std::future::pending().await,
            },
        };
        checked(key, &request, response)
    }

    /// Requests input on behalf of a task, or of a call that can become one.
    async fn ask_in_task(
        &self,
        task: &TaskCall,
        key: &str,
        request: InputRequest,
    ) -> Result<InputResponse, McpError> {
        match task.request() {
            Some(cx) if !task.asks() => cx.ask(key, request).await,
            _ => {
                let digest = digest(&request, Shape::new(self.protocol_version()))?;
                let response = task.ask(key, &request, digest, self.ask_directly(request.clone())).await?;
                checked(key, &request, response)
            }
        }
    }

    /// Returns the answers that arrived with this request, for handlers that build an [`InputRequiredResult`] manually.
    /// In the handshake era there are none.
    ///
    /// # Errors
    ///
    /// Returns -32602 if the params do not fit.
    pub fn input_responses(&self) -> Result<JsonObject<InputResponse>, McpError> {
        Ok(self.round()?.responses.unwrap_or_default())
    }

    /// Returns the state that arrived with this request, for handlers that build an [`InputRequiredResult`] manually.
    /// Clients can change it unless the server seals it (`ServerBuilder::request_state`).
    ///
    /// # Errors
    ///
    /// Returns -32602 if the params do not fit.
    pub fn request_state(&self) -> Result<Option<String>, McpError> {
        Ok(self.round()?.state)
    }

    fn round(&self) -> Result<RoundParams, McpError> {
        match self.protocol_version().era() {
            Era::Handshake => Ok(RoundParams::default()),
            Era::Envelope => self.params(),
        }
    }

    async fn ask_directly(&self, request: InputRequest) -> Result<InputResponse, McpError> {
        let options = CallOptions::new;
        Ok(match request {
            InputRequest::Elicit(mut params) => {
                if let ElicitParams::Url(url) = &mut *params
                    && self.protocol_version().has(feature::ELICITATION_ID)
                {
                    url.elicitation_id.get_or_insert_with(random_id);
                }
                let answer = self.request::<methods::ElicitationCreate>(&params, options()).await?;
                InputResponse::Elicit(answer)
            }
            InputRequest::CreateMessage(params) => {
                InputResponse::CreateMessage(self.create_message(&params).await?)
            }
            InputRequest::ListRoots => {
                let roots = self.request::<methods::RootsList>(&EmptyParams::new(), options()).await?;
                InputResponse::ListRoots(roots)
            }
            _ => return Err(McpError::internal("the client is asked something unknown")),
        })
    }

    /// Returns the answer to a question, if this round or an earlier one brought it. Otherwise records the question as
    /// open.
    fn lookup_answer(&self, key: &str, request: &InputRequest) -> Result<Option<InputResponse>, McpError> {
        let digest = digest(request, Shape::new(self.protocol_version()))?;
        let cell = &self.scope().input_rounds.0;
        let state = if let Some(state) = cell.get() {
            state
        } else {
            let read = RoundState::read(&self.untyped())?;
            cell.get_or_init(|| Mutex::new(read))
        };
        lock(state).lookup_answer(key, request, digest)
    }
}

impl RoundState {
    fn read(cx: &Context<StateMap>) -> Result<Self, McpError> {
        let round = cx.round()?;
        let state = match round.state {
            Some(state) => Some(open(cx, state)?),
            None => None,
        };
        let token = state.and_then(|state| serde_json::from_str::<RoundToken>(&state).ok());
        let token = token.filter(|token| token.v == TOKEN_VERSION).unwrap_or_default();
        Ok(Self { token, responses: round.responses.unwrap_or_default(), open: Vec::new() })
    }

    fn lookup_answer(
        &mut self,
        key: &str,
        request: &InputRequest,
        digest: String,
    ) -> Result<Option<InputResponse>, McpError> {
        if let Some(answered) = self.token.outcomes.get(key).filter(|answered| answered.q == digest) {
            return answered.data.decode().map(Some).map_err(McpError::internal);
        }
        let was_asked = self.token.asked.get(key).is_some_and(|asked| *asked == digest);
        match self.responses.get(key).filter(|_| was_asked) {
            // An answer that cannot be decoded counts as absent: the question is asked again.
            Some(InputResponse::Other(_)) | None => {}
            Some(response) => {
                let data = Json::encode(response).map_err(McpError::internal)?;
                let response = response.clone();
                self.token.outcomes.insert(key, Answered { q: digest, data });
                return Ok(Some(response));
            }
        }
        match self.open.iter().find(|(open, ..)| open == key) {
            Some((.., other)) if *other != digest => {
                let text = format!("two different questions share the key '{key}'");
                return Err(McpError::internal(text));
            }
            Some(_) => {}
            None => self.open.push((key.to_owned(), request.clone(), digest)),
        }
        Ok(None)
    }

    /// Returns the result that asks all open questions.
    fn take_outcome(&mut self, cx: &Context<StateMap>) -> Result<Outcome, McpError> {
        let open = std::mem::take(&mut self.open);
        let token = RoundToken {
            v: TOKEN_VERSION,
            outcomes: std::mem::take(&mut self.token.outcomes),
            asked: open.iter().map(|(key, _, digest)| (key.clone(), digest.clone())).collect(),
        };
        let state = serde_json::to_string(&token).map_err(McpError::internal)?;
        let requests = open.into_iter().map(|(key, request, _)| (key, request));
        Ok(Outcome::of(InputRequiredResult::asking(requests).request_state(seal(cx, &state)?)))
    }
}

/// Drives a handler. If it is pending with unanswered questions, drops it and resolves to `InputRequired`.
pub(crate) struct InputRoundFuture {
    handler: BoxFuture<'static, Result<Outcome, McpError>>,
    /// The context in which the handler can ask.
    cx: Option<Context<StateMap>>,
}

impl InputRoundFuture {
    /// Wraps a handler that can ask in this context.
    pub(crate) fn new(cx: Context<StateMap>, handler: BoxFuture<'static, Result<Outcome, McpError>>) -> Self {
        Self { handler, cx: Some(cx) }
    }

    pub(crate) fn boxed(self) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if self.cx.is_none() { self.handler } else { Box::pin(self) }
    }
}

/// Wraps a handler that cannot ask, or whose questions an inner future handles.
impl From<BoxFuture<'static, Result<Outcome, McpError>>> for InputRoundFuture {
    fn from(handler: BoxFuture<'static, Result<Outcome, McpError>>) -> Self {
        Self { handler, cx: None }
    }
}

impl Future for InputRoundFuture {
    type Output = Result<Outcome, McpError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(outcome) = self.handler.as_mut().poll(task) {
            return Poll::Ready(outcome);
        }
        let Some(cx) = &self.cx else { return Poll::Pending };
        match cx.scope().input_rounds.0.get() {
            Some(state) if !lock(state).open.is_empty() => Poll::Ready(lock(state).take_outcome(cx)),
            _ => Poll::Pending,
        }
    }
}

/// Opens the state of questions, unless middleware has already done so.
fn open(cx: &Context<StateMap>, state: String) -> Result<String, McpError> {
    let (Some(sealing), Some(method)) = (&cx.server().registry().own_sealing, cx.known_method()) else {
        return Ok(state);
    };
    sealing.open_state(cx, method, cx.raw_params().unwrap_or("{}"), &state)
}

fn seal(cx: &Context<StateMap>, state: &str) -> Result<String, McpError> {
    let (Some(sealing), Some(method)) = (&cx.server().registry().own_sealing, cx.known_method()) else {
        return Ok(state.to_owned());
    };
    sealing.seal_state(cx, method, cx.raw_params().unwrap_or("{}"), state)
}

/// Returns the response, if it is of the kind that the request asks for.
fn checked(key: &str, request: &InputRequest, response: InputResponse) -> Result<InputResponse, McpError> {
    if fits(request, &response) {
        return Ok(response);
    }
    let text = format!("The answer to '{key}' is of the wrong kind");
    Err(McpError::new(ErrorCode::INVALID_PARAMS, text))
}

/// Returns whether a response is of the kind that a request asks for.
pub(crate) fn fits(request: &InputRequest, response: &InputResponse) -> bool {
    matches!(
        (request, response),
        (InputRequest::Elicit(_), InputResponse::Elicit(_))
            | (InputRequest::CreateMessage(_), InputResponse::CreateMessage(_))
            | (InputRequest::ListRoots, InputResponse::ListRoots(_))
    )
}

impl InputRounds {
    /// Returns the answers of all rounds so far: key, digest of the question, answer.
    pub(crate) fn answers(&self) -> Vec<(String, String, Json)> {
        let Some(state) = self.0.get() else { return Vec::new() };
        let state = lock(state);
        let outcomes = state.token.outcomes.iter();
        outcomes.map(|(key, answered)| (key.to_owned(), answered.q.clone(), answered.data.clone())).collect()
    }
}

/// Returns a question as it is stored, with its digest.
pub(crate) fn digest_of(request: &InputRequest) -> Result<(Json, String), McpError> {
    let shape = Shape::new(ProtocolVersion::LATEST_ENVELOPE);
    let text = Json::encode(&ForRevision(request, shape)).map_err(McpError::internal)?;
    Ok((text, digest(request, shape)?))
}

/// Returns half of a SHA-256 over the question as it is written.
fn digest(request: &InputRequest, shape: Shape) -> Result<String, McpError> {
    let text = serde_json::to_vec(&ForRevision(request, shape)).map_err(McpError::internal)?;
    let hash = Sha256::digest(&text);
    Ok(URL_SAFE_NO_PAD.encode(hash.get(..16).unwrap_or_default()))
}

pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        tracing::error!("the system has no randomness for the id of an elicitation");
    }
    URL_SAFE_NO_PAD.encode(bytes)
}
