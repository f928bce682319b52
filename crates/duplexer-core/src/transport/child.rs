//! A server process started by its client, and the transport over its standard streams.
//!
//! The process gets a few variables of the caller's environment, a stderr that is always drained, and on Unix a process group
//! of its own. The transport and the process are two values: the dispatcher consumes the transport, and [`Child`] ends the
//! process in steps, or at once when it is dropped.

#[cfg_attr(
    unix,
    allow(dead_code, reason = "Unix has a path of its own; this one is compiled and tested there too")
)]
mod portable;
mod process;
mod running;
mod streams;
#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(unix)]
mod unix;

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use super::lines::DEFAULT_LIMIT;
use super::{FrameReader, FrameWriter, Transport, TransportError};

use process::Process;
use running::{Running, Sink, Streams};

#[cfg(not(unix))]
use portable::PortableProcess as NativeProcess;
#[cfg(unix)]
use unix::GroupProcess as NativeProcess;

/// Variables that a process inherits: what it takes to run a program, and nothing that may be secret.
const INHERITED_VARIABLES: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]
};

/// Destination of the stderr of a process. It never fills up, whatever the choice.
///
/// ```
/// use duplexer_core::transport::child::{ChildCommand, Stderr};
///
/// let quiet = ChildCommand::new("my-server").stderr(Stderr::Discard);
/// let logged = ChildCommand::new("my-server").stderr(Stderr::lines(|line| eprintln!("my-server: {line}")));
/// ```
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
///
/// ```
/// use duplexer_core::transport::child::ChildCommand;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // `Client::builder(..).connect(transport)` takes the transport; the child ends when it is dropped or shut down.
/// let (transport, child) = ChildCommand::new("cat").args(["-"]).spawn()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias("spawn", "child process", "subprocess"))]
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

    /// Sets an environment variable, in addition to the inherited ones: `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER`,
    /// or on Windows their counterparts.
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
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be started.
    pub fn spawn(self) -> Result<(ChildTransport, Child), TransportError> {
        let limit = self.limit;
        let (streams, running) = self.start()?;
        Ok((ChildTransport { streams, limit }, Child { running }))
    }

    fn start<P: Process>(mut self) -> Result<(Streams<P>, Running<P>), TransportError> {
        let (stderr, sink): (Stdio, Option<Sink>) = match self.stderr {
            Stderr::Discard => (Stdio::null(), None),
            Stderr::Inherit => (Stdio::inherit(), None),
            Stderr::Lines(sink) => (Stdio::piped(), Some(sink)),
        };
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let program = self.command.get_program().display().to_string();
        Running::start(self.command, sink)
            .map_err(|error| TransportError::Setup(format!("`{program}` cannot be started: {error}")))
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
    streams: Streams<NativeProcess>,
    limit: usize,
}

impl Transport for ChildTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        self.streams.split(self.limit)
    }

    fn has_headers(&self) -> bool {
        false
    }
}

/// A running server process. Dropping it kills the process at once, and on Unix its group.
///
/// ```
/// use duplexer_core::transport::child::ChildCommand;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (transport, child) = ChildCommand::new("cat").spawn()?;
/// drop(transport);
/// assert!(child.shutdown().await?.success());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Child {
    running: Running<NativeProcess>,
}

impl Child {
    /// Returns the process id, which on Unix is also the id of its group.
    pub fn id(&self) -> u32 {
        self.running.process.id()
    }

    /// Ends the process and returns its exit status.
    ///
    /// Frames that are being written get half a second, then stdin is closed. If the process has not ended after two
    /// seconds its group gets SIGTERM, after two more SIGKILL; where there are no groups, the process is killed after the
    /// first two seconds. Once stdin is closed the transport has ended, and the output is read and discarded, so that the
    /// process cannot block on it. Finally the rest of the group is killed. Dropping this future kills the group at once.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot say how the process ended.
    pub async fn shutdown(self) -> Result<ExitStatus, TransportError> {
        self.running.shutdown().await
    }
}
