//! The signals that request the end of the process.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT. Once this exists they no longer end the process by themselves.
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

    /// Waits for the next signal, whichever it is. A second one may mean that the shutdown takes too long.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_next(cx)).await;
    }

    /// Polls for the next signal; see [`next`](Self::next).
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
    async fn each_shutdown_signal_is_received() {
        let mut signals = ShutdownSignals::listen().unwrap();
        for which in [Signal::TERM, Signal::INT] {
            kill_process(getpid(), which).unwrap();
            signals.next().await;
        }
    }
}
