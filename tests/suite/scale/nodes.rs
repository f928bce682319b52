//! Nodes of one server, in this process or behind sockets, and raw HTTP requests to them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use duplexer_auth::AuthService;
use duplexer_http::{MemoryCluster, SharedStores, ShutdownHandle, StreamableHttp};
use duplexer_server::subscriptions::MemoryBus;
use duplexer_tests::reply::Reply;
use duplexer_tests::scale::{Ledger, auth, server, service};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tower_service::Service as _;

use super::client::Random;

/// Idle time of sessions.
pub const IDLE: Duration = Duration::from_secs(30 * 60);

/// The lines that tools have written.
pub type Lines = Arc<Mutex<Vec<String>>>;

/// The nodes of a server, and a balancer that chooses one of them at random.
pub struct Nodes {
    targets: Targets,
    /// Nodes that the balancer does not choose, because they are not ready.
    unready: Mutex<BTreeSet<usize>>,
}

/// Where requests go.
enum Targets {
    /// To services in this process, without sockets: with the paused clock a run depends on its seed only.
    Here(Vec<Mutex<AuthService<StreamableHttp>>>),
    /// To ports of another process.
    Ports(Vec<SocketAddr>),
}

/// Nodes in this process that share stores in memory.
pub struct Cluster {
    pub nodes: Arc<Nodes>,
    pub lines: Lines,
    handles: Mutex<Vec<ShutdownHandle>>,
    shared: Box<dyn Fn() -> SharedStores + Send + Sync>,
    bus: MemoryBus,
}

impl Cluster {
    pub fn start(count: usize) -> Self {
        let stores = MemoryCluster::new(IDLE);
        Self::with(count, move || stores.node())
    }

    /// Starts nodes with the stores that a function returns for each of them.
    pub fn with(count: usize, shared: impl Fn() -> SharedStores + Send + Sync + 'static) -> Self {
        let mut cluster = Self {
            nodes: Arc::new(Nodes::new(Targets::Here(Vec::new()))),
            lines: Lines::default(),
            handles: Mutex::default(),
            shared: Box::new(shared),
            bus: MemoryBus::new(),
        };
        let services: Vec<StreamableHttp> = (0..count).map(|_| cluster.service()).collect();
        cluster.handles = Mutex::new(services.iter().map(StreamableHttp::handle).collect());
        cluster.nodes = Arc::new(Nodes::of(services));
        cluster
    }

    fn service(&self) -> StreamableHttp {
        let ledger = Ledger::Memory(Arc::clone(&self.lines));
        let server = server(&ledger, Arc::new(self.bus.clone()), &[7; 32]).unwrap();
        service(server, (self.shared)()).unwrap()
    }

    /// Ends one node, as a termination signal does. The balancer notices at once.
    pub async fn stop(&self, node: usize) {
        self.nodes.unready.lock().unwrap().insert(node);
        let handle = self.handles.lock().unwrap()[node].clone();
        handle.shutdown().await;
    }

    /// Starts a node in place of one that has ended.
    pub fn restart(&self, node: usize) {
        let service = self.service();
        self.handles.lock().unwrap()[node] = service.handle();
        let Targets::Here(targets) = &self.nodes.targets else { return };
        *targets[node].lock().unwrap() = auth().unwrap().protect(service);
        self.nodes.unready.lock().unwrap().remove(&node);
    }
}

impl Nodes {
    fn new(targets: Targets) -> Self {
        Self { targets, unready: Mutex::default() }
    }

    /// Returns the nodes with these services.
    pub fn of(services: impl IntoIterator<Item = StreamableHttp>) -> Self {
        let protect = |service| Mutex::new(auth().unwrap().protect(service));
        Self::new(Targets::Here(services.into_iter().map(protect).collect()))
    }

    /// Returns the nodes at these addresses.
    pub fn at(ports: Vec<SocketAddr>) -> Self {
        Self::new(Targets::Ports(ports))
    }

    pub fn len(&self) -> usize {
        match &self.targets {
            Targets::Here(nodes) => nodes.len(),
            Targets::Ports(ports) => ports.len(),
        }
    }

    /// Chooses a node that is ready.
    pub fn any(&self, random: &mut Random) -> usize {
        let unready = self.unready.lock().unwrap();
        let ready: Vec<usize> = (0..self.len()).filter(|node| !unready.contains(node)).collect();
        ready[random.below(ready.len())]
    }

    /// Sends a request to one node, on a connection of its own.
    pub async fn send(&self, node: usize, request: Request<Full<Bytes>>) -> Reply {
        match &self.targets {
            Targets::Here(nodes) => {
                let mut service = nodes[node].lock().unwrap().clone();
                let response = service.call(request).await.unwrap();
                Reply::new(response.map(|body| body.map_err(Into::into).boxed_unsync()), None)
            }
            Targets::Ports(ports) => {
                let stream = TcpStream::connect(ports[node]).await.unwrap();
                let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
                let mut driver = JoinSet::new();
                driver.spawn(async { drop(connection.await) });
                let response = sender.send_request(request).await.unwrap();
                Reply::new(response.map(|body| body.map_err(Into::into).boxed_unsync()), Some(driver))
            }
        }
    }
}
