//! The two directions as a transport: a bounded queue each, and the body through which the client reads.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use duplexer_core::dispatch::Cancellation;
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::PollSender;

use crate::server::body::{Chunk, Heartbeat, StreamTimedOut};
use crate::server::service_state::RequestPermit;
use crate::server::service_state::stream_watch::{LastRead, WatchGuard, WatchedStream};
use crate::server::sse;

/// Messages of the client that wait: whoever posts a further one waits too, with its message.
const MAX_MESSAGES: usize = 1;
/// Pieces of the stream that wait for the handle.
const MAX_CHUNKS: usize = 2;
/// How large such a chunk is, at most; one event more may exceed it.
const MAX_CHUNK_BYTES: usize = 32 * 1024;

/// The stream as the server sees it.
pub(super) struct SseTransport {
    posted: mpsc::Receiver<Incoming>,
    events: mpsc::Sender<Bytes>,
}

/// The other ends of a transport: where messages are posted to, and what is events.
pub(super) fn transport() -> (SseTransport, mpsc::Sender<Incoming>, mpsc::Receiver<Bytes>) {
    let (post, posted) = mpsc::channel(MAX_MESSAGES);
    let (events, chunks) = mpsc::channel(MAX_CHUNKS);
    (SseTransport { posted, events }, post, chunks)
}

impl Transport for SseTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(Reader(self.posted)), Box::new(Writer(PollSender::new(self.events))))
    }
}

struct Reader(mpsc::Receiver<Incoming>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}

struct Writer(PollSender<Bytes>);

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while !frames.is_empty() {
            ready!(self.0.poll_reserve(cx)).map_err(|_| TransportError::Closed)?;
            let mut chunk = Vec::new();
            while chunk.len() < MAX_CHUNK_BYTES
                && let Some((frame, _)) = frames.pop()
            {
                sse::write(&mut chunk, None, &frame);
            }
            self.0.send_item(chunk.into()).map_err(|_| TransportError::Closed)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.0.close();
        Poll::Ready(Ok(()))
    }
}

/// Whoever reads the stream, as seen by those who are not the handle.
pub(super) struct BodyHandle {
    last_read: LastRead,
    /// Raised when nobody reads any more: the client has left, or was cut because it did not read.
    pub(super) gone: Cancellation,
}

impl BodyHandle {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { last_read: LastRead::now(), gone: Cancellation::new() })
    }
}

impl WatchedStream for BodyHandle {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    fn time_out(&self) {
        self.gone.raise();
    }
}

/// The body of the stream. Dropped, the client has left.
pub(in crate::server) struct SseSessionBody {
    handle: Arc<BodyHandle>,
    /// What comes first.
    opening: Bytes,
    chunks: mpsc::Receiver<Bytes>,
    heartbeat: Heartbeat,
    _watch: WatchGuard,
    _permit: RequestPermit,
}

impl SseSessionBody {
    pub(super) fn new(
        handle: Arc<BodyHandle>,
        opening: Bytes,
        chunks: mpsc::Receiver<Bytes>,
        permit: RequestPermit,
    ) -> Self {
        let service = permit.service();
        let watched = Arc::downgrade(&handle);
        Self {
            _watch: service.streams.watch(watched as Weak<dyn WatchedStream>),
            heartbeat: Heartbeat::new(service.config.timing.keep_alive),
            handle,
            opening,
            chunks,
            _permit: permit,
        }
    }

    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let now = Instant::now();
        self.handle.last_read.touch(now);
        let chunk = if self.handle.gone.is_raised() {
            Poll::Ready(Some(Err(StreamTimedOut)))
        } else if !self.opening.is_empty() {
            Poll::Ready(Some(Ok(std::mem::take(&mut self.opening))))
        } else {
            self.chunks.poll_recv(cx).map(|chunk| chunk.map(Ok))
        };
        self.heartbeat.poll_chunk(cx, now, chunk)
    }
}

impl Drop for SseSessionBody {
    fn drop(&mut self) {
        self.handle.gone.raise();
    }
}
