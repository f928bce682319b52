//! The processes of the nodes, each with a proxy between it and the store.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::Options;
use super::store::signal;
use crate::proxy::Proxy;

/// The key of request states, the same at all nodes.
const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// How long a node that ends is still served requests, in milliseconds: the balancer learns of it.
const NOTICE: &str = "1000";
/// Time for a start.
const START: Duration = Duration::from_secs(30);
/// Time for an end: notice, drain and two seconds (SCL-44), with some tolerance.
const END: Duration = Duration::from_secs(10);

/// A node. It ends with this value.
pub struct Node {
    /// Where it listens, also after a restart.
    pub port: u16,
    /// Its way to the store.
    pub proxy: Proxy,
    program: PathBuf,
    ledger: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

impl Node {
    /// Starts a node on a free port, below those that the system gives to connections.
    pub async fn start(options: &Options, number: usize, store: u16, ledger: &Path) -> Self {
        let proxy = Proxy::start(store).await;
        let base = usize::try_from(std::process::id()).unwrap_or_default() * 31 + number * 1009;
        let mut node = Self {
            port: 0,
            proxy,
            program: options.node.clone(),
            ledger: ledger.to_owned(),
            log: options.folder.join(format!("node-{number}.log")),
            process: None,
        };
        for attempt in 0..20 {
            node.port = u16::try_from(20_000 + (base + attempt * 157) % 10_000).unwrap_or(20_000);
            if node.boot().await {
                return node;
            }
        }
        panic!("no node starts; see {}", node.log.display());
    }

    /// Starts the process. Returns whether it listens.
    pub async fn boot(&mut self) -> bool {
        let log = OpenOptions::new().create(true).append(true).open(&self.log).expect("a log");
        let mut process = Command::new(&self.program)
            .args(["--port", &self.port.to_string(), "--redis", &self.proxy.url(), "--notice", NOTICE])
            .env("SCALE_SECRET", SECRET)
            .env("SCALE_LEDGER", &self.ledger)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("the program of a node");
        let output = process.stdout.take().expect("its output");
        let line = timeout(START, BufReader::new(output).lines().next_line()).await;
        self.process = Some(process);
        matches!(line, Ok(Ok(Some(_))))
    }

    /// Kills the process.
    pub async fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().await.expect("the end of a node");
        }
    }

    /// Terminates the process. Returns whether it ends in time.
    pub async fn terminate(&mut self) -> bool {
        signal(self.process.as_ref(), Signal::TERM);
        let Some(mut process) = self.process.take() else { return false };
        matches!(timeout(END, process.wait()).await, Ok(Ok(status)) if status.success())
    }
}
