//! One message to the server and the messages of its HTTP response.

use std::time::Duration;

use bytestring::ByteString;
use duplexer_core::transport::TransportFailure;
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::{self, RawFrame, RequestId};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use tokio::time::sleep;

use crate::connection::{Connection, EVENTS, Outgoing, SessionRole};
use crate::failure;
use crate::reconnect::EventStream;

/// Maximum time for the POST of a message that has no response.
const ONE_WAY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum times that a request is sent again because the server had no capacity, and the maximum delay before each.
const MAX_RESENDS: u32 = 3;
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Why a request ends without a response of the server.
#[derive(Debug)]
enum ExchangeError {
    /// The error of the server that came with a refusing status.
    Rpc(ErrorObject),
    Transport(TransportFailure),
}

impl From<TransportFailure> for ExchangeError {
    fn from(failure: TransportFailure) -> Self {
        Self::Transport(failure)
    }
}

/// How far a request has come when the head of its HTTP response, and a body that is no stream, are read.
pub(crate) enum Progress {
    /// The response, which is not delivered yet.
    Response(ByteString),
    /// The response is delivered, among other messages.
    Delivered,
    /// The rest is a stream of events.
    Stream(Response),
}

/// Whether a request that the server had no capacity for is sent again at the time it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    Never,
    WhenBusy,
}

/// Sends a request. Dropping the future aborts the POST.
pub(crate) async fn begin(
    connection: &Connection,
    id: &RequestId,
    message: &Outgoing,
    role: SessionRole,
    resend: Resend,
) -> Result<Progress, TransportFailure> {
    let exchange = Exchange { connection, id: Some(id), role };
    match exchange.run(message, resend).await {
        Ok(progress) => Ok(progress),
        Err(ExchangeError::Transport(failure)) => Err(failure),
        Err(ExchangeError::Rpc(error)) => {
            let mut text = Vec::new();
            jsonrpc::write_failure(&mut text, Some(id), &error);
            let text = ByteString::try_from(text);
            text.map(Progress::Response)
                .map_err(|_| TransportFailure::Protocol("its error is not valid text".into()))
        }
    }
}

/// Delivers the rest of a request to the reader half. Dropping the future aborts the POST.
pub(crate) async fn finish(
    connection: &Connection,
    id: &RequestId,
    role: SessionRole,
    progress: Result<Progress, TransportFailure>,
) {
    let exchange = Exchange { connection, id: Some(id), role };
    let finished = match progress {
        Ok(Progress::Delivered) => Ok(()),
        Ok(Progress::Response(text)) => {
            connection.inbox.deliver(text).await;
            Ok(())
        }
        Ok(Progress::Stream(response)) => Box::pin(EventStream::new(exchange).until_answered(response)).await,
        Err(failure) => Err(failure),
    };
    if let Err(failure) = finished {
        connection.inbox.fail(id, failure).await;
    }
}

/// Sends a message that has no response: a notification, or a response to the server.
pub(crate) async fn send_one_way(connection: &Connection, message: Outgoing) {
    let posted = connection.post(&message, SessionRole::Member);
    match connection.endpoint.within(ONE_WAY_TIMEOUT, posted).await {
        Some(Ok(response)) if response.status().is_success() => {}
        Some(Ok(response)) => {
            tracing::warn!(refusal = %failure::refused(&response, ""), "a message was refused");
        }
        Some(Err(error)) => tracing::warn!(%error, "a message could not be sent"),
        None => tracing::warn!("the server does not say whether it accepts a message"),
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
    async fn run(&self, message: &Outgoing, resend: Resend) -> Result<Progress, ExchangeError> {
        let mut repeated = 0;
        let response = loop {
            let response = self.connection.post(message, self.role).await?;
            let may_resend = resend == Resend::WhenBusy && repeated < MAX_RESENDS;
            let Some(delay) = retry_after(&response).filter(|_| may_resend) else { break response };
            repeated += 1;
            sleep(delay).await;
        };
        self.read(response).await
    }

    /// Reads the response. The futures of rarer kinds are boxed, so that the others are small.
    async fn read(&self, response: Response) -> Result<Progress, ExchangeError> {
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            let reason = "the server answered a request with 202 Accepted";
            return Err(TransportFailure::Protocol(reason.into()).into());
        }
        if !status.is_success() {
            return Err(Box::pin(self.refusal(response)).await);
        }
        if self.role == SessionRole::Opens && self.connection.session.open(response.headers()).is_err() {
            return Err(TransportFailure::Protocol("its session id is not visible ASCII".into()).into());
        }
        match &*media_type(&response) {
            "application/json" => self.json(response).await,
            EVENTS => Ok(Progress::Stream(response)),
            other => {
                let shown: String = other.chars().take(100).collect();
                Err(TransportFailure::Protocol(format!("unexpected content type '{shown}'").into()).into())
            }
        }
    }

    /// Reads the error of a rejected request, or derives a failure from the status.
    ///
    /// 401 and 403 concern the HTTP request, whatever their body is.
    async fn refusal(&self, mut response: Response) -> ExchangeError {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.is_in_session() {
            return TransportFailure::SessionEnded.into();
        }
        let is_final = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_final || media_type(&response) != "application/json" {
            return failure::of_refusal(response).await.into();
        }
        let body = self.body(&mut response).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        if let Ok(RawFrame::Failure { error, .. }) = jsonrpc::read(&body)
            && let Ok(error) = serde_json::from_str(error)
        {
            return ExchangeError::Rpc(error);
        }
        failure::refused(&response, &body).into()
    }

    /// Returns whether the request was sent with a session id.
    pub(crate) fn is_in_session(&self) -> bool {
        self.role == SessionRole::Member && self.connection.session.has_id()
    }

    async fn json(&self, mut response: Response) -> Result<Progress, ExchangeError> {
        let body = self.body(&mut response).await?;
        let Ok(text) = ByteString::try_from(body) else {
            return Err(TransportFailure::Protocol("it is not JSON-RPC".into()).into());
        };
        if matches!(self.classify(&text), Class::Response) {
            return Ok(Progress::Response(text));
        }
        match self.deliver(text).await {
            Received::Response => Ok(Progress::Delivered),
            Received::Unreadable => Err(TransportFailure::Protocol("it is not JSON-RPC".into()).into()),
            Received::Other => {
                Err(TransportFailure::Protocol("it does not answer the request".into()).into())
            }
        }
    }

    async fn body(&self, response: &mut Response) -> Result<Vec<u8>, TransportFailure> {
        let limit = self.connection.endpoint.limit;
        if response.content_length().is_some_and(|length| length > limit as u64) {
            return Err(failure::too_large(limit));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(failure::of_reading)? {
            if body.len() + piece.len() > limit {
                return Err(failure::too_large(limit));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Delivers the messages of `data` that belong to this exchange.
    pub(crate) async fn receive(&self, data: Vec<u8>) -> Received {
        match ByteString::try_from(data) {
            Ok(text) => self.deliver(text).await,
            Err(_) => Received::Unreadable,
        }
    }

    async fn deliver(&self, text: ByteString) -> Received {
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
            self.connection.inbox.deliver(part).await;
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

/// Returns when a request that was not run for lack of capacity can be sent again, if the server says so.
fn retry_after(response: &Response) -> Option<Duration> {
    if response.status().is_success() {
        return None;
    }
    match failure::refused(response, "").refusal() {
        Some(refusal) if refusal.is_temporary() => {
            refusal.retry_after.filter(|delay| *delay <= MAX_RETRY_AFTER)
        }
        _ => None,
    }
}

/// Returns type and subtype of a response body.
pub(crate) fn media_type(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
