//! Nodes of one server, in this process or behind sockets, and raw HTTP requests to them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use duplexer_auth::AuthService;
use duplexer_core::error::BoxError;
use duplexer_http::{MemoryCluster, SharedStores, ShutdownHandle, StreamableHttp};
use duplexer_server::subscriptions::MemoryBus;
use duplexer_tests::scale::{Ledger, auth, server, service};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
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
        let targets = services.into_iter().map(|service| Mutex::new(auth().unwrap().protect(service)));
        cluster.nodes = Arc::new(Nodes::new(Targets::Here(targets.collect())));
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

/// A response. Dropping it disconnects the client.
pub struct Reply {
    pub status: u16,
    pub session: Option<String>,
    is_stream: bool,
    body: UnsyncBoxBody<Bytes, BoxError>,
    /// Drives the connection. Aborted on drop.
    _connection: Option<JoinSet<()>>,
}

impl Reply {
    fn new(response: Response<UnsyncBoxBody<Bytes, BoxError>>, connection: Option<JoinSet<()>>) -> Self {
        let header = |name| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let session = header("mcp-session-id");
        let is_stream = header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let status = response.status().as_u16();
        Self { status, session, is_stream, body: response.into_body(), _connection: connection }
    }

    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Reads a JSON body. `Null` if it is empty.
    pub async fn json(self) -> Value {
        let Some(bytes) = self.body.collect().await.ok().map(http_body_util::Collected::to_bytes) else {
            return Value::Null;
        };
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub fn events(self) -> Events {
        Events { reply: self, text: Vec::new() }
    }
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    /// The message. `None` in an event that only has an id.
    pub message: Option<Value>,
}

/// The events of a response, as they arrive.
pub struct Events {
    reply: Reply,
    text: Vec<u8>,
}

impl Events {
    /// Returns the next event; `None` at the end, and where the connection breaks.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(at) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let rest = self.text.split_off(at + 2);
                let text = String::from_utf8(std::mem::replace(&mut self.text, rest)).unwrap();
                if let Some(event) = parse(&text) {
                    return Some(event);
                }
                continue;
            }
            let frame = self.reply.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                // Lines end with CRLF or LF. Messages have neither.
                self.text.extend(data.iter().filter(|byte| **byte != b'\r'));
            }
        }
    }
}

/// Reads one event. `None` for a comment or a retry hint alone.
fn parse(text: &str) -> Option<Event> {
    let field = |name: &str| {
        let values: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
            .collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let id = field("id");
    let message = field("data").filter(|data| !data.is_empty());
    let message = message.map(|data| serde_json::from_str(&data).unwrap());
    (id.is_some() || message.is_some()).then_some(Event { id, message })
}
