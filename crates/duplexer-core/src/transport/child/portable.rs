//! A process through tokio alone: no group, no signals. It ends when its input is closed, or is killed.

use std::io;
use std::process::{Command, ExitStatus};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::process::{Pipes, Process, Step};
use crate::transport::lines::{AsyncSource, LineWriter, Source};

use std::task::{Context, Poll};

/// A process that is killed when it is dropped. What it has started lives on.
#[derive(Debug)]
pub(super) struct PortableProcess {
    child: Child,
    id: u32,
}

impl Process for PortableProcess {
    type Input = Input;
    type Output = LineWriter<ChildStdin>;

    fn start(command: Command) -> io::Result<(Self, Pipes<Self>)> {
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        let (Some(stdin), Some(stdout), Some(id)) = (child.stdin.take(), child.stdout.take(), child.id())
        else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let pipes = Pipes {
            stdin: LineWriter::new(stdin),
            stdout: Input::Stdout(AsyncSource(stdout)),
            stderr: child.stderr.take().map(|stderr| Input::Stderr(AsyncSource(stderr))),
        };
        Ok((Self { child, id }, pipes))
    }

    fn id(&self) -> u32 {
        self.id
    }

    async fn exited(&mut self) {
        let _ = self.child.wait().await;
    }

    fn signal(&mut self, _: Step) {
        // An error means that the process has ended.
        let _ = self.child.start_kill();
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Step::Kill);
        self.child.wait().await
    }
}

/// An output of the process.
pub(super) enum Input {
    Stdout(AsyncSource<ChildStdout>),
    Stderr(AsyncSource<ChildStderr>),
}

impl Source for Input {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Self::Stdout(stdout) => stdout.poll_fill(cx, buffer),
            Self::Stderr(stderr) => stderr.poll_fill(cx, buffer),
        }
    }
}
