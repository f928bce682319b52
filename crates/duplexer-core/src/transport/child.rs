//! A server process started by its client, and the transport over its standard streams.
//!
//! The process gets a process group of its own, a few variables of the caller's environment, and a stderr that is always
//! drained. The transport and the process are two values: the dispatcher consumes the transport, and [`Child`] ends the
//! process in steps, or at once when it is dropped.

mod process;
mod streams;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::descriptor::{Input, Output};
use super::lines::{DEFAULT_LIMIT, LineReader, Source};
use super::{FrameReader, FrameWriter, Transport, TransportContext, TransportError};

use process::Process;
use streams::{Reader, Stream, Writer, drain_stderr};

/// Variables that a process inherits: what it takes to run a program, and nothing that may be secret.
const INHERITED_VARIABLES: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// Maximum time that a shutdown waits for frames that are being written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum time that a shutdown waits for the process after each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(2);

/// Destination of the stderr of a process. It never fills up, whatever the choice.
#[non_exhaustive]
#[derive(Default)]
pub enum Stderr {
    /// The null device.
    Discard,
    /// Our own stderr.
    #[default]
    Inherit,
    /// A function that gets each line. It is called on the runtime and must not block. Lines beyond 64 KiB are skipped.
    Lines(Box<dyn FnMut(&str) + Send>),
}

impl Stderr {
    /// Creates a destination that passes each line to `sink`; see [`Stderr::Lines`].
    pub fn lines(sink: impl FnMut(&str) + Send + 'static) -> Self {
        Self::Lines(Box::new(sink))
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discard => "Discard",
            Self::Inherit => "Inherit",
            Self::Lines(_) => "Lines",
        })
    }
}

/// Builder of a server process. `Debug` shows the program, not its arguments and environment, which may be secret.
pub struct ChildCommand {
    command: Command,
    stderr: Stderr,
    limit: usize,
}

impl ChildCommand {
    /// Creates a command from the path of a program, or from its name in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear();
        for name in INHERITED_VARIABLES {
            // Some shells would define a value that begins like this as a function.
            match std::env::var_os(name) {
                Some(value) if !value.as_encoded_bytes().starts_with(b"()") => command.env(name, value),
                _ => &mut command,
            };
        }
        Self { command, stderr: Stderr::default(), limit: DEFAULT_LIMIT }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets an environment variable, in addition to the inherited ones (`HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`).
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Clears the environment, including the inherited variables.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Sets the destination of stderr.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Sets the maximum length of a line, in bytes. Default: [`DEFAULT_LIMIT`].
    #[must_use]
    pub fn line_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Starts the process. Must be called within a tokio runtime whose I/O and time are enabled.
    pub fn spawn(mut self) -> Result<(ChildTransport, Child), TransportError> {
        let sink = match self.stderr {
            Stderr::Discard => (Stdio::null(), None),
            Stderr::Inherit => (Stdio::inherit(), None),
            Stderr::Lines(sink) => (Stdio::piped(), Some(sink)),
        };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(sink.0);
        let program = self.command.get_program().display().to_string();
        let (process, pipes) = Process::start(self.command)
            .map_err(|error| TransportError::Setup(format!("`{program}` cannot be started: {error}")))?;
        let stdin = Arc::new(Stream::new(Output::own_pipe(pipes.stdin)?));
        let stdout = Arc::new(Stream::new(Input::own_pipe(pipes.stdout)?));
        let mut draining = JoinSet::new();
        if let (Some(stderr), Some(sink)) = (pipes.stderr, sink.1) {
            draining.spawn(drain_stderr(Input::own_pipe(stderr)?, sink));
        }
        let transport =
            ChildTransport { stdin: Arc::clone(&stdin), stdout: Arc::clone(&stdout), limit: self.limit };
        Ok((transport, Child { process, stdin, stdout, draining }))
    }
}

impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildCommand").field("program", &self.command.get_program()).finish_non_exhaustive()
    }
}

/// Transport over the standard streams of a [`Child`].
#[derive(Debug)]
pub struct ChildTransport {
    stdin: Arc<Stream<Output>>,
    stdout: Arc<Stream<Input>>,
    limit: usize,
}

impl Transport for ChildTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let context = TransportContext::local_process("stdio");
        (Box::new(LineReader::new(Reader(self.stdout), context, self.limit)), Box::new(Writer(self.stdin)))
    }
}

/// A running server process. Dropping it kills the process and its group at once.
#[derive(Debug)]
pub struct Child {
    process: Process,
    stdin: Arc<Stream<Output>>,
    stdout: Arc<Stream<Input>>,
    draining: JoinSet<()>,
}

impl Child {
    /// Returns the process id, which is also the id of its group.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the process and returns its exit status.
    ///
    /// Frames that are being written get half a second, then stdin is closed. If the process has not ended after two
    /// seconds its group gets SIGTERM, after two more SIGKILL. Once stdin is closed the transport has ended, and the output
    /// is read and discarded, so that the process cannot block on it. Finally the rest of the group is killed. Dropping
    /// this future kills the group at once.
    pub async fn shutdown(mut self) -> Result<ExitStatus, TransportError> {
        let _ = timeout(FLUSH_TIMEOUT, self.stdin.idle()).await;
        drop(self.stdin.take());
        let output = self.stdout.take();
        {
            let mut ended = pin!(ended(&self.process, output));
            for signal in [Signal::TERM, Signal::KILL] {
                if timeout(STEP_TIMEOUT, &mut ended).await.is_ok() {
                    break;
                }
                self.process.signal_group(signal);
            }
        }
        // Only a process that is stuck in the kernel outlives SIGKILL; the thread will reap it.
        let reaped = timeout(STEP_TIMEOUT, self.process.reap()).await;
        let status = reaped.map_err(|elapsed| TransportError::Io(elapsed.into()))??;
        // The last lines are in the pipe already; only a process that left the group could keep it open.
        let _ = timeout(FLUSH_TIMEOUT, self.draining.join_next()).await;
        Ok(status)
    }
}

/// Waits until the process has ended and no process of its group holds its output.
async fn ended(process: &Process, output: Option<Input>) {
    let drained = async {
        let Some(mut output) = output else { return };
        let mut scratch = Vec::with_capacity(64 * 1024);
        while let Ok(1..) = poll_fn(|cx| output.poll_fill(cx, &mut scratch)).await {
            scratch.clear();
        }
    };
    tokio::join!(process.exited(), drained);
}
