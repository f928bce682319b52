//! One message per line over any duplex of bytes: a TCP or Unix socket, a pair of pipes, tokio's duplex.
//!
//! Reading tolerates what peers get wrong (carriage returns, blank lines, bytes that are not UTF-8, a last
//! line without its newline) and passes over a line beyond the limit without holding it.

mod buffer;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{FrameReader, FrameWriter, Transport, TransportContext};

pub(super) use reader::{LineReader, Source};
#[cfg(unix)]
pub(super) use writer::write_error;

use reader::AsyncSource;
use writer::LineWriter;

/// The longest line that is read, unless the caller says otherwise: 4 MiB.
pub const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;

/// A transport over two directions of bytes.
///
/// A line of more than `limit` bytes is passed over and reported once as
/// [`Incoming::Unreadable`](super::Incoming::Unreadable). See [`DEFAULT_LIMIT`].
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
}
