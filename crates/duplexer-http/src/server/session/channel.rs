//! Channels from handlers to the client of a session: within a request, or outside all requests.

use std::sync::{Arc, OnceLock, Weak};

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, Cancellation, Channel, FrameSink, NotifyFuture, Outbound, OutboundRequest, StreamClosing,
};
use duplexer_core::error::CallError;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::Method;
use duplexer_types::version::feature;

use super::Session;
use super::stream::{Question, Stream};
use crate::server::event_queue::{EventSink, WhenFull, encode_notification, enqueue};
use crate::server::service_state::ServiceState;
use crate::session::{StreamId, StreamKey};

/// What the handler of a request can send before its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamUse {
    /// Requests and notifications, on the stream of the request.
    Events,
    /// Nothing: the response is one JSON body.
    ResponseOnly,
}

/// Channel of one request.
pub(super) struct RequestChannel {
    pub(super) service: Arc<ServiceState>,
    pub(super) session: Arc<Session>,
    pub(super) stream: Arc<Stream>,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) stream_use: StreamUse,
}

impl Outbound for RequestChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        if self.stream_use == StreamUse::ResponseOnly {
            return no_back_channel(request);
        }
        call_client(Arc::clone(&self.session), Arc::clone(&self.stream), request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if self.stream_use == StreamUse::ResponseOnly {
            NotifyFuture::done()
        } else {
            notify(&self.stream, method, params)
        }
    }

    fn close_stream(&self) -> StreamClosing {
        release(&self.session, &self.stream)
    }
}

impl Channel for RequestChannel {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn closing(&self) -> &Cancellation {
        &self.service.closing
    }
}

/// Channel for messages outside a request. Its connection is part of the session.
#[derive(Default)]
pub(super) struct ConnectionChannel(OnceLock<Weak<Session>>);

impl ConnectionChannel {
    /// Links the channel to its session, once both exist.
    pub(super) fn set_session(&self, session: &Arc<Session>) {
        let _ = self.0.set(Arc::downgrade(session));
    }

    fn open(&self) -> Option<(Arc<Session>, Arc<Stream>)> {
        let session = self.0.get()?.upgrade()?;
        let stream = match session.shared_stores() {
            Some(stores) => session.standalone_writer(stores),
            None => session.standalone()?,
        };
        Some((session, stream))
    }

    /// Sends a list change, or keeps it until the client opens the stream: the client has no other way to know of it.
    fn list_changed(&self, change: ListChange, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        let session = self.0.get().and_then(Weak::upgrade);
        let (Some(session), Some(json)) = (session, encode_notification(method, params)) else {
            return NotifyFuture::done();
        };
        let stream = match session.shared_stores() {
            Some(stores) => Some(session.standalone_writer(stores)),
            None => session.standalone_or_keep(change, &json),
        };
        match stream {
            Some(stream) => enqueue(&stream, json),
            // A handler that only sends notifications must reach an await at which it can be cancelled.
            None => NotifyFuture::waiting(tokio::task::yield_now()),
        }
    }
}

/// A list whose change is announced to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListChange {
    Tools,
    Prompts,
    Resources,
}

impl ListChange {
    /// Returns the list that a notification is about.
    fn of(method: &str) -> Option<Self> {
        match Method::parse(method)? {
            Method::ToolsListChanged => Some(Self::Tools),
            Method::PromptsListChanged => Some(Self::Prompts),
            Method::ResourcesListChanged => Some(Self::Resources),
            _ => None,
        }
    }
}

