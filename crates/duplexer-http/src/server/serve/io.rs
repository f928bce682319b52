//! A connection that does not wait for ever: not for the head of a request, and not for a peer that does not read.
//!
//! The HTTP library has a timer for heads too, a new one per request and none before the version of HTTP is known. This
//! one is made once per connection, and moved only when it fires.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// What is written as one piece although it comes in several: the head of a response with a short body. To copy so
/// little takes less than the system takes for a list of pieces.
const MAX_COALESCED: usize = 1024;

/// How long things may take on one connection.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    /// The head of a request, from its first byte; the first one from the beginning of the connection.
    pub(super) head: Duration,
    /// From the end of one exchange to the first byte of the next.
    pub(super) idle: Duration,
    /// Until something more can be written.
    pub(super) write: Duration,
}

/// What the service tells the connection it is called on.
#[derive(Default)]
pub(super) struct InFlight {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

/// An exchange under way, to its response's last byte.
pub(in crate::server) struct InFlightGuard(Arc<InFlight>);

impl InFlightGuard {
    pub(super) fn begin(in_flight: &Arc<InFlight>) -> Self {
        in_flight.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(in_flight))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

pub(super) struct TimedIo<I> {
    io: I,
    timeouts: Timeouts,
    in_flight: Arc<InFlight>,
    /// What is waited for while nothing is under way.
    waiting: Waiting,
    timer: Option<Pin<Box<Sleep>>>,
    /// Runs while nothing can be written.
    stalled: Option<Pin<Box<Sleep>>>,
}

struct Waiting {
    since: Instant,
    head: Head,
    /// How many exchanges had ended then.
    after: usize,
}

/// How much of the next head is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Nothing,
    Something,
}

impl<I> TimedIo<I> {
    pub(super) fn new(io: I, timeouts: Timeouts, in_flight: Arc<InFlight>) -> Self {
        let waiting = Waiting { since: Instant::now(), head: Head::Something, after: 0 };
        Self { io, timeouts, in_flight, waiting, timer: None, stalled: None }
    }

    /// Something has come; whether it begins a head is known if nothing is under way.
    fn received(&mut self) {
        if self.waiting.head == Head::Nothing {
            self.waiting.since = Instant::now();
            self.waiting.head = Head::Something;
        }
    }

    /// Nothing has come. Ready if that has lasted too long.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ended = self.in_flight.ended.load(Ordering::Relaxed);
        if self.in_flight.begun.load(Ordering::Relaxed) != ended {
            return Poll::Pending;
        }
        if self.waiting.after != ended {
            self.waiting = Waiting { since: Instant::now(), head: Head::Nothing, after: ended };
        }
        let due = self.waiting.since
            + match self.waiting.head {
                Head::Nothing => self.timeouts.idle,
                Head::Something => self.timeouts.head,
            };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() > due {
            timer.as_mut().reset(due);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }

    /// Passes the outcome of a write on; a pending one may not be pending for too long.
    fn with_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.timeouts.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for TimedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buffer);
        if read.is_ready() {
            self.received();
        } else if self.poll_timeout(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for TimedIo<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.with_write_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = bytes.iter().map(|piece| piece.len()).sum();
        let mut short = [0; MAX_COALESCED];
        if let Some(whole) = short.get_mut(..length) {
            let mut room = &mut *whole;
            for piece in bytes {
                room.write_all(piece)?;
            }
            return self.poll_write(cx, whole);
        }
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bytes);
        self.with_write_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.with_write_timeout(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.with_write_timeout(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// What was written, in the pieces it was handed on in.
    #[derive(Default)]
    struct Written(Vec<usize>);

    impl AsyncWrite for Written {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            assert!(bytes.starts_with(b"head and "));
            self.0.push(bytes.len());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.0.extend(bytes.iter().map(|piece| piece.len()));
            Poll::Ready(Ok(bytes.iter().map(|piece| piece.len()).sum()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_short_response_is_written_as_one_piece_and_a_long_one_is_not_copied() {
        let check = async |body: usize, expected: &[usize]| {
            let timeouts = Timeouts { head: Duration::MAX, idle: Duration::MAX, write: Duration::MAX };
            let mut io = TimedIo::new(Written::default(), timeouts, Arc::default());
            let body = vec![b'b'; body];
            let pieces = [io::IoSlice::new(b"head and "), io::IoSlice::new(&body)];
            let written = poll_fn(|cx| Pin::new(&mut io).poll_write_vectored(cx, &pieces)).await.unwrap();
            assert_eq!((written, &*io.io.0), (9 + body.len(), expected));
        };
        check(4, &[13]).await;
        check(MAX_COALESCED - 9, &[MAX_COALESCED]).await;
        check(MAX_COALESCED - 8, &[9, MAX_COALESCED - 8]).await;
    }
}
