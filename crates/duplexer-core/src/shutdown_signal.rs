//! The signals that ask a process to end.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, caught from the moment this is made; the process then ends only by its own decision.
#[derive(Debug)]
pub struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    /// Starts to listen. Must be called within a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next signal, whichever it is. A second one may mean that the end is not coming soon enough.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_next(cx)).await;
    }

    /// The polled form of [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match (self.terminate.poll_recv(cx), self.interrupt.poll_recv(cx)) {
            (Poll::Pending, Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn each_signal_that_asks_for_the_end_is_seen() {
        let mut signals = ShutdownSignals::listen().unwrap();
        for which in [Signal::TERM, Signal::INT] {
            kill_process(getpid(), which).unwrap();
            signals.next().await;
        }
    }
}
