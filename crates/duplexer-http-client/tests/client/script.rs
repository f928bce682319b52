//! A scripted server on a socket: the test answers request by request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use duplexer_client::{Client, ClientBuilder, ConnectError, ErrorKind, Negotiation};
use duplexer_http_client::HttpTransport;
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum time of a wait, so that a test fails instead of hanging.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const NEWEST: &str = "2025-11-25";

/// The server: yields requests, each of which the test answers.
pub(crate) struct Script {
    pub(crate) url: String,
    requests: mpsc::Receiver<Asked>,
    _serving: JoinSet<()>,
}

/// One HTTP request without a response.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    headers: HeaderMap,
    /// Null if there was none.
    pub(crate) body: Value,
    /// Number of the connection that it came on.
    pub(crate) connection: usize,
    reply: oneshot::Sender<Response<Piped>>,
}

impl Script {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(64);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            for connection in 1.. {
                let Ok((socket, _)) = listener.accept().await else { break };
                let sender = sender.clone();
                let service =
                    hyper::service::service_fn(move |request| answer(sender.clone(), connection, request));
                connections.spawn(async move {
                    // A connection that the test closes on purpose is no failure.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        Self { url, requests, _serving: serving }
    }

    pub(crate) async fn next(&mut self) -> Asked {
        timeout(TIMEOUT, self.requests.recv()).await.expect("the client sends nothing").unwrap()
    }

    /// Returns a request that has arrived already, if there is one.
    pub(crate) fn unexpected(&mut self) -> Option<Asked> {
        self.requests.try_recv().ok()
    }

    /// Returns the next request, which must be a POST of `method`.
    pub(crate) async fn posted(&mut self, method: &str) -> Asked {
        let asked = self.next().await;
        assert_eq!((&asked.method, &asked.body["method"]), (&Method::POST, &json!(method)), "{asked:?}");
        asked
    }

    /// Returns the next request, which must have this HTTP method and no body.
    pub(crate) async fn plain(&mut self, method: Method) -> Asked {
        let asked = self.next().await;
        assert_eq!((&asked.method, &asked.body), (&method, &Value::Null), "{asked:?}");
        asked
    }

    /// Serves a handshake, up to the request for the standalone stream.
    pub(crate) async fn shake_hands(&mut self, version: &str) -> Asked {
        let opening = self.posted("initialize").await;
        opening.open(version, Some("s-1"));
        self.posted("notifications/initialized").await.status(202);
        self.plain(Method::GET).await
    }

    /// Connects a client while `play` is the server.
    pub(crate) async fn connecting<T>(
        &mut self,
        options: ClientBuilder,
        play: impl AsyncFnOnce(&mut Self) -> T,
    ) -> (Result<Client, ConnectError>, T) {
        let transport = HttpTransport::builder(&self.url).limit(10_000).header("x-own", "1").build().unwrap();
        tokio::join!(Box::pin(options.connect(transport)), play(self))
    }

    /// Opens a session in `version`. Returns the request for its standalone stream too.
    pub(crate) async fn session_in(&mut self, options: ClientBuilder, version: &str) -> (Client, Asked) {
        let options = options.negotiation(Negotiation::Handshake);
        let opening = self.connecting(options, async |script| script.shake_hands(version).await);
        let (client, stream) = Box::pin(opening).await;
        (client.unwrap(), stream)
    }

    /// Opens a session whose server has no standalone stream.
    pub(crate) async fn session(&mut self, options: ClientBuilder) -> Client {
        let (client, stream) = self.session_in(options, NEWEST).await;
        stream.status(405);
        client
    }
}

/// Calls a tool while `play` is the server. Returns the text of the result, or the error.
pub(crate) async fn calling<T>(
    client: &Client,
    script: &mut Script,
    play: impl AsyncFnOnce(&mut Script, Asked) -> T,
) -> (Result<String, (ErrorKind, String)>, T) {
    let play = async {
        let asked = script.posted("tools/call").await;
        play(script, asked).await
    };
    let (called, played) = tokio::join!(client.call_tool("x", ()).into_future(), play);
    let result = match called {
        Ok(result) => {
            Ok(serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned())
        }
        Err(error) => Err((error.kind(), error.to_string())),
    };
    (result, played)
}

pub(crate) fn options() -> ClientBuilder {
    Client::builder("test", "1")
}

async fn answer(
    sender: mpsc::Sender<Asked>,
    connection: usize,
    request: Request<Incoming>,
) -> Result<Response<Piped>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    let (reply, answered) = oneshot::channel();
    let path = head.uri.path().to_owned();
    let asked = Asked { method: head.method, path, headers: head.headers, body, connection, reply };
    sender.send(asked).await.map_err(std::io::Error::other)?;
    // A request that is dropped without a response breaks its connection.
    answered.await.map_err(std::io::Error::other)
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the session id and the revision in the headers.
    pub(crate) fn belongs_to(&self) -> (Option<&str>, Option<&str>) {
        (self.header("mcp-session-id"), self.header("mcp-protocol-version"))
    }

