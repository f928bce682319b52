//! Keep-alive comments of SSE streams.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};

use super::Chunk;
use crate::server::sse;

/// Timer of a stream that sends a comment after an interval of silence.
pub(in crate::server) struct Heartbeat {
    interval: Duration,
    last_sent: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    pub(in crate::server) fn new(interval: Duration) -> Self {
        Self { interval, last_sent: Instant::now(), timer: Box::pin(sleep(interval)) }
    }

    /// Returns a polled chunk. If it is pending, returns a comment when the interval has passed.
    pub(in crate::server) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        chunk: Poll<Option<Chunk>>,
    ) -> Poll<Option<Chunk>> {
        if chunk.is_ready() {
            self.last_sent = now;
            return chunk;
        }
        self.poll_due(cx).map(|()| Some(Ok(Bytes::from_static(sse::PING))))
    }

    /// The timer is not reset for every event. When it fires, the actual silence is measured.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.last_sent + self.interval;
            let now = Instant::now();
            if due > now {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.last_sent = now;
            self.timer.as_mut().reset(now + self.interval);
            return Poll::Ready(());
        }
    }
}
