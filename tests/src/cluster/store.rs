//! The process of the store, which is paused, restarted and emptied.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Time for a start.
const START: Duration = Duration::from_secs(20);

/// A store on a port of its own. It ends with this value.
pub struct Store {
    /// Where it listens.
    pub port: u16,
    program: PathBuf,
    folder: PathBuf,
    process: Option<Child>,
}

impl Store {
    /// Starts a store that keeps its data in a folder.
    pub async fn start(program: &Path, folder: &Path) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut store = Self { port, program, folder, process: None };
        store.boot().await;
        store
    }

    /// Starts the process, and waits until it has loaded its file.
    pub async fn boot(&mut self) {
        std::fs::create_dir_all(&self.folder).expect("a folder for the store");
        let port = self.port.to_string();
        let process = Command::new(&self.program)
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir"])
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the store");
        self.process = Some(process);
        let limit = Instant::now() + START;
        while !is_loaded(self.port).await {
            assert!(Instant::now() < limit, "the store does not start");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops the process without ending it.
    pub fn pause(&self) {
        signal(self.process.as_ref(), Signal::STOP);
    }

    /// Continues a process that was stopped.
    pub fn resume(&self) {
        signal(self.process.as_ref(), Signal::CONT);
    }

    /// Ends the process in good order: its data is in its file.
    pub async fn shut_down(&mut self) {
        signal(self.process.as_ref(), Signal::TERM);
        if let Some(mut process) = self.process.take() {
            process.wait().await.expect("the end of the store");
        }
    }

    /// Kills the process and deletes its data.
    pub async fn wipe(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.expect("the end of the store");
        }
        std::fs::remove_dir_all(&self.folder).expect("the folder of the store");
    }
}

/// Sends a signal to a process.
pub fn signal(process: Option<&Child>, signal: Signal) {
    let pid = process.and_then(Child::id).and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("a signal to an own process");
}

/// Returns whether the store answers, which it does not while it loads its file.
async fn is_loaded(port: u16) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else { return false };
    if stream.write_all(b"PING\r\n").await.is_err() {
        return false;
    }
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.is_ok() && answer == *b"+PONG"
}
