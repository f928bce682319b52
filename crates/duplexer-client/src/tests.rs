//! A client against a server that says exactly what the test says.

mod asked;
mod calls;
mod input;
mod listening;
mod negotiation;
mod results;

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Client, ClientBuilder, ConnectError, Negotiation};
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, memory};

/// On the paused clock: a test that waits in vain fails at once.
const PATIENCE: Duration = Duration::from_secs(600);

/// The server's end of a connection.
struct Script {
    reader: Box<dyn FrameReader>,
    writer: Box<dyn FrameWriter>,
}

impl Script {
    /// What the client says next; `None` at the end of the stream.
    async fn maybe_next(&mut self) -> Option<Value> {
        let next = timeout(PATIENCE, poll_fn(|cx| self.reader.poll_next(cx)));
        match next.await.expect("the client says nothing") {
            None => None,
            Some(Ok(Incoming::Message(message))) => Some(serde_json::from_str(&message.text).unwrap()),
            other => panic!("not a message: {other:?}"),
        }
    }

    /// What the client says next, which is `method`.
    async fn next(&mut self, method: &str) -> Value {
        let message = self.maybe_next().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn send(&mut self, message: Value) {
        let mut frames = Frames::default();
        frames.push(message.to_string().as_bytes(), None);
        poll_fn(|cx| self.writer.poll_write(cx, &mut frames)).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn refuse(&mut self, request: &Value, code: i64, data: Option<Value>) {
        let mut error = json!({"code": code, "message": "no"});
        if let Some(data) = data {
            error["data"] = data;
        }
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
    }

    async fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Asks the client and waits for its answer: the result or the error.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})).await;
        let mut answer = self.maybe_next().await.unwrap();
        assert_eq!(answer["id"], "q", "{answer}");
        let body = if answer.get("error").is_some() { "error" } else { "result" };
        answer[body].take()
    }

    /// Answers a handshake with `version` and sees it through.
    async fn shake_hands(&mut self, version: &str) -> Value {
        let opening = self.next("initialize").await;
        self.answer(&opening, welcome(version)).await;
        self.next("notifications/initialized").await;
        opening
    }
}

fn options() -> ClientBuilder {
    Client::builder("c", "1")
}

fn handshake() -> ClientBuilder {
    options().negotiation(Negotiation::Handshake)
}

fn welcome(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "2"}, "instructions": "be kind"})
}

fn described(versions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "private", "instructions": "be kind",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "2"}}})
}

/// Connects while `script` plays the server.
async fn connecting<T>(
    options: ClientBuilder,
    script: impl AsyncFnOnce(&mut Script) -> T,
) -> (Result<Client, ConnectError>, Script, T) {
    let (ours, theirs) = memory::pair();
    let (reader, writer) = theirs.split();
    let mut server = Script { reader, writer };
    let connect = timeout(PATIENCE, options.connect(ours));
    let (client, played) = tokio::join!(connect, script(&mut server));
    let client = client.expect("nobody answers the client");
    (client, server, played)
}

/// A session of the handshake era.
async fn in_handshake(options: ClientBuilder, version: &str) -> (Client, Script) {
    let options = options.negotiation(Negotiation::Handshake);
    let (client, server, _) = connecting(options, async |server| server.shake_hands(version).await).await;
    (client.unwrap(), server)
}

/// A session of the envelope era.
async fn in_envelope(options: ClientBuilder) -> (Client, Script) {
    let (client, server, ()) = connecting(options, async |server| {
        let probe = server.next("server/discover").await;
        server.answer(&probe, described(&["2026-07-28"])).await;
    })
    .await;
    (client.unwrap(), server)
}

/// What callbacks were given, in order.
struct Seen<T>(Arc<std::sync::Mutex<Vec<T>>>);

impl<T> Seen<T> {
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
