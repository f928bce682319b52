//! One message per line over any duplex byte stream: a TCP or Unix socket, a pair of pipes, tokio's duplex.
//!
//! Reading tolerates carriage returns, blank lines, bytes that are not UTF-8, and a last line without its newline. It skips
//! a line beyond the limit without buffering it.

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

/// Default maximum length of a line: 4 MiB.
pub const DEFAULT_LIMIT: usize = 4 * 1024 * 1024;

/// Creates a transport over two byte streams.
///
/// A line of more than `limit` bytes is skipped and reported once as
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
