//! A transport that shows its frames to a function.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::clock::CallClock;

use super::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    /// To the peer.
    Out,
    /// From the peer.
    In,
}

type Show = dyn Fn(FrameDirection, &str) + Send + Sync;

/// A transport whose frames are shown to a function. For wire logs and transcripts.
///
/// ```
/// use duplexer_core::transport::{FrameDirection, Tap, memory};
///
/// let (ours, theirs) = memory::pair();
/// let shown = Tap::new(ours, |direction, frame| match direction {
///     FrameDirection::Out => println!("--> {frame}"),
///     FrameDirection::In => println!("<-- {frame}"),
/// });
/// ```
#[derive(Clone)]
pub struct Tap<T> {
    transport: T,
    show: Arc<Show>,
}

impl<T: Transport> Tap<T> {
    /// Wraps `transport`. `show` gets a frame to the peer once it is written, and one from the peer once it is read. It is
    /// called on the connection's own task and must not block for long.
    pub fn new(transport: T, show: impl Fn(FrameDirection, &str) + Send + Sync + 'static) -> Self {
        Self { transport, show: Arc::new(show) }
    }
}

impl<T: Transport> Transport for Tap<T> {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (reader, writer) = self.transport.split();
        let incoming = TappedReader { reader, show: Arc::clone(&self.show) };
        let outgoing = TappedWriter { writer, show: self.show, partial: Vec::new() };
        (Box::new(incoming), Box::new(outgoing))
    }

    fn clock(&self) -> Option<CallClock> {
        self.transport.clock()
    }
}

impl<T: fmt::Debug> fmt::Debug for Tap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tap").field(&self.transport).finish()
    }
}

struct TappedReader {
    reader: Box<dyn FrameReader>,
    show: Arc<Show>,
}

impl FrameReader for TappedReader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        let next = self.reader.poll_next(cx);
        if let Poll::Ready(Some(Ok(incoming))) = &next {
            match incoming {
                Incoming::Message(message) => (self.show)(FrameDirection::In, &message.text),
                Incoming::Unreadable(reason) => (self.show)(FrameDirection::In, reason),
                Incoming::Failed(_, failure) => (self.show)(FrameDirection::In, &failure.to_string()),
            }
        }
        next
    }
}

struct TappedWriter {
    writer: Box<dyn FrameWriter>,
    show: Arc<Show>,
    /// The written part of a frame that is not complete yet.
    partial: Vec<u8>,
}

impl FrameWriter for TappedWriter {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let before = frames.bytes().to_vec();
        let result = self.writer.poll_write(cx, frames);
        let written = before.len().saturating_sub(frames.len());
        for byte in before.into_iter().take(written) {
            if byte == b'\n' {
                let frame = std::mem::take(&mut self.partial);
                (self.show)(FrameDirection::Out, &String::from_utf8_lossy(&frame));
            } else {
                self.partial.push(byte);
            }
        }
        result
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.writer.poll_close(cx)
    }
}
