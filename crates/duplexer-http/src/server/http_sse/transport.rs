//! The two directions of the HTTP+SSE transport: a bounded queue each, and the body of the stream.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use duplexer_core::dispatch::Cancellation;
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::PollSender;

use crate::server::body::{Chunk, Expiry, Heartbeat, StreamTimedOut};
use crate::server::service_state::RequestPermit;
use crate::server::service_state::stream_watch::{LastRead, WatchGuard, WatchedStream};
use crate::server::sse;

/// Maximum number of queued messages of the client. Further POSTs wait.
const MAX_MESSAGES: usize = 1;
/// Maximum number of chunks that wait for the reader.
const MAX_CHUNKS: usize = 2;
/// Maximum size of a chunk. The last event can exceed it.
const MAX_CHUNK_BYTES: usize = 32 * 1024;

/// Server side of the transport.
pub(super) struct SseTransport {
    posted: mpsc::Receiver<Incoming>,
    events: mpsc::Sender<Bytes>,
}

/// Creates a transport, the sender of its messages, and the receiver of its chunks.
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

/// State of the body, shared with the session's task and the stream watch.
pub(super) struct BodyHandle {
    last_read: LastRead,
    /// Raised when the client has left, or has not read for too long.
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
        self.gone.cancel();
    }
}

/// Body of the SSE stream. Dropping it means that the client has left.
pub(in crate::server) struct SseSessionBody {
    handle: Arc<BodyHandle>,
    /// The `endpoint` event, sent first.
    endpoint_event: Bytes,
    chunks: mpsc::Receiver<Bytes>,
    heartbeat: Heartbeat,
    /// Expiry of the token, which ends the session.
    expiry: Expiry,
    _watch: WatchGuard,
    _permit: RequestPermit,
}

impl SseSessionBody {
    pub(super) fn new(
        handle: Arc<BodyHandle>,
        endpoint_event: Bytes,
        chunks: mpsc::Receiver<Bytes>,
        permit: RequestPermit,
    ) -> Self {
        let service = permit.service();
        let watched = Arc::downgrade(&handle);
        Self {
            _watch: service.streams.watch(watched as Weak<dyn WatchedStream>),
            heartbeat: Heartbeat::new(service.config.timing.keep_alive),
            expiry: Expiry::default(),
            handle,
            endpoint_event,
            chunks,
            _permit: permit,
        }
    }

    /// Ends the stream, and with it the session, when the token expires.
    pub(super) fn until(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let now = Instant::now();
        self.handle.last_read.touch(now);
        let chunk = if self.handle.gone.is_cancelled() {
            Poll::Ready(Some(Err(StreamTimedOut)))
        } else if self.expiry.poll(cx).is_ready() {
            Poll::Ready(None)
        } else if !self.endpoint_event.is_empty() {
            Poll::Ready(Some(Ok(std::mem::take(&mut self.endpoint_event))))
        } else {
            self.chunks.poll_recv(cx).map(|chunk| chunk.map(Ok))
        };
        self.heartbeat.poll_chunk(cx, now, chunk)
    }
}

impl Drop for SseSessionBody {
    fn drop(&mut self) {
        self.handle.gone.cancel();
    }
}
