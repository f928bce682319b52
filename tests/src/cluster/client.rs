//! Requests through the balancer, and sessions that live on while nodes come and go.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::history::History;
use super::report::{Failure, Finding, Kind, Outcome, Report};
use super::stream::Stream;
use crate::random::Random;
use crate::reply::Reply;

/// The revision of the handshake era.
const HANDSHAKE: &str = "2025-11-25";
/// Time after which a request without an outcome is stuck (SCL-99).
pub const STUCK: Duration = Duration::from_secs(30);
/// Pause before a request is sent again.
pub const AGAIN: Duration = Duration::from_millis(200);

/// What became of a request.
pub enum Sent {
    /// A response.
    Reply(Reply),
    /// None: the connection broke, and the request may have been executed. With the node, if the balancer names it.
    Broken(Option<usize>),
}

/// The address that clients know, and what all of them share.
pub struct Front {
    address: SocketAddr,
    ports: Vec<u16>,
    /// The faults so far.
    pub history: Arc<History>,
    /// What the clients have seen.
    pub report: Arc<Report>,
}

impl Front {
    /// Creates the clients' view of a cluster.
    pub fn new(
        address: SocketAddr,
        ports: Vec<u16>,
        history: Arc<History>,
        report: Arc<Report>,
    ) -> Arc<Self> {
        Arc::new(Self { address, ports, history, report })
    }

    /// Returns the node that has responded.
    pub fn node_of(&self, reply: &Reply) -> Option<usize> {
        reply.node.and_then(|port| self.ports.iter().position(|known| *known == port))
    }

    /// Sends a request once, on a connection of its own.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Sent {
        match self.exchange(request).await {
            // The balancer has lost the node.
            Ok(reply) if matches!(reply.status, 502 | 504) => Sent::Broken(self.node_of(&reply)),
            Ok(reply) => {
                if reply.status == 503 {
                    self.report.refused(&self.history);
                }
                Sent::Reply(reply)
            }
            Err(_) => Sent::Broken(None),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Reply, hyper::Error> {
        let stream = TcpStream::connect(self.address).await.expect("the balancer");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async { drop(connection.await) });
        let response = sender.send_request(request).await?;
        Ok(Reply::new(response.map(|body| body.map_err(Into::into).boxed_unsync()), Some(driver)))
    }
}

/// A session, as its client knows it.
pub struct Session {
    /// What it is reached through.
    pub front: Arc<Front>,
    /// The bearer text, which is the principal.
    pub name: String,
    id: String,
    /// When it was opened.
    pub opened: Instant,
    next_id: AtomicI64,
}

impl Session {
    /// Opens a session. `initialize` is sent again where it failed: a session that no client knows expires.
    pub async fn open(front: &Arc<Front>, name: &str) -> Outcome<Arc<Self>> {
        let mut session = Self {
            front: Arc::clone(front),
            name: name.to_owned(),
            id: String::new(),
            opened: Instant::now(),
            next_id: AtomicI64::new(1),
        };
        let params = json!({"protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": name, "version": "1"}});
        let limit = Instant::now() + STUCK;
        loop {
            session.opened = Instant::now();
            match session.post(&request(0, "initialize", params.clone())).await {
                Sent::Reply(reply) if reply.status == 200 => {
                    session.id = reply.session.clone().unwrap_or_default();
                    break;
                }
                Sent::Reply(reply) if reply.status != 503 => return Err(refused("initialize", &reply)),
                _ => pause(limit, || "initialize".to_owned()).await?,
            }
        }
        let session = Arc::new(session);
        session.deliver(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(session)
    }

    /// Returns the same session as another principal sees it.
    pub fn impersonated(&self) -> Self {
        Self {
            front: Arc::clone(&self.front),
            name: format!("stranger-to-{}", self.name),
            id: self.id.clone(),
            opened: self.opened,
            next_id: AtomicI64::new(1_000_000),
        }
    }

    /// Sends a message once.
    pub async fn post(&self, message: &Value) -> Sent {
        let request = self.head("POST").body(message.to_string().into()).expect("a request");
        self.front.send(request).await
    }

    /// Opens the stream for messages outside a request, or resumes a stream, once.
    pub async fn get(&self, last: Option<&str>) -> Sent {
        let mut head = self.head("GET");
        if let Some(last) = last {
            head = head.header("last-event-id", last);
        }
        self.front.send(head.body(Full::default()).expect("a request")).await
    }

    /// Ends the session, once.
    pub async fn delete(&self) -> Sent {
        self.front.send(self.head("DELETE").body(Full::default()).expect("a request")).await
    }

    fn head(&self, method: &str) -> http::request::Builder {
        let accept =
            if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" };
        let head = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", self.name))
            .header("content-type", "application/json")
            .header("accept", accept)
            .header("mcp-protocol-version", HANDSHAKE);
        if self.id.is_empty() { head } else { head.header("mcp-session-id", &self.id) }
    }

    /// Sends a notification or a response until a node has taken it: a repetition has no further effect.
    pub async fn deliver(&self, message: &Value) -> Outcome {
        let limit = Instant::now() + STUCK;
        loop {
            match self.post(message).await {
                Sent::Reply(reply) if reply.status == 202 => return Ok(()),
                Sent::Reply(reply) if reply.status == 404 => return Err(self.gone()),
                Sent::Reply(reply) if reply.status != 503 => return Err(refused("a notification", &reply)),
                _ => pause(limit, || format!("{message}")).await?,
            }
        }
    }

    /// Starts a request. It is sent again only if a node has refused it with 503, which means that nothing was executed;
    /// then with another id, because the first one can still be on its way to the store.
    pub async fn start(
        self: &Arc<Self>,
        random: &mut Random,
        method: &str,
        params: Value,
    ) -> Outcome<Stream> {
        let from = Instant::now();
        loop {
            let id = self.new_id();
            match self.post(&request(id, method, params.clone())).await {
                Sent::Reply(reply) if reply.status == 200 => {
                    return Ok(Stream::of(self, id, reply, from, random.fork()).await);
                }
                Sent::Reply(reply) if reply.status == 404 => return Err(self.gone()),
                Sent::Reply(reply) if reply.status != 503 => return Err(refused(method, &reply)),
                Sent::Broken(node) => return Err(Failure::Broken { node, from }),
                Sent::Reply(_) => pause(from + STUCK, || format!("{method} of {}", self.name)).await?,
            }
        }
    }

    /// Calls a tool, with a tag as progress token.
    pub async fn call(
        self: &Arc<Self>,
        random: &mut Random,
        tool: &str,
        tag: &str,
        arguments: Value,
    ) -> Outcome<Stream> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": tag}});
        self.start(random, "tools/call", params).await
    }

    /// Returns an id for a request.
    pub fn new_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the failure of a message that no node knows the session of.
    pub fn gone(&self) -> Failure {
        Failure::SessionGone { opened: self.opened, name: self.name.clone() }
    }
}

/// Returns a request.
pub fn request(id: i64, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

/// Returns the finding of a status that nothing explains.
pub fn refused(what: &str, reply: &Reply) -> Failure {
    let node = reply.node.unwrap_or_default();
    Finding::new(Kind::Refused, format!("{what}: status {} of the node at port {node}", reply.status)).into()
}

/// Waits before a repetition. Fails at the limit.
pub async fn pause(limit: Instant, what: impl FnOnce() -> String) -> Outcome {
    if Instant::now() >= limit {
        return Err(Finding::new(Kind::Stuck, format!("{}: no outcome in {STUCK:?}", what())).into());
    }
    sleep(AGAIN).await;
    Ok(())
}
