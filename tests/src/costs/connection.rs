//! A connection that is kept open, and the requests on it.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::reply::Reply;

/// Ids of requests.
static IDS: AtomicU64 = AtomicU64::new(1);

/// The era of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Era {
    /// With the id of a session, or without one for its first request.
    Session(Option<String>),
    /// Without a session.
    Envelope,
}

/// A connection to one node.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinSet<()>,
}

impl Connection {
    /// Connects.
    pub async fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a node");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        let mut driver = JoinSet::new();
        driver.spawn(async { drop(connection.await) });
        Self { sender, driver }
    }

    /// Sends a message.
    pub async fn send(&mut self, era: &Era, message: &Value) -> Response<Incoming> {
        self.sender.ready().await.expect("an open connection");
        self.sender.send_request(request(era, message)).await.expect("a response")
    }

    /// Sends a message, and returns the response with this connection.
    pub async fn reply(mut self, era: &Era, message: &Value) -> Reply {
        let response = self.send(era, message).await;
        Reply::new(response.map(|body| body.map_err(Into::into).boxed_unsync()), Some(self.driver))
    }

    /// Calls `echo`, and reads the whole response.
    pub async fn echo(&mut self, era: &Era) {
        let response = self.send(era, &call(era, "echo", &json!({"text": "hello"}))).await;
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert!(body.windows(9).any(|part| part == b"\"hello\"}]"), "{body:?}");
    }
}

/// Opens a session.
pub async fn session(port: u16) -> Era {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "costs", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let reply = Connection::open(port).await.reply(&Era::Session(None), &initialize).await;
    let era = Era::Session(Some(reply.session.expect("a session")));
    let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(Connection::open(port).await.reply(&era, &confirmed).await.status, 202);
    era
}

/// Returns a call of a tool.
pub fn call(era: &Era, tool: &str, arguments: &Value) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments});
    if *era != Era::Envelope {
        params["_meta"] = json!({"progressToken": "t"});
    }
    message(era, "tools/call", params)
}

/// Returns a request.
pub fn message(era: &Era, method: &str, mut params: Value) -> Value {
    if *era == Era::Envelope {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "costs", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let id = IDS.fetch_add(1, Ordering::Relaxed);
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn request(era: &Era, message: &Value) -> Request<Full<Bytes>> {
    // A principal has a limit of listeners, and a session has one principal.
    let principal = match era {
        Era::Session(_) => "costs".to_owned(),
        Era::Envelope => format!("costs-{}", IDS.load(Ordering::Relaxed) / 100),
    };
    let mut head = Request::post("/mcp")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {principal}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    match era {
        Era::Session(id) => {
            head = head.header("mcp-protocol-version", "2025-11-25");
            if let Some(id) = id {
                head = head.header("mcp-session-id", id);
            }
        }
        Era::Envelope => {
            head = head.header("mcp-protocol-version", "2026-07-28");
            head = head.header("mcp-method", message["method"].as_str().unwrap_or_default());
            if let Some(name) = message["params"]["name"].as_str() {
                head = head.header("mcp-name", name);
            }
        }
    }
    head.body(message.to_string().into()).expect("a request")
}
