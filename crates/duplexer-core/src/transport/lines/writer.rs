//! Writes frames to any byte sink: they are lines already and are written verbatim.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use crate::transport::{FrameWriter, Frames, TransportError};

pub(super) struct LineWriter<W> {
    sink: W,
    /// There are written bytes that have not been flushed.
    unflushed: bool,
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineWriter<W> {
    pub(super) fn new(sink: W) -> Self {
        Self { sink, unflushed: false }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> FrameWriter for LineWriter<W> {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while !frames.is_empty() {
            match ready!(Pin::new(&mut self.sink).poll_write(cx, frames.bytes())).map_err(write_error)? {
                0 => return Poll::Ready(Err(TransportError::Closed)),
                written => frames.advance(written),
            }
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.sink).poll_flush(cx)).map_err(write_error)?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.sink).poll_shutdown(cx).map_err(write_error)
    }
}

/// Distinguishes a peer that is gone from a failure of the transport.
pub(in crate::transport) fn write_error(error: impl Into<io::Error>) -> TransportError {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected => {
            TransportError::Closed
        }
        _ => TransportError::Io(error),
    }
}
