//! A test server, and a client that sends exact bytes.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use bytes::Bytes;

use duplexer_core::dispatch::{BoxFuture, CallOptions, OutboundRequest};
use duplexer_core::error::{CallError, McpError, StoreError};
use duplexer_core::run::RunId;
use duplexer_http::{
    Appended, Attach, Attached, Batch, Concluded, EventStore, HttpServer, MemoryEventStore, Page, StreamKey,
    StreamableHttp, StreamableHttpBuilder, Wake,
};
use duplexer_server::{Context, Principal, Server};
use duplexer_types::error::ErrorCode;
use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::subscription::{
    SubscriptionsAcknowledgedParams, SubscriptionsListenParams, SubscriptionsListenResult,
};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, ToolDefinition};
use http::Request;
use http_body::{Body, Frame};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tower_service::Service;

/// State that tests and handlers share.
#[derive(Default)]
pub(crate) struct Stage {
    /// Number of handlers that have been dropped or have finished.
    pub(crate) ended: AtomicUsize,
    pub(crate) changed: Notify,
    /// Handlers wait for this.
    pub(crate) go: Notify,
    pub(crate) started: AtomicUsize,
    /// Number of notifications that handlers have sent.
    pub(crate) sent: AtomicUsize,
    pub(crate) torn_down: AtomicUsize,
    /// Number of connections that have run their hooks.
    pub(crate) closed: AtomicUsize,
    /// Number of connections with a stored value, and number of those that have dropped it.
    pub(crate) kept: AtomicUsize,
    pub(crate) forgotten: AtomicUsize,
}

impl Stage {
    pub(crate) async fn until(&self, counter: &AtomicUsize, least: usize) {
        let enough = async {
            loop {
                let changed = self.changed.notified();
                if counter.load(Ordering::SeqCst) >= least {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), enough).await.expect("in time");
    }

    /// Waits like [`Self::until`], under a paused clock: time advances meanwhile, an hour at most.
    pub(crate) async fn until_paused(&self, counter: &AtomicUsize, least: usize) {
        let enough = async {
            while counter.load(Ordering::SeqCst) < least {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3600), enough).await.expect("in an hour");
    }

    fn count(&self, counter: &AtomicUsize) {
        counter.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }
}

struct Guard(Arc<Stage>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.count(&self.0.ended);
    }
}

/// A value that a connection holds until it is dropped.
struct Kept(Arc<Stage>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.count(&self.0.forgotten);
    }
}

