//! Tests of the client against a scripted server.

mod cache;
mod calls;
mod changes;
mod inbound;
mod input;
mod listening;
mod negotiation;
#[cfg(feature = "schema")]
mod output_schemas;
#[cfg(unix)]
mod restart;
mod results;
mod timeouts;
mod tool_calls;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Client, ClientBuilder, ConnectError, Negotiation};
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, memory};

/// Maximum time of one wait. The clock is paused, so a wait without an event fails at once.
const TEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Server side of a connection, driven by the test.
struct ScriptedServer {
    reader: Box<dyn FrameReader>,
    writer: Box<dyn FrameWriter>,
}

impl ScriptedServer {
    /// Reads the client's next message; `None` at the end of the stream.
    async fn next_message(&mut self) -> Option<Value> {
        let next = timeout(TEST_TIMEOUT, poll_fn(|cx| self.reader.poll_next(cx)));
        match next.await.expect("the client sends nothing") {
            None => None,
            Some(Ok(Incoming::Message(message))) => Some(serde_json::from_str(&message.text).unwrap()),
            other => panic!("not a message: {other:?}"),
        }
    }

    /// Reads the client's next message and checks its method.
    async fn expect(&mut self, method: &str) -> Value {
        let message = self.next_message().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn send(&mut self, message: Value) {
        let mut frames = Frames::default();
        frames.push(message.to_string().as_bytes(), None);
        poll_fn(|cx| self.writer.poll_write(cx, &mut frames)).await.unwrap();
    }

    async fn respond(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn respond_with_error(&mut self, request: &Value, code: i64, data: Option<Value>) {
        let mut error = json!({"code": code, "message": "no"});
        if let Some(data) = data {
            error["data"] = data;
        }
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends a request to the client and returns its result or error.
    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
        let mut answer = self.next_message().await.unwrap();
        assert_eq!(answer["id"], "q", "{answer}");
        let body = if answer.get("error").is_some() { "error" } else { "result" };
        answer[body].take()
    }

    /// Completes a handshake in `version` and returns the `initialize` request.
    async fn handshake(&mut self, version: &str) -> Value {
        let opening = self.expect("initialize").await;
        self.respond(&opening, initialize_result(version)).await;
        self.expect("notifications/initialized").await;
        opening
    }
}

fn builder() -> ClientBuilder {
    Client::builder("c", "1")
}

fn handshake_builder() -> ClientBuilder {
    builder().negotiation(Negotiation::Handshake)
}

fn initialize_result(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "2"}, "instructions": "be kind"})
}

fn discover_result(versions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private", "instructions": "be kind",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "2"}}})
}

/// Connects while `script` drives the server.
async fn connect_with<T>(
    builder: ClientBuilder,
    script: impl AsyncFnOnce(&mut ScriptedServer) -> T,
) -> (Result<Client, ConnectError>, ScriptedServer, T) {
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = ScriptedServer { reader, writer };
    let connect = timeout(TEST_TIMEOUT, builder.connect(ours));
    let (client, played) = tokio::join!(connect, script(&mut server));
    let client = client.expect("the client gets no response");
    (client, server, played)
}

/// Opens a session of the handshake era.
async fn handshake_session(builder: ClientBuilder, version: &str) -> (Client, ScriptedServer) {
    let builder = builder.negotiation(Negotiation::Handshake);
    let (client, server, _) = connect_with(builder, async |server| server.handshake(version).await).await;
    (client.unwrap(), server)
}

/// Opens a session of the envelope era.
async fn envelope_session(builder: ClientBuilder) -> (Client, ScriptedServer) {
    let (client, server, ()) = connect_with(builder, async |server| {
        let probe = server.expect("server/discover").await;
        server.respond(&probe, discover_result(&["2026-07-28"])).await;
    })
    .await;
    (client.unwrap(), server)
}

/// Records the arguments of callbacks, in order.
struct Recorder<T>(Arc<std::sync::Mutex<Vec<T>>>);

impl<T> Recorder<T> {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn push(&self) -> impl Fn(T) + Send + Sync + 'static + use<T>
    where
        T: Send + 'static,
    {
        let seen = Arc::clone(&self.0);
        move |item| seen.lock().unwrap().push(item)
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
