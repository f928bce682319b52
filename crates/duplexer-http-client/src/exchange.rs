//! One message to the server, and what it answers.

use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, RawFrame, RequestId};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use crate::link::{EVENTS, Link, Outgoing, Standing, Unsent};
use crate::reconnect::Stream;

/// How long a server may think about what wants no answer.
const TELLING: Duration = Duration::from_secs(30);

/// Why a request gets no answer of the server's.
#[derive(Debug)]
pub(crate) struct Unanswered(pub(crate) ErrorObject);

impl Unanswered {
    fn new(code: ErrorCode, message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self(ErrorObject::new(code, message))
    }

    /// Nothing more will come, for this reason.
    pub(crate) fn closed(reason: &str) -> Self {
        Self::new(ErrorCode::CONNECTION_CLOSED, format!("Connection closed: {reason}"))
    }

    /// The server does not know the session any more: only a new handshake helps.
    pub(crate) fn terminated() -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, "Session terminated")
    }

    pub(crate) fn too_large() -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, "the server's answer is too large")
    }

    fn unreadable() -> Self {
        Self::new(ErrorCode::PARSE_ERROR, "Parse error")
    }

    fn lost(error: &reqwest::Error) -> Self {
        tracing::debug!(%error, "an exchange broke off");
        Self(ErrorObject::connection_closed())
    }
}

impl From<Unsent> for Unanswered {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Header(name) => {
                Self::new(ErrorCode::INTERNAL_ERROR, format!("'{name}' is not a header that can be sent"))
            }
            Unsent::Unreached(error) if error.is_connect() => {
                tracing::debug!(%error, "the server could not be reached");
                Self::closed("the server could not be reached")
            }
            Unsent::Unreached(error) => Self::lost(&error),
        }
    }
}

/// Sends a request and delivers all that comes back. Dropped, it ends the POST.
pub(crate) async fn request(link: &Link, id: &RequestId, message: Outgoing, standing: Standing) {
    let exchange = Exchange { link, id: Some(id), standing };
    if let Err(Unanswered(error)) = exchange.run(message).await {
        let mut text = Vec::new();
        jsonrpc::write_failure(&mut text, Some(id), &error);
        if let Ok(text) = ByteString::try_from(text) {
            link.deliver(text).await;
        }
    }
}

/// Sends what wants no answer.
pub(crate) async fn tell(link: &Link, message: Outgoing) {
    match timeout(TELLING, link.post(message, Standing::Within)).await {
        Ok(Ok(response)) if response.status().is_success() => {}
        Ok(Ok(response)) => tracing::warn!(status = %response.status(), "a message was refused"),
        Ok(Err(unsent)) => tracing::warn!(?unsent, "a message could not be sent"),
        Err(_) => tracing::warn!("the server does not say whether it accepts a message"),
    }
}

/// What is heard on behalf of a request, or of none: on the standalone stream.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) link: &'a Link,
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) standing: Standing,
}

/// What a message was to the request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Answer,
    /// Another message, or nothing that counts.
    Other,
    Unreadable,
}

