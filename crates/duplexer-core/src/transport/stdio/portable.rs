//! The standard streams through the standard library, on threads of their own.
//!
//! tokio's standard input would do, except that a runtime waits for its blocked read when it is dropped: a server on the
//! caller's runtime could not end before the next line arrives. A thread that is never joined cannot hold anything up.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use super::{Exclusive, unusable};
use crate::transport::lines::{LineReader, Source};
use crate::transport::thread::{Chunks, MAX_CHUNK, ThreadSink, ThreadSource};
use crate::transport::{FrameReader, FrameWriter, Frames, TransportContext, TransportError};

/// The reading thread of an earlier claim. A blocked read cannot be cancelled, so the next claim uses the same thread: a
/// second one would compete with it for the input.
static UNCLAIMED_INPUT: Mutex<Option<ThreadSource>> = Mutex::new(None);

pub(super) struct Streams {
    input: Input,
    output: Output,
}

impl Streams {
    pub(super) fn claim() -> Result<Self, TransportError> {
        let exclusive = Arc::new(Exclusive::take()?);
        let earlier = UNCLAIMED_INPUT.lock().unwrap_or_else(PoisonError::into_inner).take();
        let source = match earlier {
            Some(source) => source,
            None => ThreadSource::start(read_all).map_err(|error| unusable("input", &error))?,
        };
        let input = Input { source: Some(source), _exclusive: Arc::clone(&exclusive) };
        let sink = ThreadSink::start(write_all).map_err(|error| unusable("output", &error))?;
        Ok(Self { input, output: Output { sink, _exclusive: exclusive } })
    }

    pub(super) fn split(self, limit: usize) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let context = TransportContext::local_process("stdio");
        (Box::new(LineReader::new(self.input, context, limit)), Box::new(self.output))
    }
}

fn read_all(chunks: &Chunks) {
    let mut buffer = vec![0; MAX_CHUNK];
    loop {
        let chunk = match io::stdin().read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => Ok(buffer.get(..read).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        if !chunks.send(chunk) {
            return;
        }
    }
}

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

struct Input {
    /// `Some` until it is dropped.
    source: Option<ThreadSource>,
    _exclusive: Arc<Exclusive>,
}

impl Source for Input {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match &mut self.source {
            Some(source) => source.poll_fill(cx, buffer),
            None => Poll::Ready(Ok(0)),
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        *UNCLAIMED_INPUT.lock().unwrap_or_else(PoisonError::into_inner) = self.source.take();
    }
}

struct Output {
    sink: ThreadSink,
    _exclusive: Arc<Exclusive>,
}

impl FrameWriter for Output {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        self.sink.poll_write(cx, frames)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.sink.poll_write(cx, &mut Frames::default())
    }
}
