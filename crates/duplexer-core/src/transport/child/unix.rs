//! A process in a group of its own, and the thread that waits for it.
//!
//! The thread notices the end at once but reaps the process only on request: until then its id cannot be reused, and a signal
//! to its group never reaches another process. It needs no runtime, so there are no zombies after the runtime has ended.

use std::io;
use std::process::{self, Command, ExitStatus};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{oneshot, watch};

use super::process::{Pipes, Process, Step};
use crate::transport::descriptor::{Input, Output};

/// A process that leads a group. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct GroupProcess {
    group: Pid,
    exited: watch::Receiver<bool>,
    /// Dropping it lets the thread reap the process.
    keep: Option<SyncSender<()>>,
    pub(super) status: Option<oneshot::Receiver<io::Result<ExitStatus>>>,
}

impl GroupProcess {
    fn signal_group(&self, signal: Signal) {
        if self.keep.is_some() {
            signal_group(self.group, signal);
        }
    }
}

impl Process for GroupProcess {
    type Input = Input;
    type Output = Output;

    fn start(mut command: Command) -> io::Result<(Self, Pipes<Self>)> {
        use std::os::unix::process::CommandExt;

        let (hand_over, handed) = sync_channel(1);
        let (keep, kept) = sync_channel(0);
        let (exited, observed) = watch::channel(false);
        let (reaped, status) = oneshot::channel();
        // The thread comes first: a process without one could not be waited for.
        Builder::new().name("duplexer-child".into()).spawn(move || {
            if let Ok(child) = handed.recv() {
                let _ = reaped.send(wait(child, &exited, &kept));
            }
        })?;
        let mut child = command.process_group(0).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        // The thread receives exactly one process: the send cannot fail.
        let _ = hand_over.send(child);
        let process = Self { group, exited: observed, keep: Some(keep), status: Some(status) };
        let (Some(stdin), Some(stdout), stderr) = pipes else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let pipes = Pipes {
            stdin: Output::own_pipe(stdin)?,
            stdout: Input::own_pipe(stdout)?,
            stderr: stderr.map(Input::own_pipe).transpose()?,
        };
        Ok((process, pipes))
    }

    fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    async fn exited(&mut self) {
        // An error means that the thread is gone, and with it the process.
        let _ = self.exited.clone().wait_for(|exited| *exited).await;
    }

    fn signal(&mut self, step: Step) {
        self.signal_group(match step {
            Step::Terminate => Signal::TERM,
            Step::Kill => Signal::KILL,
        });
    }

    async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal_group(Signal::KILL);
        self.keep = None;
        match self.status.take() {
            Some(status) => status.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())),
            None => Err(io::ErrorKind::Other.into()),
        }
    }
}

impl Drop for GroupProcess {
    fn drop(&mut self) {
        self.signal_group(Signal::KILL);
    }
}

fn signal_group(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // On some systems a group of zombies does not exist, on others it cannot be signalled.
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => {}
        Err(error) => tracing::debug!(%error, "a server process could not be signalled"),
    }
}

fn wait(
    mut child: process::Child,
    exited: &watch::Sender<bool>,
    kept: &Receiver<()>,
) -> io::Result<ExitStatus> {
    let id = WaitId::Pid(Pid::from_child(&child));
    while let Err(Errno::INTR) = waitid(id.clone(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {}
    exited.send_replace(true);
    let _ = kept.recv();
    child.wait()
}
