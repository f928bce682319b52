//! The ways to the client of a session: on behalf of a request, or beside all of them.

use std::sync::{Arc, OnceLock, Weak};

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, Cancellation, Channel, FrameSink, NotifyFuture, Outbound, OutboundRequest, StreamClosing,
};
use duplexer_core::error::CallError;
use duplexer_types::jsonrpc::{self, Body};
use duplexer_types::version::feature;

use super::Session;
use super::stream::Stream;
use crate::server::hub::Hub;

/// Whether a request can be spoken for while it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaking {
    /// On its stream.
    Allowed,
    /// Its answer is one JSON body.
    No,
}

/// The way to the client on behalf of one request.
pub(super) struct RequestChannel {
    pub(super) hub: Arc<Hub>,
    pub(super) session: Arc<Session>,
    pub(super) stream: Arc<Stream>,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) speaking: Speaking,
}

impl Outbound for RequestChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        if self.speaking == Speaking::No {
            return refuse(request);
        }
        ask(Arc::clone(&self.session), Arc::clone(&self.stream), request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if self.speaking == Speaking::No { NotifyFuture::done() } else { tell(&self.stream, method, params) }
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
        &self.hub.closing
    }
}

/// The way to the client beside any request. The connection it belongs to is a part of the session.
#[derive(Default)]
pub(super) struct ConnectionChannel(OnceLock<Weak<Session>>);

impl ConnectionChannel {
    /// Says once, when both are made, whose channel it is.
    pub(super) fn belongs_to(&self, session: &Arc<Session>) {
        let _ = self.0.set(Arc::downgrade(session));
    }

    fn open(&self) -> Option<(Arc<Session>, Arc<Stream>)> {
        let session = self.0.get()?.upgrade()?;
        let stream = session.standalone()?;
        Some((session, stream))
    }
}

impl Outbound for ConnectionChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        match self.open() {
            Some((session, stream)) => ask(session, stream, request),
            None => refuse(request),
        }
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        match self.open() {
            Some((_, stream)) => tell(&stream, method, params),
            None => NotifyFuture::done(),
        }
    }

    fn close_stream(&self) -> StreamClosing {
        self.open().map_or(StreamClosing::NotSupported, |(session, stream)| release(&session, &stream))
    }
}

/// What the handler of a notification has: it speaks beside any request.
pub(super) struct NotificationChannel {
    pub(super) hub: Arc<Hub>,
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
        &self.hub.closing
    }
}

fn refuse(request: OutboundRequest) -> BoxFuture<'static, Result<ByteString, CallError>> {
    Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
}

/// A question that nobody can hear is refused at once, rather than waited for.
fn ask(
    session: Arc<Session>,
    stream: Arc<Stream>,
    request: OutboundRequest,
) -> BoxFuture<'static, Result<ByteString, CallError>> {
    if !stream.is_of_use() {
        return refuse(request);
    }
    Box::pin(async move { session.correlation.call(request, &OnStream(&stream)).await })
}

fn tell(stream: &Arc<Stream>, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
    if !stream.is_of_use() {
        // A handler that does nothing but tell must come to a place where it can be cancelled.
        return NotifyFuture::waiting(tokio::task::yield_now());
    }
    let mut json = Vec::with_capacity(256);
    if let Err(error) = jsonrpc::write_notification(&mut json, method, params) {
        tracing::warn!(method, %error, "a notification could not be written and is dropped");
        return NotifyFuture::done();
    }
    stream.tell(json)
}

/// Only clients that were told where to come back to are let go.
fn release(session: &Session, stream: &Stream) -> StreamClosing {
    if session.connection.version().has(feature::SSE_POLLING) {
        stream.release()
    } else {
        StreamClosing::NotSupported
    }
}

/// Our own requests travel like everything else.
struct OnStream<'a>(&'a Arc<Stream>);

impl FrameSink for OnStream<'_> {
    fn send(&self, frame: &[u8]) -> Result<NotifyFuture, CallError> {
        if self.0.is_of_use() { Ok(self.0.tell(frame.to_vec())) } else { Err(CallError::Closed) }
    }

    fn send_now(&self, frame: &[u8]) {
        self.0.tell_now(frame);
    }
}
