//! The server under load as a process: its memory and its CPU time.

#![expect(clippy::disallowed_methods, reason = "there is no runtime here whose clock could be used")]

use std::fs;
use std::net::TcpListener;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Connection, Fault};
use crate::process::{self, PACKAGE_OF_BENCHES};

const NAME: &str = "bench-server";
/// Maximum time until a server listens, and until it is idle.
const PATIENCE: Duration = Duration::from_secs(30);
/// A server is idle if it has used less CPU time than this ...
const IDLE: Duration = Duration::from_millis(1);
/// ... in this interval.
const WHILE: Duration = Duration::from_millis(100);

/// Builds the server as a user would package it.
pub(crate) fn build() -> Result<(), Fault> {
    process::packaged(PACKAGE_OF_BENCHES, &[NAME]).map(drop).map_err(Fault)
}

/// A server that listens on its own port.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) port: u16,
}

impl Server {
    /// Starts it with these options, and waits until it listens.
    pub(crate) fn start(options: &[&str]) -> Result<Self, Fault> {
        Self::start_with(options, Stdio::inherit())
    }

    /// Starts it like [`Server::start`], without its log: for clients that make it panic.
    pub(crate) fn start_silent(options: &[&str]) -> Result<Self, Fault> {
        Self::start_with(options, Stdio::null())
    }

    fn start_with(options: &[&str], log: Stdio) -> Result<Self, Fault> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let own = port.to_string();
        let mut command = program();
        command.args(["http", &own]).args(options).stdin(Stdio::null()).stderr(log);
        let server = Self { process: Process(command.spawn()?), port };
        let until = Instant::now() + PATIENCE;
        while Connection::open(port).is_err() {
            if Instant::now() > until {
                return Err(Fault("the server does not listen".into()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

fn program() -> Command {
    Command::new(process::target().join("dist").join(NAME))
}

/// The process. Dropping it ends it.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server on pipes and returns their other ends.
    pub(crate) fn piped() -> Result<(Self, ChildStdin, ChildStdout), Fault> {
        let mut command = program();
        command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Self(command.spawn()?);
        match (process.0.stdin.take(), process.0.stdout.take()) {
            (Some(input), Some(output)) => Ok((process, input, output)),
            _ => Err(Fault("the pipes of the server are not ours".into())),
        }
    }

    /// Returns its resident memory in kB.
    pub(crate) fn memory(&self) -> Result<u32, Fault> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        resident(&text).ok_or_else(|| Fault("the system does not say how much memory it has".into()))
    }

    /// Returns the number of its open descriptors.
    pub(crate) fn descriptors(&self) -> Result<u32, Fault> {
        self.entries("fd")
    }

    /// Returns the number of its threads.
    pub(crate) fn threads(&self) -> Result<u32, Fault> {
        self.entries("task")
    }

    fn entries(&self, folder: &str) -> Result<u32, Fault> {
        let count = fs::read_dir(format!("/proc/{}/{folder}", self.0.id()))?.count();
        u32::try_from(count).map_err(|_| Fault(format!("{count} entries in {folder}")))
    }

    /// Returns its resident memory in MB.
    pub(crate) fn megabytes(&self) -> Result<f64, Fault> {
        Ok(f64::from(self.memory()?) * 1024.0 / 1_000_000.0)
    }

    /// Returns the CPU time of all its threads.
    pub(crate) fn cpu(&self) -> Result<Duration, Fault> {
        let mut sum = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.0.id()))? {
            // A thread can end meanwhile.
            let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
            sum += computed(&text).ok_or_else(|| Fault("the system does not say who computes".into()))?;
        }
        Ok(sum)
    }

    /// Waits until it is idle.
    pub(crate) fn rest(&self) -> Result<(), Fault> {
        let until = Instant::now() + PATIENCE;
        let mut before = self.cpu()?;
        while Instant::now() < until {
            thread::sleep(WHILE);
            let now = self.cpu()?;
            if now.saturating_sub(before) < IDLE {
                return Ok(());
            }
            before = now;
        }
        Err(Fault("the server does not come to rest".into()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the kilobytes in the `status` of a process.
fn resident(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// Reads the CPU time in the `schedstat` of a thread: the first field, in nanoseconds.
fn computed(schedstat: &str) -> Option<Duration> {
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{computed, resident};

    #[test]
    fn memory_is_read_from_the_status_of_a_process() {
        let status = "Name:\tbench-server\nVmHWM:\t   40000 kB\nVmRSS:\t   25200 kB\nThreads:\t3\n";
        assert_eq!(resident(status), Some(25_200));
        assert_eq!(resident("Name:\tgone\n"), None);
    }

    #[test]
    fn the_time_of_a_thread_comes_first() {
        assert_eq!(computed("1500000 2730096 17\n"), Some(Duration::from_micros(1500)));
        assert_eq!(computed(""), None);
    }
}
