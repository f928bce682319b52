//! A process and the thread that waits for it.
//!
//! The thread notices the end at once but reaps the process only on request: until then its id cannot be reused, and a signal
//! to its group never reaches another process. It needs no runtime, so there are no zombies after the runtime has ended.

use std::io;
use std::process::{self, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::sync::{oneshot, watch};

#[derive(Debug)]
pub(super) struct Process {
    group: Pid,
    exited: watch::Receiver<bool>,
    /// Dropping it lets the thread reap the process.
    keep: Option<SyncSender<()>>,
    pub(super) status: Option<oneshot::Receiver<io::Result<ExitStatus>>>,
}

pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: Option<ChildStderr>,
}

impl Process {
    /// Starts the command in a group of its own. Its stdin and stdout must be pipes.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
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
        match pipes {
            (Some(stdin), Some(stdout), stderr) => Ok((process, Pipes { stdin, stdout, stderr })),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) async fn exited(&self) {
        // An error means that the thread is gone, and with it the process.
        let _ = self.exited.clone().wait_for(|exited| *exited).await;
    }

    pub(super) fn signal_group(&self, signal: Signal) {
        if self.keep.is_some() {
            signal_group(self.group, signal);
        }
    }

    /// Kills the rest of the group and returns the exit status of the process.
    pub(super) async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal_group(Signal::KILL);
        self.keep = None;
        match self.status.take() {
            Some(status) => status.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())),
            None => Err(io::ErrorKind::Other.into()),
        }
    }
}

impl Drop for Process {
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
