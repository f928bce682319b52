//! A client that chooses a node at random for every message, and checks what it receives.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::Bytes;
pub use duplexer_tests::random::Random;
use duplexer_tests::reply::{Event, Events, Reply};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::nodes::Nodes;
use crate::wire::envelope;
use crate::{ENVELOPE, HANDSHAKE};

/// Number of times that a client resumes a stream without receiving anything.
const ATTEMPTS: usize = 20;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A message, an answer or a change did not arrive.
    Lost,
    /// Something arrived or was run twice.
    Doubled,
    /// Something arrived where it does not belong.
    Misdelivered,
    /// A refusal without a reason.
    Refused,
}

/// One fault of the server.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: Kind,
    pub text: String,
}

impl Finding {
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

pub type Outcome<T = ()> = Result<T, Finding>;

/// Fails with a finding unless a condition holds.
pub fn ensure(condition: bool, kind: Kind, text: impl FnOnce() -> String) -> Outcome {
    if condition { Ok(()) } else { Err(Finding::new(kind, text())) }
}

/// A client with a session.
pub struct Client {
    pub nodes: Arc<Nodes>,
    /// The bearer text, which is the principal.
    pub name: String,
    pub session: String,
    next_id: AtomicI64,
}

impl Client {
    /// Opens a session: `initialize` at one node, the confirmation at another.
    pub async fn open(nodes: &Arc<Nodes>, name: &str, random: &mut Random) -> Outcome<Arc<Self>> {
        let mut client = Self {
            nodes: Arc::clone(nodes),
            name: name.to_owned(),
            session: String::new(),
            next_id: AtomicI64::new(1),
        };
        let params = json!({"protocolVersion": HANDSHAKE, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": name, "version": "1"}});
        let reply = client.post_anywhere(random, &request(0, "initialize", params)).await;
        let session = reply.session.clone().filter(|_| reply.status == 200);
        let session = session.ok_or_else(|| refused("initialize", &reply))?;
        client.session = session;
        let client = Arc::new(client);
        let confirmation = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let confirmed = client.post_anywhere(random, &confirmation).await;
        ensure(confirmed.status == 202, Kind::Refused, || format!("initialized: {}", confirmed.status))?;
        Ok(client)
    }

    pub fn new_id(&self) -> i64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub async fn post(&self, node: usize, message: &Value) -> Reply {
        self.nodes.send(node, self.head("POST").body(message.to_string().into()).unwrap()).await
    }

    pub async fn post_anywhere(&self, random: &mut Random, message: &Value) -> Reply {
        let body = Bytes::from(message.to_string());
        self.send_anywhere(random, &|| self.head("POST").body(body.clone().into()).unwrap()).await
    }

    /// Sends a request to a random node, and again elsewhere if that cannot serve now.
    async fn send_anywhere(
        &self,
        random: &mut Random,
        build: &(dyn Fn() -> Request<Full<Bytes>> + Sync),
    ) -> Reply {
        for _ in 0..ATTEMPTS {
            let reply = self.nodes.send(self.nodes.any(random), build()).await;
            if reply.status != 503 {
                return reply;
            }
            sleep(Duration::from_secs(1)).await;
        }
        self.nodes.send(self.nodes.any(random), build()).await
    }

    fn get_head(&self, last: Option<&str>) -> Request<Full<Bytes>> {
        let mut head = self.head("GET");
        if let Some(last) = last {
            head = head.header("last-event-id", last);
        }
        head.body(Full::default()).unwrap()
    }

    /// Opens the stream for messages outside a request, or resumes a stream.
    pub async fn get(&self, node: usize, last: Option<&str>) -> Reply {
        self.nodes.send(node, self.get_head(last)).await
    }

    pub async fn get_anywhere(&self, random: &mut Random, last: Option<&str>) -> Reply {
        self.send_anywhere(random, &|| self.get_head(last)).await
    }

    pub async fn delete_anywhere(&self, random: &mut Random) -> Reply {
        self.send_anywhere(random, &|| self.head("DELETE").body(Full::default()).unwrap()).await
    }

    /// Returns the same session as another principal sees it.
    pub fn impersonated_by(&self, name: &str) -> Self {
        Self {
            nodes: Arc::clone(&self.nodes),
            name: name.to_owned(),
            session: self.session.clone(),
            next_id: AtomicI64::new(1_000_000),
        }
    }

    /// Returns the same principal without a session.
    pub fn without_session(&self) -> Self {
        Self { session: String::new(), ..self.impersonated_by(&self.name) }
    }

    /// Returns the same client of other nodes.
    pub fn at(&self, nodes: &Arc<Nodes>) -> Self {
        Self { nodes: Arc::clone(nodes), ..self.impersonated_by(&self.name) }
    }

    fn head(&self, method: &str) -> http::request::Builder {
        let head = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", self.name))
            .header("content-type", "application/json")
            .header(
                "accept",
                if method == "GET" { "text/event-stream" } else { "application/json, text/event-stream" },
            )
            .header("mcp-protocol-version", HANDSHAKE);
        if self.session.is_empty() { head } else { head.header("mcp-session-id", &self.session) }
    }

    /// Starts a request at a random node, and returns the stream of its messages.
    pub async fn start(
        self: &Arc<Self>,
        random: &mut Random,
        method: &str,
        params: Value,
    ) -> Outcome<Stream> {
        let id = self.new_id();
        let reply = self.post_anywhere(random, &request(id, method, params)).await;
        if reply.status != 200 {
            return Err(refused(method, &reply));
        }
        let mut stream = Stream::of(self, id, reply).await;
        stream.random = random.fork();
        Ok(stream)
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

    /// Sends a request of the envelope era to a random node and returns its result.
    pub async fn envelope(&self, random: &mut Random, method: &str, params: Value) -> Outcome<Value> {
        let reply = self.send_envelope(random, method, params).await;
        ensure(reply.status == 200, Kind::Refused, || format!("{method} (envelope): {}", reply.status))?;
        let message = if reply.is_stream() {
            let mut events = reply.events();
            loop {
                let event = events.next().await;
                let event = event.ok_or_else(|| Finding::new(Kind::Lost, format!("{method}: no answer")))?;
                if let Some(message) = event.message.filter(|message| message.get("id").is_some()) {
                    break message;
                }
            }
        } else {
            reply.json().await
        };
        Ok(message["result"].clone())
    }

    pub async fn send_envelope(&self, random: &mut Random, method: &str, mut params: Value) -> Reply {
        params["_meta"] = envelope(ENVELOPE);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        let mut head = Request::builder()
            .method("POST")
            .uri("/mcp")
            .header("host", "127.0.0.1")
            .header("authorization", format!("Bearer {}", self.name))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", ENVELOPE)
            .header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            head = head.header("mcp-name", name);
        }
        let message = request(self.new_id(), method, params).to_string();
        let request = head.body(Full::<Bytes>::from(message)).unwrap();
        self.send_anywhere(random, &|| request.clone()).await
    }
}

pub fn request(id: i64, method: &str, params: Value) -> Value {
    let mut request = json!({"jsonrpc": "2.0", "id": id, "method": method});
    request["params"] = params;
    request
}

pub fn refused(what: &str, reply: &Reply) -> Finding {
    Finding::new(Kind::Refused, format!("{what}: status {}", reply.status))
}

/// The messages of a stream, over any number of connections to any nodes.
pub struct Stream {
    client: Arc<Client>,
    /// The request of the stream. `None`: the stream for messages outside a request.
    pub id: Option<i64>,
    events: Option<Events>,
    /// A response that was a JSON body.
    whole: Option<Value>,
    /// All events with an id, in order.
    log: Vec<(String, Option<Value>)>,
    /// Number of events in the log that the client has to receive again, because it resumed from an earlier one.
    again: usize,
    random: Random,
}

impl Stream {
    fn new(client: Arc<Client>, id: Option<i64>, random: Random) -> Self {
        Self { client, id, events: None, whole: None, log: Vec::new(), again: 0, random }
    }

    /// Returns the stream of a request whose response is this one.
    pub async fn of(client: &Arc<Client>, id: i64, reply: Reply) -> Self {
        let mut stream = Self::new(Arc::clone(client), Some(id), Random::new(0));
        if reply.is_stream() {
            stream.events = Some(reply.events());
        } else {
            stream.whole = Some(reply.json().await);
        }
        stream
    }

    /// Opens the stream for messages outside a request, at a random node.
    pub async fn standalone(client: &Arc<Client>, random: &mut Random) -> Outcome<Self> {
        let mut stream = Self::new(Arc::clone(client), None, random.fork());
        let reply = client.get_anywhere(random, None).await;
        if reply.status != 200 {
            return Err(refused("GET", &reply));
        }
        stream.events = Some(reply.events());
        Ok(stream)
    }

    /// Returns the id of the last event.
    pub fn last_id(&self) -> Option<&str> {
        self.log.last().map(|(id, _)| &**id)
    }

    /// Breaks the connection off, if the stream can be resumed.
    pub fn disconnect(&mut self) {
        if !self.log.is_empty() {
            self.events = None;
        }
    }

    /// Breaks the connection off, and forgets the last events: the server sends them again.
    pub fn rewind(&mut self) {
        self.disconnect();
        if self.events.is_none() && self.again == 0 && self.log.len() > 1 {
            self.again = self.random.below(self.log.len());
        }
    }

    /// Returns the next message that was not received before. Resumes the stream at a random node where it ends.
    pub async fn next(&mut self) -> Outcome<Value> {
        if let Some(whole) = self.whole.take() {
            return Ok(whole);
        }
        for _ in 0..ATTEMPTS {
            if self.events.is_none() {
                self.resume().await?;
            }
            while let Some(event) = self.read().await {
                if let Some(message) = self.accept(event)? {
                    return Ok(message);
                }
            }
            self.events = None;
            sleep(duplexer_tests::scale::RETRY).await;
        }
        Err(Finding::new(Kind::Lost, format!("the stream of request {:?} is silent", self.id)))
    }

    /// Returns whether the server ends the stream within a time. Messages that were sent before are read.
    pub async fn ends_after_deletion(&mut self, time: Duration) -> bool {
        timeout(time, async { while self.read().await.is_some() {} }).await.is_ok()
    }

    async fn read(&mut self) -> Option<Event> {
        self.events.as_mut()?.next().await
    }

    async fn resume(&mut self) -> Outcome {
        let received = self.log.len() - self.again;
        let last = received.checked_sub(1).map(|index| self.log[index].0.clone());
        ensure(last.is_some() || self.id.is_none(), Kind::Lost, || {
            format!("the response to request {:?} broke off without an event id", self.id)
        })?;
        let reply = self.client.get_anywhere(&mut self.random, last.as_deref()).await;
        if reply.status != 200 {
            let text = format!("request {:?} cannot be resumed after {last:?}: {}", self.id, reply.status);
            return Err(Finding::new(Kind::Lost, text));
        }
        self.events = Some(reply.events());
        Ok(())
    }

    /// Compares an event with those before it. Returns its message if it is new.
    fn accept(&mut self, event: Event) -> Outcome<Option<Value>> {
        let Event { id: Some(id), message } = event else { return Ok(event.message) };
        if self.again > 0 {
            let expected = &self.log[self.log.len() - self.again];
            if message.is_none() && expected.1.is_some() {
                // An event without a message only repeats the position.
                return Ok(None);
            }
            self.again -= 1;
            let is_same = *expected == (id.clone(), message.clone());
            ensure(is_same, Kind::Lost, || format!("sent again: {id} {message:?} instead of {expected:?}"))?;
            return Ok(None);
        }
        if self.log.iter().any(|(known, _)| *known == id) {
            ensure(message.is_none(), Kind::Doubled, || format!("event {id} again: {message:?}"))?;
            return Ok(None);
        }
        self.log.push((id, message.clone()));
        Ok(message)
    }
}

/// The text of a tool's result.
pub fn text_of(message: &Value) -> Option<&str> {
    message["result"]["content"][0]["text"].as_str()
}

/// Counts findings by kind.
pub fn count(findings: &[Finding]) -> HashMap<Kind, usize> {
    findings.iter().fold(HashMap::new(), |mut counts, finding| {
        *counts.entry(finding.kind).or_default() += 1;
        counts
    })
}
