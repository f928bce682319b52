//! The HTTP version of a connection, recognized by its first bytes.
//!
//! The HTTP library can do this too, but it passes the bytes that it read for it to its parser by themselves. The parser
//! then doubles its buffer before the next read, and every connection keeps 8 KiB more.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8; PREFACE_LENGTH] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PREFACE_LENGTH: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpVersion {
    Http1,
    Http2,
}

/// I/O that returns its first bytes again.
pub(super) struct Rewound<I> {
    first: [u8; PREFACE_LENGTH],
    /// Number of bytes in `first`, and how many of them have been returned.
    length: usize,
    returned: usize,
    io: I,
}

/// Reads until the version is known. What has been read is returned again.
pub(super) async fn recognize<I: AsyncRead + Unpin>(mut io: I) -> io::Result<(HttpVersion, Rewound<I>)> {
    let (mut first, mut length) = ([0; PREFACE_LENGTH], 0);
    let version = loop {
        let read = poll_fn(|cx| {
            let mut buffer = ReadBuf::new(first.get_mut(length..).unwrap_or_default());
            ready!(Pin::new(&mut io).poll_read(cx, &mut buffer))?;
            Poll::Ready(io::Result::Ok(buffer.filled().len()))
        })
        .await?;
        length += read;
        if read == 0 || !first.iter().zip(PREFACE).take(length).all(|(byte, expected)| byte == expected) {
            break HttpVersion::Http1;
        }
        if length == PREFACE_LENGTH {
            break HttpVersion::Http2;
        }
    };
    Ok((version, Rewound { first, length, returned: 0, io }))
}

impl<I: AsyncRead + Unpin> AsyncRead for Rewound<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { first, length, returned, io } = &mut *self;
        let again = first.get(*returned..*length).unwrap_or_default();
        let again = again.get(..buffer.remaining()).unwrap_or(again);
        if again.is_empty() {
            return Pin::new(io).poll_read(cx, buffer);
        }
        buffer.put_slice(again);
        *returned += again.len();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // In the same read as what follows them, because the parser expects a whole head.
        match Pin::new(io).poll_read(cx, buffer) {
            Poll::Pending => Poll::Ready(Ok(())),
            read @ Poll::Ready(_) => read,
        }
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Rewound<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Returns the version of a connection whose peer writes these pieces and then closes it, and what is read after that.
    async fn recognized(pieces: &[&[u8]]) -> (HttpVersion, Vec<u8>) {
        let (mut peer, io) = tokio::io::duplex(64);
        let writing = async {
            for piece in pieces {
                peer.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(peer);
        };
        let (found, ()) = tokio::join!(recognize(io), writing);
        let (version, mut io) = found.unwrap();
        let mut read = Vec::new();
        io.read_to_end(&mut read).await.unwrap();
        (version, read)
    }

    #[tokio::test]
    async fn the_first_bytes_tell_the_version_and_are_read_again() {
        let check = async |pieces: &[&[u8]], version| {
            assert_eq!(recognized(pieces).await, (version, pieces.concat()), "{pieces:?}");
        };
        check(&[b"GET / HTTP/1.1\r\n\r\n"], HttpVersion::Http1).await;
        check(&[b"P", b"OST / HTTP/1.1\r\nhost: a\r\n\r\n"], HttpVersion::Http1).await;
        check(&[PREFACE], HttpVersion::Http2).await;
        check(&[b"PRI * ", b"HTTP/2.0\r\n\r\n", b"SM\r\n\r\nmore"], HttpVersion::Http2).await;
        check(&[b"PRI * HTTP/1.1\r\n"], HttpVersion::Http1).await;
        check(&[b"PRI * "], HttpVersion::Http1).await;
        check(&[], HttpVersion::Http1).await;
    }

    /// The parser of the HTTP library doubles its buffer if the first read is short.
    #[tokio::test]
    async fn one_read_returns_the_first_bytes_with_what_follows() {
        let (mut peer, io) = tokio::io::duplex(256);
        let head = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n";
        peer.write_all(head).await.unwrap();
        let (_, mut io) = recognize(io).await.unwrap();
        let mut buffer = [0; 256];
        let read = io.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..read], head);
    }

    #[tokio::test]
    async fn a_small_buffer_gets_the_first_bytes_in_parts() {
        let (mut peer, io) = tokio::io::duplex(256);
        peer.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let (_, mut io) = recognize(io).await.unwrap();
        let mut buffer = [0; 5];
        let mut all = Vec::new();
        while all.len() < 16 {
            let read = io.read(&mut buffer).await.unwrap();
            all.extend_from_slice(&buffer[..read]);
        }
        assert_eq!(all, b"GET / HTTP/1.1\r\n");
    }
}
