//! Questions to the client, asked one way in both eras.
//!
//! In the handshake era a question is a request to the client. In the envelope era it is written down and its future stays
//! pending; once the handler is pending with open questions it is dropped, and the answer to its request is all of them.
//! The client asks again with the answers, the handler runs again from the top, and finds them. What was answered in
//! earlier rounds travels in the request state, sealed. An answer counts only for the question it was given to: both are
//! held together by a digest.

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
use duplexer_types::version::{Era, feature};
use duplexer_types::wire::{ForRevision, Shape};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::features::input;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, CallOptions, lock};
use duplexer_core::error::McpError;

/// What the request of one handler has asked and been answered.
#[derive(Default)]
pub(crate) struct Questions(OnceLock<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    note: Note,
    /// What came with this round.
    responses: JsonObject<InputResponse>,
    open: Vec<(String, InputRequest, String)>,
}

/// What travels through the client between rounds.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    v: u32,
    /// Answers of all rounds so far.
    outcomes: JsonObject<Answered>,
    /// Digests of the questions of the last round.
    asked: JsonObject<String>,
}

#[derive(Serialize, Deserialize)]
struct Answered {
    q: String,
    data: Json,
}

/// Notes of another shape are not understood, and everything is asked again.
const SHAPE: u32 = 3;

/// What a request brings beside its arguments.
#[derive(Default, Deserialize)]
struct Round {
    #[serde(default, rename = "inputResponses")]
    responses: Option<JsonObject<InputResponse>>,
    #[serde(default, rename = "requestState")]
    state: Option<String>,
}

impl<S> Context<S> {
    /// Asks the client for input, one way in both eras: under a key that names the question within this request.
    ///
    /// In the envelope era the handler runs once per round, from the top: what it does before a question is done again.
    /// Several questions that are awaited together (`tokio::join!`) are asked in one round. Fails with -32021 if the client
    /// has not declared that it can be asked this. Blocking handlers cannot ask.
    pub async fn ask(&self, key: &str, request: impl Into<InputRequest>) -> Result<InputResponse, McpError> {
        let request = request.into();
        input::require(&request, key, self.connection().client())?;
        let response = match self.protocol_version().era() {
            Era::Handshake => self.ask_now(request.clone()).await?,
            Era::Envelope => match self.recall(key, &request)? {
                Some(response) => response,
                None => std::future::pending().await,
            },
        };
        let fits = matches!(
            (&request, &response),
            (InputRequest::Elicit(_), InputResponse::Elicit(_))
                | (InputRequest::CreateMessage(_), InputResponse::CreateMessage(_))
                | (InputRequest::ListRoots, InputResponse::ListRoots(_))
        );
        if fits {
            return Ok(response);
        }
        let text = format!("The answer to '{key}' is of the wrong kind");
        Err(McpError::new(ErrorCode::INVALID_PARAMS, text))
    }

    /// Answers that came with this request, for handlers that make an [`InputRequiredResult`] by hand. In the handshake
    /// era there are none.
    pub fn input_responses(&self) -> Result<JsonObject<InputResponse>, McpError> {
        Ok(self.round()?.responses.unwrap_or_default())
    }

    /// The state that came back with this request, for handlers that make an [`InputRequiredResult`] by hand. Clients can
    /// change it unless the server seals it (`ServerBuilder::request_state`).
    pub fn request_state(&self) -> Result<Option<String>, McpError> {
        Ok(self.round()?.state)
    }

    fn round(&self) -> Result<Round, McpError> {
        match self.protocol_version().era() {
            Era::Handshake => Ok(Round::default()),
            Era::Envelope => self.params(),
        }
    }

