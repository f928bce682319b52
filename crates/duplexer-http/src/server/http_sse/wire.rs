//! The two directions as a transport: a bounded queue each, and the body through which the client reads.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use duplexer_core::dispatch::Cancellation;
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::PollSender;

use crate::server::body::{Heartbeat, StreamCut};
use crate::server::hub::Admitted;
use crate::server::hub::streams::{Listed, Touched, Watched};
use crate::server::sse;

/// Messages of the client that wait: whoever posts a further one waits too, with its message.
const MESSAGES: usize = 1;
/// Pieces of the stream that wait for the reader.
const PIECES: usize = 2;
/// How large such a piece is, at most; one event more may exceed it.
const PIECE_BYTES: usize = 32 * 1024;

/// The stream as the server sees it.
pub(super) struct Wire {
    posted: mpsc::Receiver<Incoming>,
    told: mpsc::Sender<Bytes>,
}

/// The other ends of a wire: where messages are posted to, and what is told.
pub(super) fn wire() -> (Wire, mpsc::Sender<Incoming>, mpsc::Receiver<Bytes>) {
    let (post, posted) = mpsc::channel(MESSAGES);
    let (told, telling) = mpsc::channel(PIECES);
    (Wire { posted, told }, post, telling)
}

impl Transport for Wire {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(Upward(self.posted)), Box::new(Downward(PollSender::new(self.told))))
    }
}

struct Upward(mpsc::Receiver<Incoming>);

impl FrameReader for Upward {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}

struct Downward(PollSender<Bytes>);

impl FrameWriter for Downward {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while !frames.is_empty() {
            ready!(self.0.poll_reserve(cx)).map_err(|_| TransportError::Closed)?;
            let mut piece = Vec::new();
            while piece.len() < PIECE_BYTES
                && let Some((frame, _)) = frames.pop()
            {
                sse::write(&mut piece, None, &frame);
            }
            self.0.send_item(piece.into()).map_err(|_| TransportError::Closed)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.0.close();
        Poll::Ready(Ok(()))
    }
}

/// Whoever reads the stream, as seen by those who are not the reader.
pub(super) struct Reader {
    touched: Touched,
    /// Raised when nobody reads any more: the client has left, or was cut because it did not read.
    pub(super) gone: Cancellation,
}

impl Reader {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { touched: Touched::now(), gone: Cancellation::new() })
    }
}

impl Watched for Reader {
    fn touched(&self) -> &Touched {
        &self.touched
    }

    fn cut(&self) {
        self.gone.cancel();
    }
}

/// The body of the stream. Dropped, the client has left.
pub(in crate::server) struct Telling {
    reader: Arc<Reader>,
    /// What comes first.
    opening: Bytes,
    pieces: mpsc::Receiver<Bytes>,
    heartbeat: Heartbeat,
    _listed: Listed,
    _admitted: Admitted,
}

impl Telling {
    pub(super) fn new(
        reader: Arc<Reader>,
        opening: Bytes,
        pieces: mpsc::Receiver<Bytes>,
        admitted: Admitted,
    ) -> Self {
        let hub = admitted.hub();
        let watched = Arc::downgrade(&reader);
        Self {
            _listed: hub.streams.watch(watched as Weak<dyn Watched>),
            heartbeat: Heartbeat::new(hub.config.timing.ping),
            reader,
            opening,
            pieces,
            _admitted: admitted,
        }
    }

    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamCut>>> {
        let now = Instant::now();
        self.reader.touched.touch(now);
        if self.reader.gone.is_cancelled() {
            return Poll::Ready(Some(Err(StreamCut)));
        }
        if !self.opening.is_empty() {
            self.heartbeat.spoke(now);
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.opening))));
        }
        match self.pieces.poll_recv(cx) {
            Poll::Ready(Some(piece)) => {
                self.heartbeat.spoke(now);
                Poll::Ready(Some(Ok(piece)))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.heartbeat.poll(cx).map(|()| Some(Ok(Bytes::from_static(sse::PING)))),
        }
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.reader.gone.cancel();
    }
}
