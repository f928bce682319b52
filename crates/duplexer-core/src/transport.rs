//! Transports: the source and the sink of frames.
//!
//! A transport is a reader and a writer of frames. It knows nothing of their meaning, of ids, or of pending calls. Byte
//! streams are framed by newlines in `lines`; metadata that a stream cannot express (headers, routing) accompanies the frame.

pub mod child;
#[cfg(unix)]
mod descriptor;
mod exchange;
mod failure;
mod frames;
mod headers;
pub mod lines;
pub mod memory;
pub mod stdio;
mod tap;
#[cfg(test)]
mod testing;
mod thread;

use std::any::Any;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytestring::ByteString;
use duplexer_types::jsonrpc::RequestId;

use crate::clock::CallClock;

pub use exchange::{Exchanged, PolledExchange};
pub use failure::{HttpRefusal, TransportFailure};
pub use frames::{FrameMeta, Frames};
pub use headers::{HeaderSource, Headers};
pub use tap::{FrameDirection, Tap};

/// A duplex stream of frames.
///
/// It is split once and consumed, so that two connections can never share one.
pub trait Transport: Send + 'static {
    /// Splits the transport into its two directions.
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>);

    /// Returns the clock of all timeouts of the session, if the transport pauses it: while a person logs in, for example.
    fn clock(&self) -> Option<CallClock> {
        None
    }

    /// Returns whether the headers of a frame ([`FrameMeta::headers`]) reach the peer. Where they do not, a client makes none.
    fn has_headers(&self) -> bool {
        true
    }
}

/// The read half of a transport.
pub trait FrameReader: Send + 'static {
    /// Reads the next frame; `None` at the orderly end. It is not called again after `None` or an error.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>>;
}

/// The write half of a transport.
pub trait FrameWriter: Send + 'static {
    /// Writes frames and removes them from `frames`, until none is left.
    ///
    /// On `Pending` the written frames have been removed and the rest is still there. The caller can add more before the
    /// next call. It can be called from any task: the waker of the last call counts.
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>>;

    /// Closes the direction after everything is written.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;

    /// Begins an own request whose caller polls the exchange with the peer itself, so that no other task passes the response
    /// on. Called when nothing is queued. Takes `frame` and returns the exchange, or returns `None`: then the request is queued.
    fn begin(
        &mut self,
        id: &RequestId,
        frame: &mut Vec<u8>,
        meta: Option<&FrameMeta>,
    ) -> Option<Box<dyn PolledExchange>> {
        let _ = (id, frame, meta);
        None
    }
}

/// An item that a reader yields.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// The text of one message.
    Message(IncomingMessage),
    /// A message that cannot be returned as text, such as a line beyond the limit. It has been skipped. The text is the reason.
    Unreadable(&'static str),
    /// The transport could not carry the own request with this id, or its response. Other requests go on.
    Failed(RequestId, TransportFailure),
}

/// The text of a message, and what the transport knows about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct IncomingMessage {
    /// The text; it does not keep a much larger buffer alive.
    pub text: ByteString,
    /// The context of the message. Without one a request is refused.
    pub context: Option<Arc<TransportContext>>,
    /// Called when a request in this message ends without a response because the peer cancelled it.
    pub unanswered: Option<OnUnanswered>,
}

impl IncomingMessage {
    /// Creates a message with text and context only.
    pub fn new(text: ByteString, context: Arc<TransportContext>) -> Self {
        Self { text, context: Some(context), unanswered: None }
    }
}

/// Hook of a transport that must release something of its own when a request stays unanswered.
pub struct OnUnanswered(Box<dyn FnOnce() + Send>);

impl OnUnanswered {
    /// Creates a hook that runs once, after the handler has ended.
    pub fn new(hook: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(hook))
    }

    /// Runs the hook.
    pub fn call(self) {
        (self.0)();
    }
}

impl fmt::Debug for OnUnanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnUnanswered")
    }
}

/// What a transport knows about a message, for its handler.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportContext {
    /// The name of the transport, for logs and traces: `stdio`, `memory`, `http`.
    pub kind: &'static str,
    /// Whether a request can be sent to the peer while this message is handled.
    pub back_channel: BackChannel,
    /// Whether a request has a stream of its own.
    pub request_stream: RequestStream,
    /// The headers of the message. Empty if the transport has none.
    pub headers: Headers,
    /// The authenticated sender of this message, if each message has one. The server defines the type; transports only carry it.
    pub sender: Option<Arc<dyn Any + Send + Sync>>,
    /// The address of the client, if the transport knows it: behind trusted proxies, that of the first client.
    pub client_address: Option<IpAddr>,
    /// Private, so that only a constructor decides it: no name of a transport grants trust.
    trust: Trust,
}

impl TransportContext {
    /// Creates the context of a two-way stream, without headers.
    pub fn stream(kind: &'static str) -> Self {
        let (back_channel, request_stream) = (BackChannel::Open, RequestStream::Shared);
        let (headers, trust) = (Headers::default(), Trust::Network);
        Self { kind, back_channel, request_stream, headers, sender: None, client_address: None, trust }
    }

    /// Creates the context of a two-way stream whose peer is a process on this machine that shares the rights of this one:
    /// the one that started it, one that it started, or this process itself.
    pub fn local_process(kind: &'static str) -> Self {
        Self { trust: Trust::LocalProcess, ..Self::stream(kind) }
    }

    /// Creates the context of an exchange without a back-channel.
    pub fn exchange(kind: &'static str, headers: Headers) -> Self {
        let (back_channel, request_stream) = (BackChannel::Closed, RequestStream::Own);
        Self { trust: Trust::Network, back_channel, request_stream, headers, ..Self::stream(kind) }
    }

    /// Returns what is known of the peer from the transport alone, before any authentication.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// Returns the values of a header. The name is case-insensitive.
    pub fn header(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.values(name).into_iter()
    }
}

/// What is known of a peer from the transport alone, before any authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// A process that shares the rights of this one: it started this process, was started by it, or is this process.
    LocalProcess,
    /// Any other peer. Nothing is known of it.
    Network,
}

/// Whether requests can be sent to the peer while it waits for a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackChannel {
    /// Requests reach the peer.
    Open,
    /// Only the response and its notifications reach the peer.
    Closed,
}

/// The stream that carries the messages of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStream {
    /// One stream for all requests: the end of a request must be sent explicitly.
    Shared,
    /// A stream per request, whose end the peer sees.
    Own,
}

/// Error of a transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Reading or writing failed.
    #[error("the transport failed")]
    Io(#[from] std::io::Error),
    /// The peer has closed its side.
    #[error("the peer has closed the connection")]
    Closed,
    /// The transport could not be set up; the text says what to change.
    #[error("{0}")]
    Setup(String),
}