async fn call(cx: Context<Arc<Stage>>, params: CallToolParams) -> Result<CallToolResult, McpError> {
    let stage = Arc::clone(cx.state());
    stage.count(&stage.started);
    let guard = Guard(Arc::clone(&stage));
    match params.name.as_str() {
        "wait" => {
            cx.cancellation().cancelled().await;
            std::future::pending::<()>().await;
        }
        "go" => stage.go.notified().await,
        "nap" => tokio::time::sleep(Duration::from_millis(300)).await,
        "tell" => {
            for step in 1..=3 {
                cx.progress(step).total(3.0).await;
            }
        }
        "tell much" => {
            for step in 1..=1000 {
                cx.progress(step).await;
            }
        }
        "tell then wait" => {
            cx.progress(1.0).await;
            stage.go.notified().await;
            cx.progress(2.0).await;
        }
        "tell from a task" => {
            cx.progress(1.0).await;
            let (other, stage) = (cx.clone(), Arc::clone(&stage));
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(async move {
                stage.go.notified().await;
                other.progress(2.0).await;
            });
            cx.closing().cancelled().await;
        }
        "flood" => {
            let big = "x".repeat(16 * 1024);
            for step in 0..100_000 {
                cx.progress(f64::from(step)).message(&big).await;
                stage.count(&stage.sent);
            }
        }
        "tell for ever" => {
            let mut step = 0.0;
            loop {
                step += 1.0;
                cx.progress(step).await;
                stage.count(&stage.sent);
            }
        }
        "large" => return Ok(CallToolResult::text("x".repeat(100_000))),
        "panic" => panic!("a tool that fails badly"),
        "panic later" => {
            tokio::task::yield_now().await;
            panic!("a tool that fails badly")
        }
        "refuse" => return Err(McpError::new(ErrorCode(-32603), "no")),
        "refuse late" => {
            cx.progress(1.0).await;
            return Err(McpError::new(ErrorCode::INVALID_PARAMS, "no"));
        }
        "ask" => {
            let refused = cx.connection().outbound().request(OutboundRequest::new("x/y")).await;
            assert!(matches!(refused, Err(CallError::NoBackChannel(_))));
            let header = cx.transport().header("x-test").collect::<Vec<_>>().join(",");
            return Ok(CallToolResult::text(header));
        }
        "question" => {
            let asked = cx.request::<methods::RootsList>(&EmptyParams::new(), CallOptions::new()).await;
            return Ok(CallToolResult::text(match asked {
                Ok(roots) => format!("{} roots", roots.roots.len()),
                Err(error) => error.to_string(),
            }));
        }
        "question with progress" => {
            let heard = Arc::clone(&stage);
            let options = CallOptions::new().on_progress(move |_| heard.count(&heard.sent));
            let asked = cx.request::<methods::RootsList>(&EmptyParams::new(), options).await;
            return Ok(CallToolResult::text(format!("{} roots", asked.map_or(0, |asked| asked.roots.len()))));
        }
        "questions" => {
            let options = || CallOptions::new().timeout(Duration::from_secs(1));
            let params = EmptyParams::new();
            let ask = || cx.request::<methods::RootsList>(&params, options());
            let (_, _, third) = tokio::join!(ask(), ask(), ask());
            return Ok(CallToolResult::text(third.err().map_or_else(String::new, |error| error.to_string())));
        }
        "question aside" => {
            let asked = cx.connection().list_roots().await;
            return Ok(CallToolResult::text(match asked {
                Ok(roots) => format!("{} roots", roots.roots.len()),
                Err(error) => error.to_string(),
            }));
        }
        "who" => {
            let scopes = cx.principal().map(|principal| principal.scopes.join(" "));
            let session = cx.connection().session_id().unwrap_or("none");
            return Ok(CallToolResult::text(format!("{} in {session}", scopes.unwrap_or_default())));
        }
        "announce" => cx.connection().tools_changed().await,
        "let go" => {
            cx.progress(1.0).await;
            let closing = cx.close_stream();
            stage.count(&stage.sent);
            stage.go.notified().await;
            cx.progress(2.0).await;
            return Ok(CallToolResult::text(format!("{closing:?}")));
        }
        "keep" => {
            stage.count(&stage.kept);
            cx.connection().set_state(Kept(Arc::clone(&stage)));
        }
        "hook" => {
            let closed = Arc::clone(&stage);
            cx.connection().on_close(move || async move { closed.count(&closed.closed) });
        }
        name => return Ok(CallToolResult::text(name)),
    }
    drop(guard);
    Ok(CallToolResult::text("done"))
}

async fn listen(
    cx: Context<Arc<Stage>>,
    params: SubscriptionsListenParams,
) -> Result<SubscriptionsListenResult, McpError> {
    let _guard = Guard(Arc::clone(cx.state()));
    let acknowledged = SubscriptionsAcknowledgedParams::new(params.notifications);
    cx.notify::<methods::SubscriptionsAcknowledged>(&acknowledged).await;
    cx.closing().cancelled().await;
    Ok(SubscriptionsListenResult::new())
}

pub(crate) fn server(stage: &Arc<Stage>) -> Server {
    let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
        "count":{"type":"integer","x-mcp-header":"Count"}}}"#;
    let annotations = ParamHeaders::from_schema(&Json::parse(schema).unwrap()).unwrap();
    let down = Arc::clone(stage);
    Server::builder("test", "1")
        .state(Arc::clone(stage))
        .on_shutdown(move |_: Arc<Arc<Stage>>| {
            let down = Arc::clone(&down);
            async move { down.count(&down.torn_down) }
        })
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(vec![ToolDefinition::new("echo", Json::object())]))
        })
        .on(methods::ToolsCall, call)
        .on(methods::SubscriptionsListen, listen)
        .tool_headers(move |tool| (tool == "mirrored").then(|| Arc::new(annotations.clone())))
        .build()
        .unwrap()
}