    /// Builds the response message with this result.
    fn result(&self, result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    /// Builds the response message of a tool with `text`.
    pub(crate) fn text_result(&self, text: &str) -> Value {
        self.result(&json!({"content": [{"type": "text", "text": text}]}))
    }

    pub(crate) fn status(self, status: u16) {
        self.reply(status, &[], Piped::whole(""));
    }

    pub(crate) fn reply(self, status: u16, headers: &[(&str, &str)], body: Piped) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        self.reply.send(response.body(body).unwrap()).unwrap();
    }

    pub(crate) fn json(self, message: &Value) {
        self.reply(200, &[("content-type", "application/json")], Piped::whole(&message.to_string()));
    }

    /// Answers with the result of a tool.
    pub(crate) fn say(self, text: &str) {
        let answer = self.text_result(text);
        self.json(&answer);
    }

    /// Builds the response message of `initialize`.
    pub(crate) fn welcome(&self, version: &str) -> Value {
        let info = json!({"name": "s", "version": "1"});
        self.result(&json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}))
    }

    /// Answers `initialize`.
    pub(crate) fn open(self, version: &str, session: Option<&str>) {
        let body = Piped::whole(&self.welcome(version).to_string());
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        self.reply(200, &headers, body);
    }

    /// Answers with an SSE stream, which the test writes.
    pub(crate) fn events(self) -> Events {
        let (sender, receiver) = mpsc::channel(64);
        self.reply(200, &[("content-type", "text/event-stream")], Piped(receiver));
        Events(sender)
    }
}

/// An open SSE stream. Dropping it ends the stream orderly.
pub(crate) struct Events(mpsc::Sender<Result<Bytes, std::io::Error>>);

impl Events {
    pub(crate) async fn raw(&self, text: &str) -> &Self {
        self.0.send(Ok(Bytes::from(text.to_owned()))).await.unwrap();
        self
    }

    pub(crate) async fn message(&self, message: &Value) -> &Self {
        self.raw(&format!("data: {message}\r\n\r\n")).await
    }

    /// Aborts the connection.
    pub(crate) async fn cut(self) {
        self.0.send(Err(std::io::Error::other("cut"))).await.unwrap();
    }

    /// Waits until the client stops reading.
    pub(crate) async fn left(&self) {
        timeout(TIMEOUT, self.0.closed()).await.expect("the client still listens");
    }
}

/// Response body that a test writes.
#[derive(Debug)]
pub(crate) struct Piped(mpsc::Receiver<Result<Bytes, std::io::Error>>);

impl Piped {
    pub(crate) fn whole(text: &str) -> Self {
        let (sender, receiver) = mpsc::channel(1);
        if !text.is_empty() {
            sender.try_send(Ok(Bytes::from(text.to_owned()))).unwrap();
        }
        Self(receiver)
    }
}

impl http_body::Body for Piped {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
