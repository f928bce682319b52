//! The standard streams of this process as a transport, for a server that was started by its client.
//!
//! On Unix, nothing else in the process can reach the protocol's streams while they are claimed: printed text goes to stderr,
//! and standard input is the null device, also for child processes. Other platforms have no safe way to redirect them: there
//! a server must print to stderr only, and give its child processes a standard input and output of their own.

#[cfg_attr(
    unix,
    allow(dead_code, reason = "Unix has a path of its own; this one is compiled and tested there too")
)]
mod portable;
#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(unix)]
mod unix;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lines::DEFAULT_LIMIT;
use super::{FrameReader, FrameWriter, Transport, TransportError};

#[cfg(not(unix))]
use portable::Streams;
#[cfg(unix)]
use unix::Streams;

/// Standard input and output, claimed for the protocol.
///
/// They are restored when both halves are dropped. The peer sees the end of the stream only when the process ends, because
/// the process can use the restored standard output until then.
pub struct Stdio {
    streams: Streams,
    limit: usize,
}

impl Stdio {
    /// Claims the standard streams. Must be called within a tokio runtime whose I/O is enabled.
    ///
    /// # Errors
    ///
    /// Fails with [`TransportError::Setup`] if they are claimed already.
    pub fn claim() -> Result<Self, TransportError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(TransportError::Setup(
                "the stdio transport needs a tokio runtime: claim it inside one".into(),
            ));
        }
        Ok(Self { streams: Streams::claim()?, limit: DEFAULT_LIMIT })
    }

    /// Sets the maximum length of a line, in bytes. Default: [`DEFAULT_LIMIT`].
    #[must_use]
    pub fn line_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Transport for Stdio {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        self.streams.split(self.limit)
    }

    fn has_headers(&self) -> bool {
        false
    }
}

static CLAIMED: AtomicBool = AtomicBool::new(false);

/// The right to use the standard streams. Only one exists in a process at a time.
#[derive(Debug)]
struct Exclusive(());

impl Exclusive {
    fn take() -> Result<Self, TransportError> {
        if CLAIMED.swap(true, Ordering::AcqRel) {
            return Err(TransportError::Setup(
                "another stdio transport in this process has already claimed fd 0 and fd 1: \
                 only one can be served at a time, so drop that one first"
                    .into(),
            ));
        }
        Ok(Self(()))
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        CLAIMED.store(false, Ordering::Release);
    }
}

fn unusable(which: &str, error: &io::Error) -> TransportError {
    TransportError::Setup(format!("standard {which} cannot be used: {error}"))
}