/// Raises the limit of descriptors: tests with many connections need both ends of each.
pub(crate) fn many_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// A service on a socket.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) stage: Arc<Stage>,
    pub(crate) end: Option<oneshot::Sender<()>>,
    pub(crate) run: Option<JoinHandle<()>>,
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(|builder| builder).await
    }

    pub(crate) async fn with(configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder) -> Self {
        Self::bound(configure, |bound| bound).await
    }

    pub(crate) async fn bound<S: Send + 'static>(
        configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
        more: impl FnOnce(HttpServer<TcpListener>) -> HttpServer<TcpListener, S>,
    ) -> Self {
        let stage = Arc::new(Stage::default());
        let service = configure(StreamableHttp::builder(server(&stage))).build().unwrap();
        let bound = more(service.bind("127.0.0.1:0").await.unwrap());
        let address = bound.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        #[expect(clippy::disallowed_methods, reason = "the site owns it")]
        let run = tokio::spawn(bound.serve_until(async move {
            let _ = ended.await;
        }));
        Self { address, stage, end: Some(end), run: Some(run) }
    }

    /// Shuts the site down and returns how long that took.
    pub(crate) async fn finish(&mut self) -> Duration {
        let start = tokio::time::Instant::now();
        let _ = self.end.take().unwrap().send(());
        let run = self.run.take().unwrap();
        tokio::time::timeout(Duration::from_secs(10), run).await.expect("an end").unwrap();
        start.elapsed()
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::over(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn post(&self, post: &Post) -> Reply {
        let mut wire = self.connect().await;
        wire.send(&post.bytes(self.address)).await;
        wire.reply().await
    }
}

/// A request to be sent.
#[derive(Clone)]
pub(crate) struct Post {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

impl Post {
    /// A body and the headers every request has.
    pub(crate) fn body(body: impl Into<String>) -> Self {
        let headers =
            [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        Self {
            method: "POST",
            path: "/mcp".into(),
            headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            body: body.into(),
        }
    }

    /// A request of the envelope era, with everything it needs.
    pub(crate) fn envelope(method: &str, mut params: Value) -> Self {
        let named =
            params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let own = params.get("_meta").cloned();
        params["_meta"] = meta();
        if let Some(Value::Object(own)) = own {
            params["_meta"].as_object_mut().unwrap().extend(own);
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let post = Self::body(body.to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        match named {
            Some(name) => post.header("Mcp-Name", &name),
            None => post,
        }
    }

    pub(crate) fn tool(name: &str) -> Self {
        Self::envelope("tools/call", json!({"name": name, "_meta": {"progressToken": 7}}))
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let has = |wanted: &str| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if !has("host") {
            head.extend(["host: ", &address.to_string(), "\r\n"]);
        }
        if !has("content-length") && !has("transfer-encoding") {
            head.extend(["content-length: ", &self.body.len().to_string(), "\r\n"]);
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| value != "\0") {
            head.extend([name, ": ", value, "\r\n"]);
        }
        (head + "\r\n" + &self.body).into_bytes()
    }
}

/// A client of the handshake era, with its session.
pub(crate) struct Client<'a> {
    pub(crate) site: &'a Site,
    pub(crate) id: String,
    pub(crate) version: &'static str,
}

impl<'a> Client<'a> {
    pub(crate) async fn open(site: &'a Site) -> Self {
        Self::open_at(site, "2025-11-25").await
    }

    pub(crate) async fn open_at(site: &'a Site, version: &'static str) -> Self {
        let reply = site.post(&Self::handshake(version)).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], version, "{}", reply.text());
        let id = reply.header("mcp-session-id").expect("a session").to_owned();
        let client = Self { site, id, version };
        let reply = client.tell("notifications/initialized", &json!({})).await;
        assert_eq!((reply.status, reply.text().as_str()), (202, ""));
        client
    }

    pub(crate) fn handshake(version: &str) -> Post {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"},
        });
        Post::body(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string())
    }

    /// A body in this session.
    pub(crate) fn body(&self, body: &Value) -> Post {
        Post::body(body.to_string())
            .header("Mcp-Session-Id", &self.id)
            .header("MCP-Protocol-Version", self.version)
    }

    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, params: &Value) -> Post {
        self.body(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}))
    }

    pub(crate) fn tool(&self, id: impl Into<Value>, name: &str) -> Post {
        self.request(id, "tools/call", &json!({"name": name, "_meta": {"progressToken": 7}}))
    }

    pub(crate) async fn call(&self, id: impl Into<Value>, name: &str) -> Reply {
        self.site.post(&self.tool(id, name)).await
    }

    pub(crate) async fn tell(&self, method: &str, params: &Value) -> Reply {
        self.site.post(&self.body(&json!({"jsonrpc": "2.0", "method": method, "params": params}))).await
    }

    pub(crate) fn get(&self) -> Post {
        let mut get = self.body(&json!(null)).method("GET").without("content-type").without("accept");
        get.body.clear();
        get.header("accept", "text/event-stream")
    }

    pub(crate) fn delete(&self) -> Post {
        let mut delete = self.body(&json!(null)).method("DELETE").without("content-type");
        delete.body.clear();
        delete
    }

    /// Opens the standalone stream and reads its head.
    pub(crate) async fn listen(&self) -> Wire {
        let mut wire = self.site.connect().await;
        wire.send(&self.get().bytes(self.site.address)).await;
        let head = wire.head().await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        wire
    }

    /// Sends a call whose response is a stream, and reads its head.
    pub(crate) async fn stream(&self, id: impl Into<Value>, name: &str) -> Wire {
        let mut wire = self.site.connect().await;
        wire.send(&self.tool(id, name).bytes(self.site.address)).await;
        let head = wire.head().await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("mcp-session-id"), Some(self.id.as_str()));
        wire
    }
}

