//! I/O with limits: on the size and time of a head, on the time of an idle connection, and on a peer that does not read.
//!
//! The HTTP library limits heads by the size of its buffer, which a body is read into as well: a small buffer would take
//! many reads for a large body.
//! The HTTP library has a timer for heads too, but a new one per request, and none before the HTTP version is known.
//! This timer is created once per connection and reset only when it fires.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::connection_state::ConnectionState;

/// Maximum size of a vectored write that is copied into one buffer: the head of a response with a short body. Copying
/// so few bytes is cheaper than a vectored system call.
const MAX_COALESCED: usize = 1024;

/// Response to a head that is larger than the limit.
const HEAD_TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Limits of one connection.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Maximum size of an unfinished head, in bytes.
    pub(super) head_bytes: usize,
    /// For the head of a request, from its first byte. For the first request, from the start of the connection.
    pub(super) head: Duration,
    /// From the end of one response to the first byte of the next request.
    pub(super) idle: Duration,
    /// Until a pending write makes progress.
    pub(super) write: Duration,
}

pub(super) struct TimedIo<I> {
    io: I,
    limits: Limits,
    state: Arc<ConnectionState>,
    /// What the connection waits for while no request is in flight.
    waiting: Waiting,
    head: HeadBytes,
    timer: Option<Pin<Box<Sleep>>>,
    /// Runs while a write is pending.
    stalled: Option<Pin<Box<Sleep>>>,
}

struct Waiting {
    since: Instant,
    head: Head,
    /// Number of finished requests at that time.
    after: usize,
}

/// Bytes that may belong to the head of the next request.
struct HeadBytes {
    count: usize,
    /// Number of finished requests when the count began.
    after: usize,
}

/// How much of the next head has arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Nothing,
    Something,
}

impl<I> TimedIo<I> {
    pub(super) fn new(io: I, limits: Limits, state: Arc<ConnectionState>) -> Self {
        let waiting = Waiting { since: Instant::now(), head: Head::Something, after: 0 };
        let head = HeadBytes { count: 0, after: 0 };
        Self { io, limits, state, waiting, head, timer: None, stalled: None }
    }

    /// Records that bytes have arrived. While no request is in flight, they begin a head; in HTTP/2 they can as well be
    /// the answer to a ping, so that there the idle timeout is the one for heads too.
    fn received(&mut self) {
        if self.waiting.head == Head::Nothing && !self.state.is_http_2() {
            self.waiting.since = Instant::now();
            self.waiting.head = Head::Something;
            self.state.waits_since(self.waiting.since);
        }
    }

    /// Returns how many bytes the head of the next request may still have. `None` while a request is in flight: then the
    /// bytes can belong to its body. With the last byte of a head its request is in flight.
    fn head_room(&mut self) -> Option<usize> {
        let ended = self.state.quiescent_after().filter(|_| !self.state.is_http_2())?;
        if self.head.after != ended {
            self.head = HeadBytes { count: 0, after: ended };
        }
        Some((self.limits.head_bytes + 1).saturating_sub(self.head.count))
    }

    /// Ready if no bytes have arrived for too long.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(ended) = self.state.quiescent_after() else { return Poll::Pending };
        if self.waiting.after != ended {
            self.waiting = Waiting { since: Instant::now(), head: Head::Nothing, after: ended };
            self.state.waits_since(self.waiting.since);
        }
        let due = self.waiting.since
            + match self.waiting.head {
                Head::Nothing => self.limits.idle,
                Head::Something => self.limits.head,
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

    /// Returns the outcome of a write. Fails if it has been pending for too long.
    fn with_write_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limits.write;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = self.head_room().unwrap_or(usize::MAX);
        if room == 0 {
            // Nothing else is written while no request is in flight. A peer that does not read goes without it.
            let _ = Pin::new(&mut self.io).poll_write(cx, HEAD_TOO_LARGE);
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buffer.filled().len();
        let read = if room < buffer.remaining() {
            let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
            let read = Pin::new(&mut self.io).poll_read(cx, &mut part);
            let filled = part.filled().len();
            buffer.advance(filled);
            read
        } else {
            Pin::new(&mut self.io).poll_read(cx, buffer)
        };
        if read.is_ready() {
            self.head.count += buffer.filled().len() - before;
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

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::super::connection_state::InFlightGuard;
    use super::*;

    fn state() -> Arc<ConnectionState> {
        Arc::new(ConnectionState::new(Instant::now()))
    }

    /// Returns after how many seconds an idle connection ends whose peer sends a few bytes every 30 s.
    async fn idle_end(state: Arc<ConnectionState>) -> u64 {
        let seconds = Duration::from_secs;
        let limits = Limits { head_bytes: 1024, head: seconds(30), idle: seconds(120), write: Duration::MAX };
        let (mut peer, io) = tokio::io::duplex(64);
        let mut io = TimedIo::new(io, limits, Arc::clone(&state));
        drop(InFlightGuard::begin(&state));
        let start = Instant::now();
        let answers = async {
            loop {
                sleep(seconds(30)).await;
                peer.write_all(b"pong").await.unwrap();
            }
        };
        let reading = async {
            let mut buffer = [0; 64];
            while io.read(&mut buffer).await.is_ok() {}
        };
        tokio::select! {
            () = reading => start.elapsed().as_secs(),
            () = answers => 0,
        }
    }

    /// Limits without a time.
    fn untimed() -> Limits {
        let never = Duration::from_secs(3600);
        Limits { head_bytes: 1024, head: never, idle: never, write: never }
    }

    /// Robustness H51: a head beyond the limit is answered and no longer read; a body may have any size.
    #[tokio::test]
    async fn a_head_beyond_the_limit_is_refused_and_a_body_is_not() {
        let (mut peer, io) = tokio::io::duplex(64 * 1024);
        let state = state();
        let mut io = TimedIo::new(io, untimed(), Arc::clone(&state));
        // More than the limit fits into the buffer.
        let mut buffer = [0; 2048];
        peer.write_all(&[b'x'; 20 * 1024]).await.unwrap();
        let body = InFlightGuard::begin(&state);
        for _ in 0..5 {
            assert_eq!(io.read(&mut buffer).await.unwrap(), 2048);
        }
        drop(body);
        let mut head = 0;
        let refused = loop {
            match io.read(&mut buffer).await {
                Ok(read) => head += read,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        assert_eq!(head, 1025, "the byte after the limit shows that the head is too large");
        let mut answer = [0; 12];
        peer.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 431");
    }

    /// Hardening 14: in HTTP/2 the answers to pings do not begin a head.
    #[tokio::test(start_paused = true)]
    async fn answers_to_pings_do_not_shorten_the_idle_time() {
        assert_eq!(idle_end(state()).await, 60, "in HTTP/1 the bytes begin a head");
        let state = state();
        state.begins_http_2();
        assert_eq!(idle_end(state).await, 120);
    }

    /// The sizes of the writes.
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
            let mut io = TimedIo::new(Written::default(), untimed(), state());
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
