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
    /// Wraps `transport`. `show` gets a frame to the peer before it is written, so that its answer is never shown first, and
    /// one from the peer once it is read. It is called on the connection's own task and must not block for long.
    pub fn new(transport: T, show: impl Fn(FrameDirection, &str) + Send + Sync + 'static) -> Self {
        Self { transport, show: Arc::new(show) }
    }
}

impl<T: Transport> Transport for Tap<T> {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (reader, writer) = self.transport.split();
        let incoming = TappedReader { reader, show: Arc::clone(&self.show) };
        let outgoing = TappedWriter { writer, show: self.show, shown: 0 };
        (Box::new(incoming), Box::new(outgoing))
    }

    fn clock(&self) -> Option<CallClock> {
        self.transport.clock()
    }

    fn has_headers(&self) -> bool {
        self.transport.has_headers()
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
    /// Bytes at the front of the queue whose frames were shown and are not written yet.
    shown: usize,
}

impl FrameWriter for TappedWriter {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let queued = frames.len();
        let fresh = frames.bytes().get(self.shown..).unwrap_or_default();
        for frame in fresh.split_inclusive(|byte| *byte == b'\n') {
            let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
            (self.show)(FrameDirection::Out, &String::from_utf8_lossy(frame));
        }
        let result = self.writer.poll_write(cx, frames);
        self.shown = frames.len().min(queued);
        result
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.writer.poll_close(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::Waker;

    use super::*;

    /// Writes a few bytes at a time.
    struct Slow(usize);

    impl FrameWriter for Slow {
        fn poll_write(
            &mut self,
            _: &mut Context<'_>,
            frames: &mut Frames,
        ) -> Poll<Result<(), TransportError>> {
            frames.advance(self.0.min(frames.len()));
            if frames.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
        }

        fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn a_frame_is_shown_once_and_before_it_is_written() {
        for step in 0..=12 {
            let shown = Arc::new(Mutex::new(Vec::new()));
            let list = Arc::clone(&shown);
            let show: Arc<Show> = Arc::new(move |_, frame: &str| list.lock().unwrap().push(frame.to_owned()));
            let mut writer = TappedWriter { writer: Box::new(Slow(step)), show, shown: 0 };
            let (mut frames, mut cx) = (Frames::default(), Context::from_waker(Waker::noop()));
            for (index, text) in ["one", "two", "three", "four"].into_iter().enumerate() {
                frames.push(text.as_bytes(), None);
                let _ = writer.poll_write(&mut cx, &mut frames);
                assert_eq!(shown.lock().unwrap().len(), index + 1, "{step} bytes at a time");
            }
            for _ in 0..30 {
                let _ = writer.poll_write(&mut cx, &mut frames);
            }
            assert_eq!(*shown.lock().unwrap(), ["one", "two", "three", "four"], "{step} bytes at a time");
        }
    }
}
