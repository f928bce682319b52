//! The standard streams of a child, each shared by the transport and the handle, which can take it away.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::running::Sink;
use crate::transport::lines::{LineReader, Source};
use crate::transport::{FrameReader, FrameWriter, Frames, Incoming, TransportContext, TransportError};

/// Maximum length of a line of stderr that is passed on.
const STDERR_LIMIT: usize = 64 * 1024;

pub(super) struct Stream<T> {
    state: Mutex<State<T>>,
    /// Notified when no poll of the stream is pending any more.
    idle: Notify,
}

struct State<T> {
    stream: Option<T>,
    /// The task that waits for the stream. It is woken if the stream is taken away.
    waiting: Option<Waker>,
}

impl<T> Stream<T> {
    pub(super) fn new(stream: T) -> Self {
        Self { state: Mutex::new(State { stream: Some(stream), waiting: None }), idle: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the stream away from the transport, for which it has ended.
    pub(super) fn take(&self) -> Option<T> {
        let (stream, waiting) = {
            let mut state = self.state();
            (state.stream.take(), state.waiting.take())
        };
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        self.idle.notify_waiters();
        stream
    }

    /// Waits until no poll is pending.
    pub(super) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            if self.state().waiting.is_none() {
                return;
            }
            idle.await;
        }
    }

    /// Polls the stream; `None` if it was taken away.
    fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<Option<R>> {
        let mut state = self.state();
        let Some(stream) = &mut state.stream else {
            return Poll::Ready(None);
        };
        match poll(stream, cx) {
            Poll::Pending => {
                match &mut state.waiting {
                    Some(waiting) => waiting.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
            Poll::Ready(outcome) => {
                if state.waiting.take().is_some() {
                    self.idle.notify_waiters();
                }
                Poll::Ready(Some(outcome))
            }
        }
    }
}

impl<T> fmt::Debug for Stream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

pub(super) struct Reader<I>(pub(super) Arc<Stream<I>>);

impl<I: Source> Source for Reader<I> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.0.poll(cx, |input, cx| input.poll_fill(cx, buffer)).map(|read| read.unwrap_or(Ok(0)))
    }
}

pub(super) struct Writer<O>(pub(super) Arc<Stream<O>>);

impl<O: FrameWriter> FrameWriter for Writer<O> {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let closed = Err(TransportError::Closed);
        self.0.poll(cx, |output, cx| output.poll_write(cx, frames)).map(|outcome| outcome.unwrap_or(closed))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        drop(self.0.take());
        Poll::Ready(Ok(()))
    }
}

impl<O> Drop for Writer<O> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// Reads stderr to its end even if the sink panics: a process whose stderr is full blocks.
pub(super) async fn drain_stderr(stderr: impl Source, mut sink: Sink) {
    let mut lines = LineReader::new(stderr, TransportContext::stream("stderr"), STDERR_LIMIT);
    while let Some(Ok(line)) = std::future::poll_fn(|cx| lines.poll_next(cx)).await {
        match line {
            Incoming::Message(line) => {
                if catch_unwind(AssertUnwindSafe(|| sink(&line.text))).is_err() {
                    tracing::error!("the sink for a server's stderr has panicked");
                }
            }
            Incoming::Unreadable(why) => tracing::debug!(why, "a line of a server's stderr was left out"),
            // Lines are no requests.
            Incoming::Failed(..) => {}
        }
    }
}
