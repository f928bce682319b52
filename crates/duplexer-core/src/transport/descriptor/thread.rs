//! Reads and writes what the reactor cannot watch, on a thread of its own.
//!
//! One chunk at a time is handed over in each direction. A thread ends soon after its other half is dropped, and is never
//! joined: a system call that does not return must not keep the process alive.

use std::io::{self, PipeReader, PipeWriter};
use std::task::{Context, Poll, ready};
use std::thread::Builder;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::Descriptor;
use crate::transport::lines::{Source, write_error};
use crate::transport::{Frames, TransportError};

/// Maximum bytes that are handed over at a time.
const MAX_CHUNK: usize = 64 * 1024;

pub(in crate::transport) struct ThreadSource {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    start: usize,
    /// The thread watches the other end: dropping this ends it even while nothing can be read.
    _alive: PipeWriter,
}

impl ThreadSource {
    pub(super) fn start(descriptor: Descriptor) -> io::Result<Self> {
        let (ended, alive) = io::pipe()?;
        let (sender, chunks) = mpsc::channel(1);
        Builder::new().name("duplexer-read".into()).spawn(move || read_all(&descriptor, &ended, &sender))?;
        Ok(Self { chunks, current: Vec::new(), start: 0, _alive: alive })
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

fn read_all(descriptor: &Descriptor, ended: &PipeReader, chunks: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut buffer = Vec::with_capacity(MAX_CHUNK);
    loop {
        // Polling before reading keeps an abandoned thread from consuming input of the next reader.
        let mut watched = [PollFd::new(ended, PollFlags::IN), PollFd::new(descriptor, PollFlags::IN)];
        if poll(&mut watched, None) == Err(Errno::INTR) {
            continue;
        }
        if !watched[0].revents().is_empty() {
            return;
        }
        buffer.clear();
        let chunk = match rustix::io::read(descriptor, spare_capacity(&mut buffer)) {
            Ok(0) => return,
            Ok(_) => Ok(buffer.clone()),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(errno) => Err(errno.into()),
        };
        let failed = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

pub(in crate::transport) struct ThreadSink {
    chunks: mpsc::Sender<Vec<u8>>,
    outcomes: mpsc::Receiver<(Vec<u8>, Result<(), Errno>)>,
    /// The buffer that both sides exchange; `None` while the thread has it.
    buffer: Option<Vec<u8>>,
}

impl ThreadSink {
    pub(super) fn start(descriptor: Descriptor) -> io::Result<Self> {
        let (chunks, receiver) = mpsc::channel(1);
        let (sender, outcomes) = mpsc::channel(1);
        Builder::new()
            .name("duplexer-write".into())
            .spawn(move || write_chunks(&descriptor, receiver, &sender))?;
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
    descriptor: &Descriptor,
    mut chunks: mpsc::Receiver<Vec<u8>>,
    outcomes: &mpsc::Sender<(Vec<u8>, Result<(), Errno>)>,
) {
    while let Some(chunk) = chunks.blocking_recv() {
        let outcome = write_all(descriptor, &chunk);
        if outcomes.blocking_send((chunk, outcome)).is_err() || outcome.is_err() {
            return;
        }
    }
}

fn write_all(descriptor: &Descriptor, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another process that shares the description has made it non-blocking.
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(descriptor, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            },
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
