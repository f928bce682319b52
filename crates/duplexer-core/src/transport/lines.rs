//! One message per line over any duplex byte stream: a TCP or Unix socket, a pair of pipes, tokio's duplex.
//!
//! Reading tolerates carriage returns, blank lines, bytes that are not UTF-8, and a last line without its newline. It skips
//! a line beyond the limit without buffering it.

mod buffer;
#[cfg(test)]
mod tests;

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use self::buffer::{Line, LineBuffer};
use super::{
    FrameReader, FrameWriter, Frames, Incoming, IncomingMessage, Transport, TransportContext, TransportError,
};

/// Default maximum length of a line: 4 MiB.
pub const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;

/// Creates a transport over two byte streams.
///
/// A line of more than `limit` bytes is skipped and reported once as
/// [`Incoming::Unreadable`]. See [`DEFAULT_LIMIT`].
pub fn over(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    context: TransportContext,
    limit: usize,
) -> impl Transport {
    Lines { reader: LineReader::new(AsyncSource(reader), context, limit), writer: LineWriter::new(writer) }
}

struct Lines<R, W> {
    reader: LineReader<AsyncSource<R>>,
    writer: LineWriter<W>,
}

impl<R, W> Transport for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(self.reader), Box::new(self.writer))
    }

    fn has_headers(&self) -> bool {
        false
    }
}

const TOO_LONG: &str = "the line is longer than the limit";

/// A source of bytes.
pub(super) trait Source: Send + 'static {
    /// Reads once into the spare capacity of `buffer`, which is not empty; 0 at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>>;
}

pub(super) struct AsyncSource<R>(pub(super) R);

impl<R: AsyncRead + Send + Unpin + 'static> Source for AsyncSource<R> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // The future has no state of its own, so a new one can continue.
        pin!(self.0.read_buf(buffer)).poll(cx)
    }
}

pub(super) struct LineReader<S> {
    source: S,
    buffer: LineBuffer,
    context: Arc<TransportContext>,
    ended: bool,
}

impl<S: Source> LineReader<S> {
    pub(super) fn new(source: S, context: TransportContext, limit: usize) -> Self {
        Self { source, buffer: LineBuffer::new(limit), context: Arc::new(context), ended: false }
    }

    fn incoming(&self, line: Line) -> Incoming {
        match line {
            Line::Text(text) => Incoming::Message(IncomingMessage::new(text, Arc::clone(&self.context))),
            Line::TooLong => Incoming::Unreadable(TOO_LONG),
        }
    }
}

impl<S: Source> FrameReader for LineReader<S> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        loop {
            if let Some(line) = self.buffer.take() {
                return Poll::Ready(Some(Ok(self.incoming(line))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let buffer = self.buffer.spare();
            let spare = buffer.capacity() - buffer.len();
            match ready!(self.source.poll_fill(cx, buffer)) {
                Ok(0) => {
                    self.ended = true;
                    let last = self.buffer.finish();
                    return Poll::Ready(last.map(|line| Ok(self.incoming(line))));
                }
                Ok(read) => self.buffer.filled(read, spare),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
    }
}

/// Writes frames verbatim: they are lines already.
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
pub(super) fn write_error(error: impl Into<io::Error>) -> TransportError {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected => {
            TransportError::Closed
        }
        _ => TransportError::Io(error),
    }
}