/// An event of a stream: its fields, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SentEvent {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl SentEvent {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// A body in one piece.
pub(crate) struct Text(Option<Bytes>);

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self(Some(Bytes::copy_from_slice(text.as_bytes())))
    }
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }
}

/// A connection.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    rest: Vec<u8>,
    /// Events that arrived with the last one.
    pending: String,
    /// The length of a body that is about to be read, if it has one.
    length: Option<usize>,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{:?}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{}", self.text()))
    }

    /// The messages of a stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.text())
    }
}

pub(crate) fn events(text: &str) -> Vec<Value> {
    text.split("\r\n\r\n")
        .filter_map(|event| event.strip_prefix("event: message\r\ndata: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

impl Wire {
    pub(crate) fn over(stream: TcpStream) -> Self {
        Self { stream, rest: Vec::new(), pending: String::new(), length: None }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Reads more bytes. `false` at the end.
    pub(crate) async fn fill(&mut self) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        let read = tokio::time::timeout(Duration::from_secs(100), self.stream.read(&mut buffer));
        let count = read.await.expect("an answer in time").unwrap_or(0);
        self.rest.extend_from_slice(&buffer[..count]);
        count > 0
    }

    async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.rest.windows(mark.len()).position(|part| part == mark) {
                let after = self.rest.split_off(at + mark.len());
                return Some(std::mem::replace(&mut self.rest, after));
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.rest.len() < count {
            assert!(self.fill().await, "the body ends early");
        }
        let after = self.rest.split_off(count);
        std::mem::replace(&mut self.rest, after)
    }

    /// Reads the head of a response. `None` if the connection ends first.
    pub(crate) async fn head(&mut self) -> Option<Reply> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect::<HashMap<_, _>>();
        self.length = headers.get("content-length").map(|length: &String| length.parse().unwrap());
        Some(Reply { status, headers, body: Vec::new() })
    }

    /// Reads the next chunk of a body. `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        if let Some(length) = self.length {
            self.length = Some(0);
            return if length > 0 { Some(self.exactly(length).await) } else { None };
        }
        let size = self.until(b"\r\n").await?;
        let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
        let chunk = self.exactly(size).await;
        self.exactly(2).await;
        (size > 0).then_some(chunk)
    }

    pub(crate) async fn maybe_reply(&mut self) -> Option<Reply> {
        let mut reply = self.head().await?;
        if let Some(length) = reply.header("content-length") {
            reply.body = self.exactly(length.parse().unwrap()).await;
        } else if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk().await {
                reply.body.extend(chunk);
            }
        }
        Some(reply)
    }

    pub(crate) async fn reply(&mut self) -> Reply {
        self.maybe_reply().await.expect("a response")
    }

    /// Reads the next event of a stream and skips comments. `None` at its end.
    pub(crate) async fn event(&mut self) -> Option<SentEvent> {
        loop {
            let chunk = if self.pending.is_empty() {
                String::from_utf8(self.chunk().await?).unwrap()
            } else {
                std::mem::take(&mut self.pending)
            };
            let (first, rest) = chunk.split_once("\r\n\r\n").expect("whole events");
            rest.clone_into(&mut self.pending);
            let Some(event) = parse_event(first) else { continue };
            return Some(event);
        }
    }

    /// Reads everything. Returns once the server has closed the connection.
    pub(crate) async fn is_closed(&mut self) -> bool {
        while self.fill().await {}
        true
    }
}

/// Sends a request to a service without a socket.
pub(crate) async fn ask(
    service: &StreamableHttp,
    post: &Post,
    principal: Option<&Arc<Principal>>,
) -> http::Response<duplexer_http::ResponseBody> {
    let mut request = Request::builder().method(post.method).uri(&post.path).header("host", "localhost");
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    let mut request = request.body(Text::new(&post.body)).unwrap();
    if let Some(principal) = principal {
        request.extensions_mut().insert(Arc::clone(principal));
    }
    service.clone().call(request).await.unwrap()
}