impl Outbound for ConnectionChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        let Some((session, stream)) = self.open() else { return no_back_channel(request) };
        let Some(stores) = session.shared_stores().cloned() else {
            return call_client(session, stream, request);
        };
        // The client may read at another node, or may have opened no stream at all.
        Box::pin(async move {
            let key = StreamKey::new(Arc::clone(&session.id), StreamId::STANDALONE);
            match stores.read(&key, 0, 0).await {
                Ok(Some(_)) => call_client(session, stream, request).await,
                _ => no_back_channel(request).await,
            }
        })
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if let Some(change) = ListChange::of(method) {
            return self.list_changed(change, method, params);
        }
        match self.open() {
            Some((_, stream)) => notify(&stream, method, params),
            None => NotifyFuture::done(),
        }
    }

    fn close_stream(&self) -> StreamClosing {
        self.open().map_or(StreamClosing::NotSupported, |(session, stream)| release(&session, &stream))
    }
}

/// Channel of a notification's handler, which sends outside a request.
pub(super) struct NotificationChannel {
    pub(super) service: Arc<ServiceState>,
    pub(super) session: Arc<Session>,
    pub(super) never: Cancellation,
}

impl Outbound for NotificationChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        self.session.connection.outbound().request(request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.session.connection.outbound().notify(method, params)
    }
}

impl Channel for NotificationChannel {
    fn cancellation(&self) -> &Cancellation {
        &self.never
    }

    fn closing(&self) -> &Cancellation {
        &self.service.closing
    }
}

fn no_back_channel(request: OutboundRequest) -> BoxFuture<'static, Result<ByteString, CallError>> {
    Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
}

/// Sends a request to the client. Fails at once if the client cannot receive it.
fn call_client(
    session: Arc<Session>,
    stream: Arc<Stream>,
    mut request: OutboundRequest,
) -> BoxFuture<'static, Result<ByteString, CallError>> {
    if !stream.has_receiver() {
        return no_back_channel(request);
    }
    let Some(slot) = QuestionSlot::take(&session) else { return too_many_questions() };
    request.options.timeout = request.options.timeout.or(session.limits.client_request);
    if let (Some(stores), None) = (session.shared_stores(), &request.options.id) {
        request.options.id = Some(stores.question_id());
    }
    Box::pin(async move {
        let sink = StreamSink { stream: &stream, question: stream.question() };
        let response = session.correlation.call(request, &sink).await;
        drop(slot);
        response
    })
}

/// A request to the client that waits for its response, until this is dropped.
struct QuestionSlot(Arc<Session>);

impl QuestionSlot {
    fn take(session: &Arc<Session>) -> Option<Self> {
        session.counts.questions.add(session.limits.questions).then(|| Self(Arc::clone(session)))
    }
}

impl Drop for QuestionSlot {
    fn drop(&mut self) {
        self.0.counts.questions.remove();
    }
}

fn too_many_questions() -> BoxFuture<'static, Result<ByteString, CallError>> {
    let error =
        ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Too many requests to the client in this session");
    Box::pin(std::future::ready(Err(CallError::Unsupported(error))))
}

fn notify(stream: &Arc<Stream>, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
    if !stream.has_receiver() {
        // A handler that only sends notifications must reach an await at which it can be cancelled.
        return NotifyFuture::waiting(tokio::task::yield_now());
    }
    encode_notification(method, params).map_or_else(NotifyFuture::done, |json| enqueue(stream, json))
}

/// Ends the response of a stream, if the client supports resuming it.
fn release(session: &Session, stream: &Stream) -> StreamClosing {
    if session.connection.version().has(feature::SSE_POLLING) {
        stream.release()
    } else {
        StreamClosing::NotSupported
    }
}

/// Sends the server's own requests as events of a stream.
struct StreamSink<'a> {
    stream: &'a Arc<Stream>,
    /// The request, if the stream keeps it until it is answered.
    question: Option<Arc<Question>>,
}

impl FrameSink for StreamSink<'_> {
    fn send(&self, frame: &[u8]) -> Result<NotifyFuture, CallError> {
        if self.stream.has_receiver() {
            Ok(self.stream.ask(frame, self.question.as_ref()))
        } else {
            Err(CallError::Closed)
        }
    }

    fn send_now(&self, frame: &[u8]) {
        let _ = self.stream.offer(frame, WhenFull::Exceed);
    }
}
