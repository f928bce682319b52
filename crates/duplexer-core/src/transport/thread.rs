//! A source and a sink on threads of their own, for what cannot be polled.
//!
//! One chunk at a time is handed over in each direction. A thread ends soon after its other half is dropped, and is never
//! joined: a system call that does not return must not keep the process alive.

use std::io;
use std::task::{Context, Poll, ready};
use std::thread::Builder;

use tokio::sync::mpsc;

use super::lines::{Source, write_error};
use super::{Frames, TransportError};

/// Maximum bytes that are handed over at a time.
pub(super) const MAX_CHUNK: usize = 64 * 1024;

/// Where a reading thread puts what it has read.
pub(super) struct Chunks(mpsc::Sender<io::Result<Vec<u8>>>);

impl Chunks {
    /// Hands a chunk over and waits for the capacity. `false` if nothing more is wanted: there is no reader any more, or the
    /// chunk is an error.
    pub(super) fn send(&self, chunk: io::Result<Vec<u8>>) -> bool {
        let failed = chunk.is_err();
        self.0.blocking_send(chunk).is_ok() && !failed
    }
}

/// The bytes that a thread reads.
pub(super) struct ThreadSource {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    start: usize,
}

impl ThreadSource {
    /// Starts a thread that reads to the end.
    pub(super) fn start(read: impl FnOnce(&Chunks) + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        Builder::new().name("duplexer-read".into()).spawn(move || read(&Chunks(sender)))?;
        Ok(Self { chunks, current: Vec::new(), start: 0 })
    }
}

impl Source for ThreadSource {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if self.start == self.current.len() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.current = chunk?,
                None => return Poll::Ready(Ok(0)),
            }
            self.start = 0;
        }
        let rest = self.current.get(self.start..).unwrap_or_default();
        let read = rest.len().min(buffer.capacity() - buffer.len());
        buffer.extend_from_slice(rest.get(..read).unwrap_or_default());
        self.start += read;
        Poll::Ready(Ok(read))
    }
}

/// The frames that a thread writes.
pub(super) struct ThreadSink {
    chunks: mpsc::Sender<Vec<u8>>,
    outcomes: mpsc::Receiver<(Vec<u8>, io::Result<()>)>,
    /// The buffer that both sides exchange; `None` while the thread has it.
    buffer: Option<Vec<u8>>,
}

impl ThreadSink {
    /// Starts a thread that passes each chunk to `write`, which writes all of it.
    pub(super) fn start(write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (chunks, receiver) = mpsc::channel(1);
        let (sender, outcomes) = mpsc::channel(1);
        Builder::new().name("duplexer-write".into()).spawn(move || write_chunks(write, receiver, &sender))?;
        Ok(Self { chunks, outcomes, buffer: Some(Vec::new()) })
    }

    /// Ready when the thread has written all of `frames`, not when it has taken it over.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut Frames,
    ) -> Poll<Result<(), TransportError>> {
        loop {
            let mut buffer = match self.buffer.take() {
                Some(buffer) => buffer,
                None => match self.outcomes.poll_recv(cx) {
                    Poll::Ready(Some((buffer, outcome))) => {
                        outcome.map_err(write_error)?;
                        buffer
                    }
                    Poll::Ready(None) => return Poll::Ready(Err(TransportError::Closed)),
                    Poll::Pending => return Poll::Pending,
                },
            };
            if frames.is_empty() {
                self.buffer = Some(buffer);
                return Poll::Ready(Ok(()));
            }
            let bytes = frames.bytes();
            let chunk = bytes.get(..MAX_CHUNK).unwrap_or(bytes);
            buffer.clear();
            buffer.extend_from_slice(chunk);
            frames.advance(buffer.len());
            if self.chunks.try_send(buffer).is_err() {
                return Poll::Ready(Err(TransportError::Closed));
            }
        }
    }
}

fn write_chunks(
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    outcomes: &mpsc::Sender<(Vec<u8>, io::Result<()>)>,
) {
    while let Some(chunk) = chunks.blocking_recv() {
        let outcome = write(&chunk);
        let failed = outcome.is_err();
        if outcomes.blocking_send((chunk, outcome)).is_err() || failed {
            return;
        }
    }
}