/// A service without a socket.
pub(crate) fn mounted(
    configure: impl FnOnce(StreamableHttpBuilder) -> StreamableHttpBuilder,
) -> (StreamableHttp, Arc<Stage>) {
    let stage = Arc::new(Stage::default());
    (configure(StreamableHttp::builder(server(&stage))).build().unwrap(), stage)
}

/// Opens a session and confirms it.
pub(crate) async fn open(service: &StreamableHttp, principal: Option<&Arc<Principal>>) -> String {
    let reply = ask(service, &Client::handshake("2025-11-25"), principal).await;
    let session = reply.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let confirmed = Post::body(confirmed.to_string()).header("mcp-session-id", &session);
    assert_eq!(ask(service, &confirmed, principal).await.status(), 202);
    session
}

/// A call of a session.
pub(crate) fn call_in(session: &str, id: impl Into<Value>, tool: &str) -> Post {
    let params = json!({"name": tool});
    let body = json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params});
    Post::body(body.to_string()).header("mcp-session-id", session)
}

/// A call of a session whose progress is reported.
pub(crate) fn progress_in(session: &str, id: impl Into<Value>, tool: &str) -> Post {
    let params = json!({"name": tool, "_meta": {"progressToken": 7}});
    let body = json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params});
    Post::body(body.to_string()).header("mcp-session-id", session)
}

/// The next piece of a body. `None` at its end, or if it breaks.
pub(crate) async fn frame(body: &mut duplexer_http::ResponseBody) -> Option<Bytes> {
    let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    frame.ok().and_then(|frame| frame.into_data().ok())
}

/// The rest of a body.
pub(crate) async fn text_of(mut body: duplexer_http::ResponseBody) -> String {
    let mut text = Vec::new();
    while let Some(data) = frame(&mut body).await {
        text.extend_from_slice(&data);
    }
    String::from_utf8(text).unwrap()
}

/// An operation of an event store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Append,
    Read,
    Attach,
    Forget,
    Other,
}

type Hook = Box<dyn Fn(Operation) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

/// An event store that runs a hook before every operation.
pub(crate) struct Hooked {
    inner: MemoryEventStore,
    hook: Hook,
}

impl Hooked {
    pub(crate) fn new(
        hook: impl Fn(Operation) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { inner: MemoryEventStore::new(), hook: Box::new(hook) })
    }

    fn run<'a, T: Send + 'a>(
        &'a self,
        operation: Operation,
        inner: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let hook = (self.hook)(operation);
        Box::pin(async move {
            hook.await?;
            inner.await
        })
    }
}

impl EventStore for Hooked {
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        self.run(Operation::Append, async move { self.inner.append(stream, batch).await })
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>> {
        self.run(Operation::Read, async move { self.inner.read(stream, after, at_most).await })
    }

    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>> {
        self.run(Operation::Attach, async move { self.inner.attach(stream, attach).await })
    }

    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(Operation::Other, async move { self.inner.detach(stream, reader, received).await })
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>> {
        self.run(Operation::Other, async move { self.inner.conclude(stream, writer, last).await })
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.run(Operation::Forget, async move { self.inner.forget(session).await })
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        self.inner.watch(stream)
    }
}

/// The events of a body.
pub(crate) struct Events {
    body: duplexer_http::ResponseBody,
    pending: String,
}

impl Events {
    pub(crate) fn of(reply: http::Response<duplexer_http::ResponseBody>) -> Self {
        assert_eq!(reply.status(), 200);
        assert_eq!(reply.headers()["content-type"], "text/event-stream");
        Self { body: reply.into_body(), pending: String::new() }
    }

    /// Returns the next event, without comments. `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<SentEvent> {
        loop {
            if let Some((first, rest)) = self.pending.split_once("\r\n\r\n") {
                let (event, read) = (parse_event(first), self.pending.len() - rest.len());
                self.pending.drain(..read);
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk = frame(&mut self.body).await?;
            self.pending.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Returns the next message, without events that have none. `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.next().await?;
            if !event.data.is_empty() {
                return Some(event.json());
            }
        }
    }
}

/// Parses an event. `None` for a comment.
fn parse_event(text: &str) -> Option<SentEvent> {
    if text.starts_with(':') {
        return None;
    }
    let mut event = SentEvent::default();
    for line in text.split("\r\n") {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match name {
            "id" => event.id = Some(value.into()),
            "retry" => event.retry = Some(value.into()),
            "event" => event.name = value.into(),
            "data" => event.data = value.into(),
            _ => {}
        }
    }
    Some(event)
}
