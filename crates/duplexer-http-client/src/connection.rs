//! State that all exchanges with one server share, and the HTTP requests of the transport: POST, GET and DELETE.

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use duplexer_core::transport::{FrameMeta, Incoming, IncomingMessage, TransportContext, TransportFailure};
use duplexer_types::headers::LAST_EVENT_ID;
use duplexer_types::jsonrpc::RequestId;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use tokio::sync::mpsc;

use crate::endpoint::Endpoint;
use crate::session::Session;

/// The media type of a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";

/// One server and the session with it.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) session: Session,
    pub(crate) inbox: Inbox,
}

/// Queue of received messages, which the reader half drains.
#[derive(Clone)]
pub(crate) struct Inbox {
    pub(crate) queue: mpsc::Sender<Incoming>,
    pub(crate) context: Arc<TransportContext>,
}

impl Inbox {
    /// Delivers a received message to the reader half.
    pub(crate) async fn deliver(&self, text: ByteString) {
        let message = IncomingMessage::new(text, Arc::clone(&self.context));
        // Fails only after the reader half is dropped; the message has no receiver then.
        let _ = self.queue.send(Incoming::Message(message)).await;
    }

    /// Ends a request that the transport could not carry.
    pub(crate) async fn fail(&self, id: &RequestId, failure: TransportFailure) {
        let _ = self.queue.send(Incoming::Failed(id.clone(), failure)).await;
    }
}

/// A message to send.
pub(crate) struct Outgoing {
    pub(crate) frame: Bytes,
    pub(crate) hints: FrameMeta,
}

/// Relation of a message to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionRole {
    /// The message carries an envelope: it belongs to no session, and its POST is the whole exchange.
    None,
    /// The message opens the session.
    Opens,
    /// The message belongs to the session.
    Member,
}

impl Connection {
    /// Sends a message as a POST.
    pub(crate) async fn post(
        &self,
        message: &Outgoing,
        role: SessionRole,
    ) -> Result<Response, TransportFailure> {
        let mut request = self.endpoint.request(Method::POST, &self.endpoint.url);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in &message.hints.headers {
            let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
                let reason = format!("'{name}' is not a header that can be sent");
                return Err(TransportFailure::Unsendable(reason.into()));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if role == SessionRole::Member {
            self.session.add_headers(headers);
        }
        *request.body_mut() = Some(message.frame.clone().into());
        self.endpoint.send(request).await
    }

    /// Opens the standalone stream of the session, or resumes an earlier stream after the event `last`.
    pub(crate) async fn get(&self, last: Option<&HeaderValue>) -> Result<Response, TransportFailure> {
        let mut request = self.endpoint.request(Method::GET, &self.endpoint.url);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last {
            headers.insert(HeaderName::from_static(LAST_EVENT_ID.lower), last.clone());
        }
        self.session.add_headers(headers);
        self.endpoint.send(request).await
    }

    /// Ends the session at the server. A server that does not support this expires the session by itself.
    pub(crate) async fn delete(&self) {
        let mut request = self.endpoint.request(Method::DELETE, &self.endpoint.url);
        self.session.add_headers(request.headers_mut());
        match self.endpoint.send(request).await {
            Ok(response) => tracing::debug!(status = %response.status(), "the session has ended"),
            Err(error) => tracing::debug!(%error, "the session could not be ended at the server"),
        }
    }
}
