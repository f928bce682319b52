//! Adapter from lines to HTTP: each line becomes a POST on its own connection, and the frames of the response become lines.
//!
//! After a handshake that opens a session the adapter opens the session's stream and forwards its frames too. The end of
//! the lines terminates the session. The adapter handles HTTP only; the tests check the frames, as over any other link.

use std::net::SocketAddr;
use std::sync::Arc;

use duplexer_core::dispatch::RunError;
use duplexer_http::{Responses, StreamableHttp};
use duplexer_types::headers;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::http::request::Builder;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;

use crate::ENVELOPE;
use crate::wire::{Reader, Writer};

/// Serves on a socket and forwards frames to it, until the input ends and every frame has a response.
pub async fn carry(
    service: StreamableHttp,
    form: Responses,
    from: Reader,
    to: Writer,
) -> Result<(), RunError> {
    let bound = service.bind("127.0.0.1:0").await.unwrap();
    let address = bound.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let mut serving = JoinSet::new();
    serving.spawn(bound.serve_until(async { drop(ended.await) }));
    let mut carrier =
        Carrier { address, form, to: Arc::new(Mutex::new(to)), agreed: None, in_flight: JoinSet::new() };
    let mut lines = BufReader::new(from).lines();
    loop {
        tokio::select! {
            // Polled while there are lines too, so that a failure is reported at once.
            Some(done) = carrier.in_flight.join_next() => done.unwrap(),
            line = lines.next_line() => match line.unwrap() {
                Some(line) => carrier.take(line).await,
                None => break,
            },
        }
    }
    carrier.finish().await;
    drop(end);
    serving.join_next().await.unwrap().unwrap();
    Ok(())
}

/// The result of a handshake.
#[derive(Clone)]
struct Agreed {
    version: String,
    session: Option<String>,
}

struct Carrier {
    address: SocketAddr,
    form: Responses,
    to: Arc<Mutex<Writer>>,
    agreed: Option<Agreed>,
    in_flight: JoinSet<()>,
}

impl Carrier {
    /// Posts a line. Requests run concurrently; messages that affect later ones are awaited.
    async fn take(&mut self, line: String) {
        let frame: Value = serde_json::from_str(&line).unwrap_or_default();
        let request = self.request(&frame, line);
        if is_handshake(&frame) {
            return self.handshake(request).await;
        }
        if waits_for_nothing(&frame) {
            let response = exchange(self.address, request).await;
            assert_eq!(response.status(), StatusCode::ACCEPTED, "{frame}");
            return;
        }
        let (address, form, to) = (self.address, self.form, Arc::clone(&self.to));
        // A subscription is always a stream.
        let form = if frame["method"] == "subscriptions/listen" { Responses::Streaming } else { form };
        self.in_flight.spawn(async move { forward(exchange(address, request).await, form, &to).await });
    }

