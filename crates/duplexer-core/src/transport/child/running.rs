//! A process and its streams, from the start to the end, on any platform.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::process::{Process, Step};
use super::streams::{Reader, Stream, Writer, drain_stderr};
use crate::transport::lines::{LineReader, Source};
use crate::transport::{FrameReader, FrameWriter, TransportContext, TransportError};

/// Maximum time that a shutdown waits for frames that are being written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time that a shutdown waits for the process after each step.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// A function that gets each line of stderr.
pub(super) type Sink = Box<dyn FnMut(&str) + Send>;

/// Our ends of the input and the output of a process.
pub(super) struct Streams<P: Process> {
    stdin: Arc<Stream<P::Output>>,
    stdout: Arc<Stream<P::Input>>,
}

impl<P: Process> Streams<P> {
    pub(super) fn split(self, limit: usize) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let context = TransportContext::local_process("stdio");
        (Box::new(LineReader::new(Reader(self.stdout), context, limit)), Box::new(Writer(self.stdin)))
    }
}

impl<P: Process> Clone for Streams<P> {
    fn clone(&self) -> Self {
        Self { stdin: Arc::clone(&self.stdin), stdout: Arc::clone(&self.stdout) }
    }
}

impl<P: Process> fmt::Debug for Streams<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Streams")
    }
}

#[derive(Debug)]
pub(super) struct Running<P: Process> {
    pub(super) process: P,
    streams: Streams<P>,
    draining: JoinSet<()>,
}

impl<P: Process> Running<P> {
    pub(super) fn start(command: Command, stderr: Option<Sink>) -> io::Result<(Streams<P>, Self)> {
        let (process, pipes) = P::start(command)?;
        let streams = Streams {
            stdin: Arc::new(Stream::new(pipes.stdin)),
            stdout: Arc::new(Stream::new(pipes.stdout)),
        };
        let mut draining = JoinSet::new();
        if let (Some(stderr), Some(sink)) = (pipes.stderr, stderr) {
            draining.spawn(drain_stderr(stderr, sink));
        }
        Ok((streams.clone(), Self { process, streams, draining }))
    }

    /// See [`Child::shutdown`](super::Child::shutdown).
    pub(super) async fn shutdown(mut self) -> Result<ExitStatus, TransportError> {
        let _ = timeout(FLUSH_TIMEOUT, self.streams.stdin.idle()).await;
        drop(self.streams.stdin.take());
        let mut output = self.streams.stdout.take();
        for step in [Step::Terminate, Step::Kill] {
            if timeout(STEP_TIMEOUT, ended(&mut self.process, &mut output)).await.is_ok() {
                break;
            }
            self.process.signal(step);
        }
        // Only a process that is stuck in the kernel outlives SIGKILL; the platform reaps it later.
        let reaped = timeout(STEP_TIMEOUT, self.process.reap()).await;
        let status = reaped.map_err(|elapsed| TransportError::Io(elapsed.into()))??;
        // The last lines are in the pipe already; only a process that was not killed with it could keep it open.
        let _ = timeout(FLUSH_TIMEOUT, self.draining.join_next()).await;
        Ok(status)
    }
}

/// Waits until the process has ended and no process that it has started holds its output.
async fn ended<P: Process>(process: &mut P, output: &mut Option<P::Input>) {
    let drained = async {
        let mut scratch = Vec::with_capacity(64 * 1024);
        while let Some(open) = output {
            match poll_fn(|cx| open.poll_fill(cx, &mut scratch)).await {
                Ok(1..) => scratch.clear(),
                _ => *output = None,
            }
        }
    };
    tokio::join!(process.exited(), drained);
}
