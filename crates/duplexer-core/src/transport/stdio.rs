//! The standard streams of this process as a transport, for a server that was started by its client.
//!
//! While they are claimed nothing else in the process can reach the protocol's streams: printed text goes to stderr, and
//! standard input is the null device, also for child processes. The runtime watches pipes and stream sockets; anything else
//! has a thread.

mod claim;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::descriptor::{Input, Output};
use super::lines::{DEFAULT_LIMIT, LineReader, Source};
use super::{FrameReader, FrameWriter, Frames, Transport, TransportContext, TransportError};

use claim::Claim;

/// Standard input and output, claimed for the protocol.
///
/// They are restored when both halves are dropped. The peer sees the end of the stream only when the process ends, because
/// the process can use the restored standard output until then.
pub struct Stdio {
    input: Input,
    output: Output,
    claim: Arc<Claim>,
    limit: usize,
}

impl Stdio {
    /// Claims the standard streams. Must be called within a tokio runtime whose I/O is enabled.
    ///
    /// Fails with [`TransportError::Setup`] if they are claimed already.
    pub fn claim() -> Result<Self, TransportError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(TransportError::Setup(
                "the stdio transport needs a tokio runtime: claim it inside one".into(),
            ));
        }
        let claim = Arc::new(Claim::take()?);
        announce_large_buffers();
        let input = claim.input().and_then(Input::open).map_err(|error| unusable("input", &error))?;
        let output = claim.output().and_then(Output::open).map_err(|error| unusable("output", &error))?;
        Ok(Self { input, output, claim, limit: DEFAULT_LIMIT })
    }

    /// Sets the maximum length of a line, in bytes. Default: [`DEFAULT_LIMIT`].
    #[must_use]
    pub fn line_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// Frees one large block. The C library of Linux returns large blocks to the system when they are freed, and requests them
/// again page by page, until one block of that size has been freed: then it keeps the buffers of long lines.
fn announce_large_buffers() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(2 * DEFAULT_LIMIT)));
}

fn unusable(which: &str, error: &io::Error) -> TransportError {
    TransportError::Setup(format!("standard {which} cannot be used: {error}"))
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Transport for Stdio {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let input = Claimed { stream: self.input, _claim: Arc::clone(&self.claim) };
        let output = Claimed { stream: self.output, _claim: self.claim };
        (
            Box::new(LineReader::new(input, TransportContext::local_process("stdio"), self.limit)),
            Box::new(output),
        )
    }
}

/// A half that keeps the claim. The stream is dropped first, so that its flags are restored before the claim ends.
struct Claimed<S> {
    stream: S,
    _claim: Arc<Claim>,
}

impl Source for Claimed<Input> {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.stream.poll_fill(cx, buffer)
    }
}

impl FrameWriter for Claimed<Output> {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        self.stream.poll_write(cx, frames)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.stream.poll_close(cx)
    }
}
