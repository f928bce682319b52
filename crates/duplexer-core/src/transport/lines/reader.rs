//! Reads lines from a source of bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

use super::buffer::{Line, LineBuffer};
use crate::transport::{FrameReader, Incoming, IncomingMessage, TransportContext, TransportError};

const TOO_LONG: &str = "the line is longer than the limit";

/// A source of bytes.
pub(in crate::transport) trait Source: Send + 'static {
    /// Reads once into the spare capacity of `buffer`, which is not empty; 0 at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>>;
}

pub(super) struct AsyncSource<R>(pub(super) R);

impl<R: AsyncRead + Send + Unpin + 'static> Source for AsyncSource<R> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        poll_read_buf(Pin::new(&mut self.0), cx, buffer)
    }
}

pub(in crate::transport) struct LineReader<S> {
    source: S,
    buffer: LineBuffer,
    context: Arc<TransportContext>,
    ended: bool,
}

impl<S: Source> LineReader<S> {
    pub(in crate::transport) fn new(source: S, context: TransportContext, limit: usize) -> Self {
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
