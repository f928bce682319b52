//! The claim on the standard streams, and how they are restored.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use crate::transport::TransportError;
use crate::transport::descriptor::Descriptor;
use crate::transport::stdio::Exclusive;

/// Minimum number of a private duplicate: above the three that programs use by number.
const MIN_PRIVATE_FD: i32 = 3;

/// Maximum time that restoring waits for a thread that is printing.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// The original streams. `None` if a stream could not be duplicated: it is used in place.
#[derive(Debug)]
pub(super) struct Claim {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    /// Released after the streams are restored: a field is dropped after its owner.
    _exclusive: Exclusive,
}

impl Claim {
    pub(super) fn take() -> Result<Self, TransportError> {
        let exclusive = Exclusive::take()?;
        let claim = Self {
            stdin: fcntl_dupfd_cloexec(stdin(), MIN_PRIVATE_FD).ok(),
            stdout: fcntl_dupfd_cloexec(stdout(), MIN_PRIVATE_FD).ok(),
            _exclusive: exclusive,
        };
        claim.divert();
        Ok(claim)
    }

    /// Redirects on a best-effort basis: a stream that cannot be redirected works, but is not protected.
    fn divert(&self) {
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        if let (Some(_), Ok(null)) = (&self.stdin, &null) {
            let _ = dup2_stdin(null);
        }
        if self.stdout.is_some() && dup2_stdout(stderr()).is_err() {
            let _ = null.and_then(dup2_stdout);
        }
    }

    pub(super) fn input(&self) -> io::Result<Descriptor> {
        duplicate(self.stdin.as_ref(), stdin())
    }

    pub(super) fn output(&self) -> io::Result<Descriptor> {
        duplicate(self.stdout.as_ref(), stdout())
    }
}

fn duplicate(saved: Option<&OwnedFd>, standard: BorrowedFd<'static>) -> io::Result<Descriptor> {
    match saved {
        Some(saved) => Ok(Descriptor::owned(fcntl_dupfd_cloexec(saved.as_fd(), MIN_PRIVATE_FD)?)),
        None => Ok(Descriptor::standard(standard)),
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(stdout) = &self.stdout {
            flush_prints();
            let _ = dup2_stdout(stdout);
        }
        if let Some(stdin) = &self.stdin {
            let _ = dup2_stdin(stdin);
        }
    }
}

/// Flushes a partly printed line to stderr like other prints, instead of behind the protocol. On a thread, because another
/// thread may hold the lock of standard output indefinitely.
fn flush_prints() {
    let (done, flushed) = mpsc::sync_channel(1);
    let flush = move || {
        let _ = io::stdout().flush();
        let _ = done.send(());
    };
    if thread::Builder::new().name("duplexer-flush".into()).spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(FLUSH_TIMEOUT);
    }
}
