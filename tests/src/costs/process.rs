//! A node as a process, and the time that it has used.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A node. It ends with this value.
pub struct Process {
    /// Where it listens.
    pub port: u16,
    child: Child,
}

impl Process {
    /// Starts a node on a free port.
    pub async fn start(program: &Path, options: &[&str]) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        drop(listener);
        let mut child = Command::new(program)
            .args(["--port", &port.to_string()])
            .args(options)
            .env("SCALE_SECRET", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program of a node");
        let output = child.stdout.take().expect("its output");
        let line = timeout(Duration::from_secs(30), BufReader::new(output).lines().next_line()).await;
        assert!(matches!(line, Ok(Ok(Some(_)))), "a node does not start");
        Self { port, child }
    }

    /// Returns the processor time of all its threads, in nanoseconds.
    pub fn processor_time(&self) -> u64 {
        let folder = format!("/proc/{}/task", self.child.id().expect("a running node"));
        let threads = std::fs::read_dir(folder).expect("the threads of a node");
        let time = |thread: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        threads.filter_map(time).sum()
    }
}

/// Lets this process and its children open as many files as the system allows.
pub fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a limit up to the maximum");
}
