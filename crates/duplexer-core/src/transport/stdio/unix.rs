//! The standard streams as file descriptors, with a private duplicate of each. The runtime watches pipes and stream sockets;
//! anything else has a thread.

mod claim;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::unusable;
use crate::transport::descriptor::{Input, Output};
use crate::transport::lines::{DEFAULT_LIMIT, LineReader, Source};
use crate::transport::{FrameReader, FrameWriter, Frames, TransportContext, TransportError};

use claim::Claim;

pub(super) struct Streams {
    input: Input,
    output: Output,
    claim: Arc<Claim>,
}

impl Streams {
    pub(super) fn claim() -> Result<Self, TransportError> {
        let claim = Arc::new(Claim::take()?);
        announce_large_buffers();
        let input = claim.input().and_then(Input::open).map_err(|error| unusable("input", &error))?;
        let output = claim.output().and_then(Output::open).map_err(|error| unusable("output", &error))?;
        Ok(Self { input, output, claim })
    }

    pub(super) fn split(self, limit: usize) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let input = Claimed { stream: self.input, _claim: Arc::clone(&self.claim) };
        let output = Claimed { stream: self.output, _claim: self.claim };
        (Box::new(LineReader::new(input, TransportContext::local_process("stdio"), limit)), Box::new(output))
    }
}

/// Frees one large block. The C library of Linux returns large blocks to the system when they are freed, and requests them
/// again page by page, until one block of that size has been freed: then it keeps the buffers of long lines.
fn announce_large_buffers() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(2 * DEFAULT_LIMIT)));
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