    /// Performs the handshake and opens the session's stream before any other message.
    async fn handshake(&mut self, request: Request<Full<Bytes>>) {
        let response = exchange(self.address, request).await;
        let session = response.headers().get(headers::SESSION_ID.lower);
        let session = session.map(|id| id.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await;
        let answer: Value = serde_json::from_slice(&body).unwrap();
        if let Some(version) = answer["result"]["protocolVersion"].as_str() {
            self.agreed = Some(Agreed { version: version.to_owned(), session });
            if self.has_session() {
                let response = exchange(self.address, self.empty(Method::GET)).await;
                assert_eq!(response.status(), StatusCode::OK);
                let to = Arc::clone(&self.to);
                self.in_flight.spawn(async move { events(response, &to).await });
            }
        }
        write_frame(&self.to, &body).await;
    }

    fn has_session(&self) -> bool {
        self.agreed.as_ref().is_some_and(|agreed| agreed.session.is_some())
    }

    /// Waits for the responses, and terminates the session, which ends its stream.
    async fn finish(&mut self) {
        let streams = usize::from(self.has_session());
        while self.in_flight.len() > streams {
            self.in_flight.join_next().await.unwrap().unwrap();
        }
        if self.has_session() {
            let response = exchange(self.address, self.empty(Method::DELETE)).await;
            assert_eq!(response.status(), StatusCode::OK);
            self.in_flight.join_next().await.unwrap().unwrap();
        }
    }

    fn head(&self, method: Method) -> Builder {
        let mut head = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", self.address.to_string())
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = self.agreed.as_ref().and_then(|agreed| agreed.session.as_ref()) {
            head = head.header(headers::SESSION_ID.lower, session);
        }
        head
    }

    /// Builds a request without a body for the session.
    fn empty(&self, method: Method) -> Request<Full<Bytes>> {
        let version = &self.agreed.as_ref().unwrap().version;
        let head = self.head(method).header(headers::PROTOCOL_VERSION.lower, version);
        head.body(Full::default()).unwrap()
    }

    /// Builds a request with the headers that repeat values of the body.
    fn request(&self, frame: &Value, line: String) -> Request<Full<Bytes>> {
        let head = self.head(Method::POST).header("content-type", "application/json");
        let head = match &self.agreed {
            Some(agreed) if !is_enveloped(frame) => {
                head.header(headers::PROTOCOL_VERSION.lower, &agreed.version)
            }
            None if is_handshake(frame) => head,
            _ => enveloped(head, frame),
        };
        head.body(Full::from(line)).unwrap()
    }
}

fn is_handshake(frame: &Value) -> bool {
    frame["method"] == "initialize" && frame.get("id").is_some() && !is_enveloped(frame)
}

fn is_enveloped(frame: &Value) -> bool {
    frame["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion").is_some()
}

/// Returns whether a frame is a notification or a response of the client.
fn waits_for_nothing(frame: &Value) -> bool {
    let is_notification = frame["method"].is_string() && frame.get("id").is_none();
    let is_response = frame.get("result").is_some() || frame.get("error").is_some();
    frame["jsonrpc"] == "2.0" && (is_notification || is_response)
}

fn enveloped(head: Builder, frame: &Value) -> Builder {
    let params = &frame["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str().unwrap_or(ENVELOPE);
    let head = head.header(headers::PROTOCOL_VERSION.lower, version);
    let Some(method) = frame["method"].as_str() else { return head };
    let head = head.header(headers::METHOD.lower, method);
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    match named {
        Some(name) => head.header(headers::NAME.lower, &*headers::encode(name)),
        None => head,
    }
}

/// Sends a request on its own connection, which stays open while the response is read.
async fn exchange(address: SocketAddr, request: Request<Full<Bytes>>) -> Response<Driven> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    let response = sender.send_request(request).await.unwrap();
    response.map(|body| Driven { body, _driver: driver })
}

/// A body, and the task that reads its connection.
struct Driven {
    body: Incoming,
    _driver: JoinSet<()>,
}

impl Driven {
    async fn collect(self) -> Bytes {
        self.body.collect().await.unwrap().to_bytes()
    }
}

async fn forward(response: Response<Driven>, form: Responses, to: &Mutex<Writer>) {
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    match kind.as_deref() {
        Some("application/json") => {
            let body = response.into_body().collect().await;
            // The responses to a batch are one array.
            match serde_json::from_slice(&body).unwrap() {
                Value::Array(frames) => {
                    for frame in frames {
                        write_frame(to, frame.to_string().as_bytes()).await;
                    }
                }
                _ => write_frame(to, &body).await,
            }
        }
        Some("text/event-stream") if form == Responses::Streaming => events(response, to).await,
        other => panic!("{other:?} with status {}", response.status()),
    }
}

/// Forwards every event as soon as it is complete.
async fn events(response: Response<Driven>, to: &Mutex<Writer>) {
    let (mut body, mut text) = (response.into_body(), Vec::new());
    while let Some(piece) = body.body.frame().await {
        text.extend_from_slice(piece.unwrap().data_ref().map_or(&[], |data| data));
        while let Some(end) = text.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let event: Vec<_> = text.drain(..end + 4).collect();
            let lines = event.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            for data in lines.filter_map(|line| line.strip_prefix(b"data: ")) {
                write_frame(to, data).await;
            }
        }
    }
}

async fn write_frame(to: &Mutex<Writer>, frame: &[u8]) {
    let mut to = to.lock().await;
    to.write_all(&[frame, b"\n"].concat()).await.unwrap();
    to.flush().await.unwrap();
}
