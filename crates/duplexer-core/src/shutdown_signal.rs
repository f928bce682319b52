//! The signals that request the end of the process, with one API on every platform.

#[cfg_attr(
    unix,
    allow(dead_code, reason = "Unix has a path of its own; this one is compiled and tested there too")
)]
mod portable;
#[cfg(unix)]
mod unix;

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

#[cfg(not(unix))]
use portable::Signals;
#[cfg(unix)]
use unix::Signals;

/// SIGTERM and SIGINT; on Windows Ctrl-C, Ctrl-Break, the closed console and the shutdown of the system. Once this exists
/// they no longer end the process by themselves.
///
/// ```
/// use duplexer_core::shutdown_signal::ShutdownSignals;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut signals = ShutdownSignals::listen()?;
/// tokio::select! {
///     () = signals.next() => println!("the supervisor ends this process"),
///     () = async { /* the work of the program */ } => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ShutdownSignals(Signals);

impl ShutdownSignals {
    /// Starts to listen. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        Signals::listen().map(Self)
    }

    /// Waits for the next signal, whichever it is. A second one may mean that the shutdown takes too long.
    pub async fn next(&mut self) {
        poll_fn(|cx| self.poll_next(cx)).await;
    }

    /// Polls for the next signal; see [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_next(cx)
    }
}

#[cfg(test)]
#[cfg(unix)]
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

    #[tokio::test]
    async fn the_portable_path_receives_each_interrupt_also_one_sent_before_it_waits() {
        let mut signals = portable::Signals::listen().unwrap();
        for _ in 0..2 {
            kill_process(getpid(), Signal::INT).unwrap();
            poll_fn(|cx| signals.poll_next(cx)).await;
        }
    }
}
