//! Ctrl-C on every platform, and the other events of a console on Windows.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[cfg(windows)]
use tokio::signal::windows;

pub(super) struct Signals {
    interrupt: Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>,
    #[cfg(windows)]
    console: Console,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: next_interrupt()?,
            #[cfg(windows)]
            console: Console::listen()?,
        })
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        #[cfg(windows)]
        if self.console.poll_next(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.interrupt.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        match next_interrupt() {
            Ok(next) => self.interrupt = next,
            // It worked before; without it only the first interrupt is received.
            Err(_) => self.interrupt = Box::pin(std::future::pending()),
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signals")
    }
}

/// Returns a future of the next Ctrl-C that listens already: tokio's own begins with its first poll.
fn next_interrupt() -> io::Result<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>> {
    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
    match interrupt.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => Ok(interrupt),
        Poll::Ready(Ok(())) => Ok(Box::pin(std::future::ready(Ok(())))),
        Poll::Ready(Err(error)) => Err(error),
    }
}

/// What a console sends besides Ctrl-C.
#[cfg(windows)]
struct Console {
    interrupt: windows::CtrlBreak,
    close: windows::CtrlClose,
    shutdown: windows::CtrlShutdown,
}

#[cfg(windows)]
impl Console {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let events = [self.interrupt.poll_recv(cx), self.close.poll_recv(cx), self.shutdown.poll_recv(cx)];
        if events.iter().any(Poll::is_ready) { Poll::Ready(()) } else { Poll::Pending }
    }
}
