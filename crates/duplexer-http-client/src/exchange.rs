//! One message to the server and the messages of its HTTP response.

use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, RawFrame, RequestId};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use crate::connection::{Connection, EVENTS, Outgoing, SendError, SessionRole};
use crate::reconnect::EventStream;

/// Maximum time for the POST of a message that has no response.
const ONE_WAY_TIMEOUT: Duration = Duration::from_secs(30);

/// Error that is delivered in place of the response of the server.
#[derive(Debug)]
pub(crate) struct ExchangeError(pub(crate) ErrorObject);

impl ExchangeError {
    fn new(code: ErrorCode, message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self(ErrorObject::new(code, message))
    }

    /// The connection is closed, for this reason.
    pub(crate) fn closed(reason: &str) -> Self {
        Self::new(ErrorCode::CONNECTION_CLOSED, format!("Connection closed: {reason}"))
    }

    /// The server has ended the session: the client must repeat the handshake.
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

impl From<SendError> for ExchangeError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Header(name) => {
                Self::new(ErrorCode::INTERNAL_ERROR, format!("'{name}' is not a header that can be sent"))
            }
            SendError::Unreached(error) if error.is_connect() => {
                tracing::debug!(%error, "the server could not be reached");
                Self::closed("the server could not be reached")
            }
            SendError::Unreached(error) => Self::lost(&error),
        }
    }
}

/// Sends a request and delivers every message of its response. Dropping the future aborts the POST.
pub(crate) async fn request(connection: &Connection, id: &RequestId, message: Outgoing, role: SessionRole) {
    let exchange = Exchange { connection, id: Some(id), role };
    if let Err(ExchangeError(error)) = exchange.run(message).await {
        let mut text = Vec::new();
        jsonrpc::write_failure(&mut text, Some(id), &error);
        if let Ok(text) = ByteString::try_from(text) {
            connection.deliver(text).await;
        }
    }
}

/// Sends a message that has no response: a notification, or a response to the server.
pub(crate) async fn send_one_way(connection: &Connection, message: Outgoing) {
    match timeout(ONE_WAY_TIMEOUT, connection.post(message, SessionRole::Member)).await {
        Ok(Ok(response)) if response.status().is_success() => {}
        Ok(Ok(response)) => tracing::warn!(status = %response.status(), "a message was refused"),
        Ok(Err(error)) => tracing::warn!(?error, "a message could not be sent"),
        Err(_) => tracing::warn!("the server does not say whether it accepts a message"),
    }
}

/// Receives the messages of one request, or of the standalone stream, which has no request.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) id: Option<&'a RequestId>,
    pub(crate) role: SessionRole,
}

/// Relation of received data to the waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Response,
    /// Another message, or an ignored one.
    Other,
    Unreadable,
}

impl Exchange<'_> {
    async fn run(&self, message: Outgoing) -> Result<(), ExchangeError> {
        let response = self.connection.post(message, self.role).await?;
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            let message = "server answered a request with 202 Accepted";
            return Err(ExchangeError::new(ErrorCode::INVALID_REQUEST, message));
        }
        if !status.is_success() {
            self.connection.endpoint.report_challenge(&response);
            return Err(self.refusal(response).await);
        }
        if self.role == SessionRole::Opens && self.connection.session.open(response.headers()).is_err() {
            let message = "the server's session id is not visible ASCII";
            return Err(ExchangeError::new(ErrorCode::INVALID_REQUEST, message));
        }
        match &*media_type(&response) {
            "application/json" => self.json(response).await,
            EVENTS => EventStream::new(*self).until_answered(response).await,
            other => {
                let shown: String = other.chars().take(100).collect();
                let message = format!("Unexpected content type: {shown}");
                Err(ExchangeError::new(ErrorCode::INVALID_REQUEST, message))
            }
        }
    }

    /// Reads the error of a rejected request, or derives one from the status.
    async fn refusal(&self, response: Response) -> ExchangeError {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.is_in_session() {
            return ExchangeError::terminated();
        }
        let body = self.body(response).await.unwrap_or_default();
        let body = std::str::from_utf8(&body).ok().map(jsonrpc::read);
        if let Some(Ok(RawFrame::Failure { error, .. })) = body
            && let Ok(error) = serde_json::from_str(error)
        {
            return ExchangeError(error);
        }
        match status {
            StatusCode::NOT_FOUND => ExchangeError::new(ErrorCode::METHOD_NOT_FOUND, "Not Found"),
            _ => ExchangeError::new(ErrorCode::INTERNAL_ERROR, "Server returned an error response"),
        }
    }

    /// Returns whether the request was sent with a session id.
    pub(crate) fn is_in_session(&self) -> bool {
        self.role == SessionRole::Member && self.connection.session.has_id()
    }

    async fn json(&self, response: Response) -> Result<(), ExchangeError> {
        let body = self.body(response).await?;
        match self.receive(body).await {
            Received::Response => Ok(()),
            Received::Unreadable => Err(ExchangeError::unreadable()),
            Received::Other => Err(ExchangeError(ErrorObject::connection_closed())),
        }
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ExchangeError> {
        let limit = self.connection.endpoint.limit;
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(ExchangeError::too_large());
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| ExchangeError::lost(&error))? {
            if body.len() + piece.len() > limit {
                return Err(ExchangeError::too_large());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Delivers the messages of `data` that belong to this exchange.
    pub(crate) async fn receive(&self, data: Vec<u8>) -> Received {
        let Ok(text) = ByteString::try_from(data) else { return Received::Unreadable };
        let mut received = Received::Other;
        for part in self.parts(text) {
            match self.classify(&part) {
                Class::Response => received = Received::Response,
                Class::Message => {}
                Class::Unreadable => return Received::Unreadable,
                Class::Stray => {
                    tracing::warn!("a stray answer is dropped");
                    continue;
                }
            }
            self.connection.deliver(part).await;
        }
        received
    }

    /// Splits a batch, in a session that has batches.
    fn parts(&self, text: ByteString) -> Vec<ByteString> {
        let is_batch =
            self.connection.session.has_batches() && matches!(jsonrpc::read(&text), Ok(RawFrame::Batch(_)));
        match jsonrpc::batch(&text) {
            Ok(parts) if is_batch => parts.into_iter().map(|part| text.slice_ref(part)).collect(),
            _ => vec![text],
        }
    }

    fn classify(&self, text: &str) -> Class {
        match jsonrpc::read(text) {
            Ok(RawFrame::Success { id, result }) if self.is_answered_by(&id) => {
                if self.role == SessionRole::Opens {
                    self.connection.session.set_version(result);
                }
                Class::Response
            }
            Ok(RawFrame::Failure { id: Some(id), .. }) if self.is_answered_by(&id) => Class::Response,
            Ok(RawFrame::Success { .. } | RawFrame::Failure { .. } | RawFrame::Batch(_)) => Class::Stray,
            Ok(RawFrame::Request { .. } | RawFrame::Notification(_)) => Class::Message,
            Err(_) => Class::Unreadable,
        }
    }

    /// Compares ids. Some servers change a numeric id to a string, or the reverse.
    fn is_answered_by(&self, id: &RequestId) -> bool {
        self.id.is_some_and(|own| own == id || own.twin().as_ref() == Some(id))
    }
}

enum Class {
    Response,
    Message,
    /// A response to another request.
    Stray,
    Unreadable,
}

/// Returns type and subtype of a response body.
pub(crate) fn media_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