    async fn ask_now(&self, request: InputRequest) -> Result<InputResponse, McpError> {
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

    /// The answer to a question, if this round or an earlier one brought it; otherwise it is open from now on.
    fn recall(&self, key: &str, request: &InputRequest) -> Result<Option<InputResponse>, McpError> {
        let digest = digest(request, Shape::new(self.protocol_version()))?;
        let cell = &self.scope().questions.0;
        let ledger = if let Some(ledger) = cell.get() {
            ledger
        } else {
            let read = Ledger::read(&self.untyped())?;
            cell.get_or_init(|| Mutex::new(read))
        };
        lock(ledger).recall(key, request, digest)
    }
}

impl Ledger {
    fn read(cx: &Context<StateMap>) -> Result<Self, McpError> {
        let round = cx.round()?;
        let state = match round.state {
            Some(state) => Some(open(cx, state)?),
            None => None,
        };
        let note = state.and_then(|state| serde_json::from_str::<Note>(&state).ok());
        let note = note.filter(|note| note.v == SHAPE).unwrap_or_default();
        Ok(Self { note, responses: round.responses.unwrap_or_default(), open: Vec::new() })
    }

    fn recall(
        &mut self,
        key: &str,
        request: &InputRequest,
        digest: String,
    ) -> Result<Option<InputResponse>, McpError> {
        if let Some(answered) = self.note.outcomes.get(key).filter(|answered| answered.q == digest) {
            return answered.data.decode().map(Some).map_err(McpError::internal);
        }
        let was_asked = self.note.asked.get(key).is_some_and(|asked| *asked == digest);
        match self.responses.get(key).filter(|_| was_asked) {
            // An answer that cannot be read is no answer: the question is asked again.
            Some(InputResponse::Other(_)) | None => {}
            Some(response) => {
                let data = Json::encode(response).map_err(McpError::internal)?;
                let response = response.clone();
                self.note.outcomes.insert(key, Answered { q: digest, data });
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

    /// The result that asks everything that is open.
    fn conclude(&mut self, cx: &Context<StateMap>) -> Result<Outcome, McpError> {
        let open = std::mem::take(&mut self.open);
        let note = Note {
            v: SHAPE,
            outcomes: std::mem::take(&mut self.note.outcomes),
            asked: open.iter().map(|(key, _, digest)| (key.clone(), digest.clone())).collect(),
        };
        let state = serde_json::to_string(&note).map_err(McpError::internal)?;
        let requests = open.into_iter().map(|(key, request, _)| (key, request));
        Ok(Outcome::of(InputRequiredResult::asking(requests).request_state(seal(cx, &state)?)))
    }
}

/// A handler that runs until it ends, or until it waits with questions open: then those are the outcome.
pub(crate) struct Attended {
    handler: BoxFuture<'static, Result<Outcome, McpError>>,
    /// Where it may ask.
    cx: Option<Context<StateMap>>,
}

impl Attended {
    /// A handler that may ask in this context.
    pub(crate) fn new(cx: Context<StateMap>, handler: BoxFuture<'static, Result<Outcome, McpError>>) -> Self {
        Self { handler, cx: Some(cx) }
    }

    pub(crate) fn boxed(self) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if self.cx.is_none() { self.handler } else { Box::pin(self) }
    }
}

/// Something that asks nothing, or whose questions are attended to further in.
impl From<BoxFuture<'static, Result<Outcome, McpError>>> for Attended {
    fn from(handler: BoxFuture<'static, Result<Outcome, McpError>>) -> Self {
        Self { handler, cx: None }
    }
}

impl Future for Attended {
    type Output = Result<Outcome, McpError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(outcome) = self.handler.as_mut().poll(task) {
            return Poll::Ready(outcome);
        }
        let Some(cx) = &self.cx else { return Poll::Pending };
        match cx.scope().questions.0.get() {
            Some(ledger) if !lock(ledger).open.is_empty() => Poll::Ready(lock(ledger).conclude(cx)),
            _ => Poll::Pending,
        }
    }
}

/// Where no middleware opens states, those of questions are opened here.
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

/// Half of a SHA-256 over the question as it is written.
fn digest(request: &InputRequest, shape: Shape) -> Result<String, McpError> {
    let text = serde_json::to_vec(&ForRevision(request, shape)).map_err(McpError::internal)?;
    let hash = Sha256::digest(&text);
    Ok(URL_SAFE_NO_PAD.encode(hash.get(..16).unwrap_or_default()))
}

fn random_id() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        tracing::error!("the system has no randomness for the id of an elicitation");
    }
    URL_SAFE_NO_PAD.encode(bytes)
}
