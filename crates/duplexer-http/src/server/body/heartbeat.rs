//! What keeps a silent stream alive.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Says when a stream has been silent for long.
pub(in crate::server) struct Heartbeat {
    limit: Duration,
    /// When something was last sent.
    spoken: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    pub(in crate::server) fn new(limit: Duration) -> Self {
        Self { limit, spoken: Instant::now(), timer: Box::pin(sleep(limit)) }
    }

    /// Something was sent.
    pub(in crate::server) fn spoke(&mut self, now: Instant) {
        self.spoken = now;
    }

    /// The timer runs on while events flow; when it fires it is seen how long the silence really is.
    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.spoken + self.limit;
            let now = Instant::now();
            if due > now {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.spoken = now;
            self.timer.as_mut().reset(now + self.limit);
            return Poll::Ready(());
        }
    }
}
