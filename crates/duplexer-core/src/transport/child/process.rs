//! What a platform provides to run a process and end it.

use std::fmt;
use std::future::Future;
use std::io;
use std::process::{Command, ExitStatus};

use crate::transport::FrameWriter;
use crate::transport::lines::Source;

/// A running process. Dropping it kills the process.
pub(super) trait Process: fmt::Debug + Send + Sized + 'static {
    /// Our end of an output of the process.
    type Input: Source;
    /// Our end of its input.
    type Output: FrameWriter;

    /// Starts the command. Its stdin and stdout must be pipes.
    fn start(command: Command) -> io::Result<(Self, Pipes<Self>)>;

    fn id(&self) -> u32;

    /// Waits until the process has ended. Can be dropped and called again.
    fn exited(&mut self) -> impl Future<Output = ()> + Send;

    /// Requests the end by the means of a step.
    fn signal(&mut self, step: Step);

    /// Kills what is left and returns the exit status of the process.
    fn reap(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send;
}

/// How urgently the end of a process is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The process can still put itself in order, where the platform has a way to say so.
    Terminate,
    Kill,
}

pub(super) struct Pipes<P: Process> {
    pub(super) stdin: P::Output,
    pub(super) stdout: P::Input,
    pub(super) stderr: Option<P::Input>,
}
