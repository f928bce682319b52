//! Questions of a handshake server on their way to a client of the envelope era.

use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_server::{ClientCapability, ClientProfile};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::InputRequest;
use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of questions that wait for one request of the client.
const MAX_QUESTIONS: usize = 64;

/// Takes the questions for one request of the client.
#[derive(Clone)]
pub(crate) struct Questions {
    sender: mpsc::Sender<Asked>,
    client: ClientProfile,
}

/// A question of the server.
pub(crate) struct Question(InputRequest);

/// A question, and where its answer goes. The server has withdrawn it if the receiver of the answer is gone.
pub(crate) struct Asked {
    pub(crate) request: InputRequest,
    pub(crate) answer: oneshot::Sender<Json>,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The client did not declare the capability.
    Unsupported,
    /// The request takes no further question.
    Refused,
    /// The request ended before the answer.
    Ended,
}

impl From<Unanswered> for McpError {
    fn from(unanswered: Unanswered) -> Self {
        let text = match unanswered {
            Unanswered::Unsupported => "the client did not declare the capability for this request",
            Unanswered::Refused => "too many questions wait for the client, or its request has ended",
            Unanswered::Ended => "the client has not answered",
        };
        Self::new(ErrorCode::INVALID_REQUEST, text)
    }
}

impl Questions {
    /// Creates the two ends.
    pub(crate) fn new(client: ClientProfile) -> (Self, mpsc::Receiver<Asked>) {
        let (sender, receiver) = mpsc::channel(MAX_QUESTIONS);
        (Self { sender, client }, receiver)
    }

    /// Asks the client, and waits for the answer.
    pub(crate) async fn ask(self, Question(request): Question) -> Result<Json, Unanswered> {
        if !ClientCapability::required_by(&request).is_some_and(|needed| self.client.supports(&needed)) {
            return Err(Unanswered::Unsupported);
        }
        let (answer, answered) = oneshot::channel();
        if self.sender.try_send(Asked { request, answer }).is_err() {
            return Err(Unanswered::Refused);
        }
        // The other end is dropped with the client's request.
        drop(self.sender);
        answered.await.map_err(|_| Unanswered::Ended)
    }
}

impl Question {
    /// Reads a request of the server.
    pub(crate) fn of(message: &Message) -> Result<Self, McpError> {
        Ok(Self(match message.known() {
            Some(Method::ElicitationCreate) => InputRequest::Elicit(Box::new(decoded(message)?)),
            Some(Method::SamplingCreateMessage) => InputRequest::CreateMessage(Box::new(decoded(message)?)),
            Some(Method::RootsList) => InputRequest::ListRoots,
            _ => return Err(ErrorObject::method_not_found(message.method()).into()),
        }))
    }
}

fn decoded<T: DeserializeOwned>(message: &Message) -> Result<T, McpError> {
    message.decode().map_err(|error| McpError::InvalidParams(error.into()))
}
