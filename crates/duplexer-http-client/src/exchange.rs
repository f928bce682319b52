//! One POST and its answer.

use bytestring::ByteString;
use duplexer_core::transport::{Hints, Incoming, IncomingMessage, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Frame, RequestId};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use std::sync::Arc;
use tokio::sync::mpsc;

use crate::stream::EventReader;

/// The largest message that is read, if not set otherwise.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Where requests go and how.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) limit: usize,
}

/// Where what comes back goes.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) sender: mpsc::Sender<Incoming>,
    pub(crate) context: Arc<TransportContext>,
}

impl Inbox {
    async fn deliver(&self, text: ByteString) {
        // Whoever does not listen any more does not miss it.
        let _ =
            self.sender.send(Incoming::Message(IncomingMessage::new(text, Arc::clone(&self.context)))).await;
    }
}

/// Why a request gets no answer of the server's.
#[derive(Debug)]
struct Unanswered(ErrorObject);

fn failed(code: ErrorCode, message: impl Into<std::borrow::Cow<'static, str>>) -> Unanswered {
    Unanswered(ErrorObject::new(code, message))
}

/// Sends a request and delivers all that comes back. Dropped, it ends the POST.
pub(crate) async fn request(endpoint: Endpoint, inbox: Inbox, id: RequestId, frame: Vec<u8>, hints: Hints) {
    let exchange = Exchange { inbox: &inbox, id: &id, limit: endpoint.limit };
    let answered = match post(&endpoint, frame, &hints).await {
        Ok(response) => exchange.read(response).await,
        Err(unanswered) => Err(unanswered),
    };
    if let Err(Unanswered(error)) = answered {
        let mut text = Vec::new();
        jsonrpc::write_failure(&mut text, Some(&id), &error);
        if let Ok(text) = ByteString::try_from(text) {
            inbox.deliver(text).await;
        }
    }
}

/// Sends what wants no answer.
pub(crate) async fn tell(endpoint: Endpoint, frame: Vec<u8>, hints: Hints) {
    match post(&endpoint, frame, &hints).await {
        Ok(response) if response.status().is_success() => {}
        Ok(response) => tracing::warn!(status = %response.status(), "a notification was refused"),
        Err(Unanswered(error)) => tracing::warn!(%error, "a notification could not be sent"),
    }
}

async fn post(endpoint: &Endpoint, frame: Vec<u8>, hints: &Hints) -> Result<Response, Unanswered> {
    let mut headers = endpoint.headers.clone();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, BOTH);
    for (name, value) in &hints.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err(failed(
                ErrorCode::INTERNAL_ERROR,
                format!("'{name}' is not a header that can be sent"),
            ));
        };
        headers.insert(name, value);
    }
    let sent = endpoint.client.post(endpoint.url.clone()).headers(headers).body(frame).send().await;
    sent.map_err(|error| {
        tracing::debug!(%error, "a request could not be sent");
        Unanswered(ErrorObject::connection_closed())
    })
}

struct Exchange<'a> {
    inbox: &'a Inbox,
    id: &'a RequestId,
    limit: usize,
}

impl Exchange<'_> {
    async fn read(&self, response: Response) -> Result<(), Unanswered> {
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            return Err(failed(ErrorCode::INVALID_REQUEST, "server answered a request with 202 Accepted"));
        }
        if !status.is_success() {
            return Err(self.refusal(response).await);
        }
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        match kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => self.json(response).await,
            "text/event-stream" => self.events(response).await,
            other => {
                let shown: String = other.chars().take(100).collect();
                Err(failed(ErrorCode::INVALID_REQUEST, format!("Unexpected content type: {shown}")))
            }
        }
    }

    /// The error of a refusal, if it says one.
    async fn refusal(&self, response: Response) -> Unanswered {
        let status = response.status();
        let body = self.body(response).await.unwrap_or_default();
        let told = std::str::from_utf8(&body).ok().map(jsonrpc::read);
        if let Some(Ok(Frame::Failure { error, .. })) = told
            && let Ok(error) = serde_json::from_str(error)
        {
            return Unanswered(error);
        }
        match status {
            StatusCode::NOT_FOUND => failed(ErrorCode::METHOD_NOT_FOUND, "Not Found"),
            _ => failed(ErrorCode::INTERNAL_ERROR, "Server returned an error response"),
        }
    }

    async fn json(&self, response: Response) -> Result<(), Unanswered> {
        let body = self.body(response).await?;
        let unreadable = || failed(ErrorCode::PARSE_ERROR, "Parse error");
        let text = ByteString::try_from(body).map_err(|_| unreadable())?;
        match self.sort(&text) {
            Sorted::Answer => {
                self.inbox.deliver(text).await;
                Ok(())
            }
            Sorted::Unreadable => Err(unreadable()),
            Sorted::Message | Sorted::Stray => Err(Unanswered(ErrorObject::connection_closed())),
        }
    }

    /// Delivers messages until the answer; a stream that ends without one is a lost request.
    async fn events(&self, mut response: Response) -> Result<(), Unanswered> {
        let mut reader = EventReader::new(self.limit);
        let mut ready = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
            let fed = reader.feed(&piece, &mut |data| ready.push(data));
            for data in ready.drain(..) {
                let Ok(text) = ByteString::try_from(data) else { continue };
                match self.sort(&text) {
                    Sorted::Answer => {
                        self.inbox.deliver(text).await;
                        return Ok(());
                    }
                    Sorted::Message => self.inbox.deliver(text).await,
                    Sorted::Stray | Sorted::Unreadable => tracing::warn!("a stray event is dropped"),
                }
            }
            fed.map_err(|_| too_large())?;
        }
        Err(Unanswered(ErrorObject::connection_closed()))
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Unanswered> {
        if response.content_length().is_some_and(|length| length > self.limit as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
            if body.len() + piece.len() > self.limit {
                return Err(too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn sort(&self, text: &str) -> Sorted {
        match jsonrpc::read(text) {
            Ok(Frame::Success { id, .. } | Frame::Failure { id: Some(id), .. }) if is_same(&id, self.id) => {
                Sorted::Answer
            }
            Ok(Frame::Success { .. } | Frame::Failure { .. } | Frame::Batch(_)) => Sorted::Stray,
            Ok(Frame::Request { .. } | Frame::Notification(_)) => Sorted::Message,
            Err(_) => Sorted::Unreadable,
        }
    }
}

/// What a message is to the request that waits.
enum Sorted {
    Answer,
    Message,
    /// The answer to something else.
    Stray,
    Unreadable,
}

/// Equal, or the number of the other's text: some servers change the type.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one == other || one.to_string().trim_matches('"') == other.to_string().trim_matches('"')
}

fn lost(error: &reqwest::Error) -> Unanswered {
    tracing::debug!(%error, "a response broke off");
    Unanswered(ErrorObject::connection_closed())
}

fn too_large() -> Unanswered {
    failed(ErrorCode::INTERNAL_ERROR, "the server's answer is too large")
}
