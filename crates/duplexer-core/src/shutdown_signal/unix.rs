//! SIGTERM and SIGINT.

use std::io;
use std::task::{Context, Poll};

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match (self.terminate.poll_recv(cx), self.interrupt.poll_recv(cx)) {
            (Poll::Pending, Poll::Pending) => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }
}
