//! Transports: where frames come from and go to.
//!
//! A transport is a reader and a writer of frames. It knows nothing of what the frames mean, of ids, or of
//! who waits for what. Byte streams are framed by newlines in `lines`; what a stream cannot express
//! (headers, routing) travels beside the frame.

#[cfg(unix)]
pub mod child;
#[cfg(unix)]
mod descriptor;
mod frames;
mod headers;
pub mod lines;
pub mod memory;
#[cfg(unix)]
pub mod stdio;
mod tap;
#[cfg(test)]
mod testing;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytestring::ByteString;

#[cfg(unix)]
pub use crate::shutdown_signal as signal;
pub use frames::{Frames, Hints};
pub use headers::{HeaderSource, Headers};
pub use tap::{Passing, Tap};

/// A duplex of frames.
///
/// It is taken apart once and consumed, so that two connections can never share one.
pub trait Transport: Send + 'static {
    /// The two directions.
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>);
}

/// The direction from the peer.
pub trait FrameReader: Send + 'static {
    /// The next frame; `None` at the orderly end. After `None` or an error nothing more is asked.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>>;
}

/// The direction to the peer.
pub trait FrameWriter: Send + 'static {
    /// Writes frames and takes them out of `frames`, until none is left.
    ///
    /// On `Pending` what has been written is gone from `frames` and the rest is still there; the caller may
    /// have added more when it comes back. May be called from any task: the waker of the last call counts.
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>>;

    /// Ends the direction after everything is written.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;
}

/// What a reader yields.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// The text of one message.
    Message(IncomingMessage),
    /// A message that cannot be given out as text, such as a line beyond the limit. It has been passed over.
    Unreadable(&'static str),
}

/// The text of a message and what the transport knows about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct IncomingMessage {
    /// The text; it does not keep a much larger buffer alive.
    pub text: ByteString,
    /// Where it came from; `None` if the transport could not say, in which case a request is refused.
    pub context: Option<Arc<TransportContext>>,
    /// Called when a request in this message ends without an answer because the peer cancelled it.
    pub unanswered: Option<Unanswered>,
}

impl IncomingMessage {
    /// A message of a transport that needs no more than text and context.
    pub fn new(text: ByteString, context: Arc<TransportContext>) -> Self {
        Self { text, context: Some(context), unanswered: None }
    }
}

/// For transports that must end something of their own when a request stays unanswered.
pub struct Unanswered(Box<dyn FnOnce() + Send>);

impl Unanswered {
    /// `hook` runs once, after the handler has ended.
    pub fn new(hook: impl FnOnce() + Send + 'static) -> Self {
        Self(Box::new(hook))
    }

    /// Runs the hook.
    pub fn call(self) {
        (self.0)();
    }
}

impl fmt::Debug for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unanswered")
    }
}

/// What a transport says about a message, for those who handle it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportContext {
    /// The name of the transport, for logs and traces: `stdio`, `memory`, `http`.
    pub kind: &'static str,
    /// Whether a request can be sent to the peer while this message is handled.
    pub back_channel: BackChannel,
    /// Whether a request has a stream of its own.
    pub request_stream: RequestStream,
    /// The headers the message came with. Empty where the transport has none.
    pub headers: Headers,
    /// Who sent this very message, where that is established for each. The server says what it is; transports only carry it.
    pub sender: Option<Arc<dyn Any + Send + Sync>>,
    /// Private, so that only a constructor decides it: no name of a transport grants trust.
    trust: Trust,
}

impl TransportContext {
    /// A context of a two-way stream, without headers.
    pub fn stream(kind: &'static str) -> Self {
        let (back_channel, request_stream) = (BackChannel::Open, RequestStream::Shared);
        let (headers, trust) = (Headers::default(), Trust::Network);
        Self { kind, back_channel, request_stream, headers, sender: None, trust }
    }

    /// Creates the context of a two-way stream whose peer is a process on this machine that shares the rights of this one:
    /// the one that started it, one that it started, or this process itself.
    pub fn local_process(kind: &'static str) -> Self {
        Self { trust: Trust::LocalProcess, ..Self::stream(kind) }
    }

    /// A context of an exchange in which the peer cannot be asked anything.
    pub fn exchange(kind: &'static str, headers: Headers) -> Self {
        let (back_channel, request_stream) = (BackChannel::Closed, RequestStream::Own);
        Self { kind, back_channel, request_stream, headers, sender: None, trust: Trust::Network }
    }

    /// Returns what is known of the peer from the transport alone, before any authentication.
    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// The values of a header, by its name in any case.
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

/// Whether the peer can be asked something while it waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackChannel {
    /// Requests reach the peer.
    Open,
    /// There is no way to the peer but the answer and its notifications.
    Closed,
}

/// What the messages that belong to one request travel on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStream {
    /// The stream of all requests: that one of them has ended must be said.
    Shared,
    /// A stream of its own, whose end the peer sees.
    Own,
}

/// The pipe broke.
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
