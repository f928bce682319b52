//! The processes: a store in a folder of its own, and the nodes. They end with this program.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use duplexer::BoxError;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::balancer::Balancer;

const NO_STORE: &str = "no redis-server or valkey-server on PATH. Install one (Debian: apt install redis-server; \
    macOS: brew install valkey), name it in REDIS_SERVER, or give the address of one that runs: --redis URL";
/// Time for a process to listen.
const START: Duration = Duration::from_secs(20);
/// Time for a node to end. Calls that still run then are lost.
const END: Duration = Duration::from_secs(12);

/// Everything that runs.
pub(crate) struct Cluster {
    redis: String,
    store: Option<Store>,
    nodes: Vec<Node>,
    balancer: Arc<Balancer>,
    port: u16,
    _serving: JoinSet<std::io::Result<()>>,
}

struct Store {
    process: Child,
    folder: PathBuf,
}

struct Node {
    port: u16,
    process: Option<Child>,
}

impl Cluster {
    pub(crate) async fn start(nodes: usize, port: u16, redis: Option<String>) -> Result<Self, BoxError> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let (store, redis) = match redis {
            Some(url) => (None, url),
            None => Store::start().await.map(|(store, url)| (Some(store), url))?,
        };
        let mut ports = Vec::new();
        for _ in 0..nodes {
            ports.push(free_port().await?);
        }
        let balancer = Balancer::new(&ports)?;
        let serving = balancer.serve(listener);
        let nodes = ports.into_iter().map(|port| Node { port, process: None }).collect();
        let mut cluster = Self { redis, store, nodes, balancer, port, _serving: serving };
        for number in 1..=cluster.nodes.len() {
            if let Err(error) = cluster.boot(number).await {
                cluster.end().await;
                return Err(error);
            }
        }
        Ok(cluster)
    }

    /// Returns where clients connect.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Prints one line per node, and one for the store.
    pub(crate) async fn show(&mut self) {
        if let Some(store) = &self.store {
            println!("store: {} in {}", self.redis, store.folder.display());
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            let state = match node.process.as_mut().map(Child::try_wait) {
                Some(Ok(None)) if listens(node.port).await => "ready",
                Some(Ok(None)) => "starting",
                _ => "gone",
            };
            let process =
                node.process.as_ref().and_then(Child::id).map_or("-".to_owned(), |id| id.to_string());
            let requests = self.balancer.requests(index);
            println!(
                "node {}: {state}, port {}, process {process}, {requests} requests",
                index + 1,
                node.port
            );
        }
    }

    async fn boot(&mut self, number: usize) -> Result<(), BoxError> {
        let node = &mut self.nodes[number - 1];
        let process = Command::new(std::env::current_exe()?)
            .args(["node", &format!("node {number}"), &node.port.to_string(), &self.redis])
            .env("CLUSTER_SECRET", "a secret of at least 32 bytes, for this demonstration only")
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let process = node.process.insert(process);
        wait_until_listening(process, node.port, &format!("node {number}")).await
    }

    fn node(&mut self, number: u32) -> Option<&mut Node> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        if index >= self.nodes.len() {
            println!("there are nodes 1 to {}", self.nodes.len());
        }
        self.nodes.get_mut(index)
    }

    /// Starts a node again.
    pub(crate) async fn start_node(&mut self, number: u32) {
        let Some(node) = self.node(number) else { return };
        if node.process.is_some() {
            return println!("node {number} runs");
        }
        match self.boot(number as usize).await {
            Ok(()) => println!("node {number} is started"),
            Err(error) => println!("node {number} does not start: {error}"),
        }
    }

    /// Kills a node. Its calls are lost.
    pub(crate) async fn kill(&mut self, number: u32) {
        let Some(node) = self.node(number) else { return };
        match node.process.take() {
            Some(mut process) => {
                let _ = process.kill().await;
                println!("node {number} is killed");
            }
            None => println!("node {number} does not run"),
        }
    }

    /// Ends a node in good order: its calls finish.
    pub(crate) async fn stop(&mut self, number: u32) {
        let Some(node) = self.node(number) else { return };
        match node.process.take() {
            Some(process) => {
                println!("node {number} ends");
                end_in_order(process).await;
                println!("node {number} has ended");
            }
            None => println!("node {number} does not run"),
        }
    }

    /// Ends everything, and removes the folder of the store.
    pub(crate) async fn end(&mut self) {
        for process in self.nodes.iter_mut().filter_map(|node| node.process.as_mut()) {
            let _ = process.start_kill();
        }
        for process in self.nodes.iter_mut().filter_map(|node| node.process.as_mut()) {
            let _ = process.wait().await;
        }
        if let Some(mut store) = self.store.take() {
            let _ = store.process.kill().await;
        }
    }
}

/// A node ends when its input does.
async fn end_in_order(mut process: Child) {
    drop(process.stdin.take());
    if timeout(END, process.wait()).await.is_err() {
        let _ = process.kill().await;
    }
}

impl Store {
    async fn start() -> Result<(Self, String), BoxError> {
        let program = program().ok_or(NO_STORE)?;
        let folder = std::env::temp_dir().join(format!("duplexer-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let port = free_port().await?;
        let mut command = Command::new(&program);
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(&folder);
        // Ctrl-C reaches all processes of a terminal. The store ends after the nodes.
        #[cfg(unix)]
        command.process_group(0);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true).spawn();
        let process = process.map_err(|error| format!("{}: {error}", program.display()))?;
        let mut store = Self { process, folder };
        wait_until_listening(&mut store.process, port, "the store").await?;
        Ok((store, format!("redis://127.0.0.1:{port}")))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Finds the program of a store.
fn program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("REDIS_SERVER") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|folder| [folder.join("valkey-server"), folder.join("redis-server")])
        .find(|program| program.is_file())
}

async fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}

async fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

async fn wait_until_listening(process: &mut Child, port: u16, name: &str) -> Result<(), BoxError> {
    let listening = async {
        while !listens(port).await {
            if let Some(status) = process.try_wait()? {
                return Err(format!("{name} has ended: {status}").into());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    timeout(START, listening).await.unwrap_or_else(|_| Err(format!("{name} does not listen").into()))
}