impl Exchange<'_> {
    async fn run(&self, message: Outgoing) -> Result<(), Unanswered> {
        let response = self.link.post(message, self.standing).await?;
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            let message = "server answered a request with 202 Accepted";
            return Err(Unanswered::new(ErrorCode::INVALID_REQUEST, message));
        }
        if !status.is_success() {
            self.link.endpoint.note(&response);
            return Err(self.refusal(response).await);
        }
        if self.standing == Standing::Opening && self.link.session.open(response.headers()).is_err() {
            let message = "the server's session id is not visible ASCII";
            return Err(Unanswered::new(ErrorCode::INVALID_REQUEST, message));
        }
        match &*media_type(&response) {
            "application/json" => self.json(response).await,
            EVENTS => Stream::new(*self).until_answered(response).await,
            other => {
                let shown: String = other.chars().take(100).collect();
                let message = format!("Unexpected content type: {shown}");
                Err(Unanswered::new(ErrorCode::INVALID_REQUEST, message))
            }
        }
    }

    /// The error of a refusal, if it says one.
    async fn refusal(&self, response: Response) -> Unanswered {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.is_remembered() {
            return Unanswered::terminated();
        }
        let body = self.body(response).await.unwrap_or_default();
        let told = std::str::from_utf8(&body).ok().map(jsonrpc::read);
        if let Some(Ok(RawFrame::Failure { error, .. })) = told
            && let Ok(error) = serde_json::from_str(error)
        {
            return Unanswered(error);
        }
        match status {
            StatusCode::NOT_FOUND => Unanswered::new(ErrorCode::METHOD_NOT_FOUND, "Not Found"),
            _ => Unanswered::new(ErrorCode::INTERNAL_ERROR, "Server returned an error response"),
        }
    }

    /// Whether the request was sent under a session's id.
    pub(crate) fn is_remembered(&self) -> bool {
        self.standing == Standing::Within && self.link.session.has_id()
    }

    async fn json(&self, response: Response) -> Result<(), Unanswered> {
        let body = self.body(response).await?;
        match self.hear(body).await {
            Heard::Answer => Ok(()),
            Heard::Unreadable => Err(Unanswered::unreadable()),
            Heard::Other => Err(Unanswered(ErrorObject::connection_closed())),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Unanswered> {
        let limit = self.link.endpoint.limit;
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(Unanswered::too_large());
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| Unanswered::lost(&error))? {
            if body.len() + piece.len() > limit {
                return Err(Unanswered::too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Delivers what was said, as far as it belongs here.
    pub(crate) async fn hear(&self, said: Vec<u8>) -> Heard {
        let Ok(text) = ByteString::try_from(said) else { return Heard::Unreadable };
        let mut heard = Heard::Other;
        for part in self.parts(text) {
            match self.sort(&part) {
                Sorted::Answer => heard = Heard::Answer,
                Sorted::Message => {}
                Sorted::Unreadable => return Heard::Unreadable,
                Sorted::Stray => {
                    tracing::warn!("a stray answer is dropped");
                    continue;
                }
            }
            self.link.deliver(part).await;
        }
        heard
    }

    /// The messages of a text: several only in a session that has batches.
    fn parts(&self, text: ByteString) -> Vec<ByteString> {
        let is_batch =
            self.link.session.has_batches() && matches!(jsonrpc::read(&text), Ok(RawFrame::Batch(_)));
        match jsonrpc::batch(&text) {
            Ok(parts) if is_batch => parts.into_iter().map(|part| text.slice_ref(part)).collect(),
            _ => vec![text],
        }
    }

    fn sort(&self, text: &str) -> Sorted {
        match jsonrpc::read(text) {
            Ok(RawFrame::Success { id, result }) if self.is_answered_by(&id) => {
                if self.standing == Standing::Opening {
                    self.link.session.agree(result);
                }
                Sorted::Answer
            }
            Ok(RawFrame::Failure { id: Some(id), .. }) if self.is_answered_by(&id) => Sorted::Answer,
            Ok(RawFrame::Success { .. } | RawFrame::Failure { .. } | RawFrame::Batch(_)) => Sorted::Stray,
            Ok(RawFrame::Request { .. } | RawFrame::Notification(_)) => Sorted::Message,
            Err(_) => Sorted::Unreadable,
        }
    }

    /// Equal, or the number of the other's text: some servers change the type.
    fn is_answered_by(&self, id: &RequestId) -> bool {
        self.id.is_some_and(|own| own == id || own.twin().as_ref() == Some(id))
    }
}

enum Sorted {
    Answer,
    Message,
    /// The answer to something else.
    Stray,
    Unreadable,
}

/// Type and subtype of what a response brings.
pub(crate) fn media_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
