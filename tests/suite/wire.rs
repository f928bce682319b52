//! A test connection to a server, at the level of frames.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use duplexer_core::dispatch::{DispatchOptions, RunError};
use duplexer_core::transport::{TransportContext, lines};
use duplexer_http::{Handshake, Responses, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::driver::StreamServer;
use duplexer_server::{RunningServer, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::matrix::Link;
use crate::{ENVELOPE, frames, http};

/// Maximum wait of a test; a longer wait is a failure.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection in raw frames. All frames are printed when the test fails.
pub struct Wire {
    link: Link,
    lines: Lines<BufReader<Reader>>,
    writer: Option<Writer>,
    served: Served,
    revision: String,
    last_id: i64,
    /// Frames read while waiting for another one.
    buffered: VecDeque<Value>,
    transcript: Vec<String>,
}

enum Served {
    Here(JoinSet<Result<(), RunError>>),
    Child(Box<Child>),
}

/// How a server ended.
#[derive(Debug)]
pub enum Ended {
    Run(Result<(), RunError>),
    Exit(ExitStatus),
}

impl Ended {
    pub fn is_orderly(&self) -> bool {
        match self {
            Self::Run(ended) => ended.is_ok(),
            Self::Exit(status) => status.success(),
        }
    }
}

impl Wire {
    pub async fn fixture(link: Link) -> Self {
        match link {
            Link::Child => Self::spawn(Stdio::null()),
            _ => Self::connect(link, duplexer_tests::server()).await,
        }
    }

    /// Connects to a server within this process, whose lifespans are never ended.
    pub async fn connect(link: Link, server: Server) -> Self {
        match link {
            Link::HttpJson => Self::post(link, StreamableHttp::builder(server), Responses::JsonOnly),
            Link::HttpStream => Self::post(link, StreamableHttp::builder(server), Responses::Streaming),
            Link::HttpStateless => {
                let stateless = StreamableHttp::builder(server).handshake(Handshake::Stateless);
                Self::post(link, stateless, Responses::Streaming)
            }
            Link::Memory | Link::Pipe | Link::Child => {
                let running = server.start().await.unwrap();
                Self::connect_to(link, &running, DispatchOptions::default())
            }
        }
    }

    pub fn connect_to(link: Link, running: &RunningServer, options: DispatchOptions) -> Self {
        let ((there, here), (forth, back)) = (directed(link), directed(link));
        let context = TransportContext::stream("test");
        let transport = lines::over(there, back, context, lines::DEFAULT_LIMIT);
        let mut runs = JoinSet::new();
        runs.spawn(StreamServer::new(running, transport, options).0.run());
        Self::new(link, forth, here, Served::Here(runs))
    }

    fn post(link: Link, service: StreamableHttpBuilder, form: Responses) -> Self {
        let ((there, here), (forth, back)) = (directed(Link::Memory), directed(Link::Memory));
        let service = service.responses(form).build().unwrap();
        let mut runs = JoinSet::new();
        runs.spawn(http::carry(service, form, there, back));
        Self::new(link, forth, here, Served::Here(runs))
    }

    pub fn spawn(stderr: Stdio) -> Self {
        Self::spawn_with(&[], stderr)
    }

    /// Starts the server process with arguments that select another server.
    pub fn spawn_with(arguments: &[&str], stderr: Stdio) -> Self {
        Self::spawn_program(env!("CARGO_BIN_EXE_stdio-server"), arguments, stderr)
    }

    /// Starts a server process without backtraces, to keep expected panics short in the test output.
    pub fn spawn_program(program: &str, arguments: &[&str], stderr: Stdio) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self::new(Link::Child, Box::new(reader), Box::new(writer), Served::Child(Box::new(child)))
    }

    fn new(link: Link, reader: Reader, writer: Writer, served: Served) -> Self {
        Self {
            link,
            lines: BufReader::new(reader).lines(),
            writer: Some(writer),
            served,
            revision: String::new(),
            last_id: 0,
            buffered: VecDeque::new(),
            transcript: Vec::new(),
        }
    }

    pub fn revision(&self) -> &str {
        &self.revision
    }

    pub fn is_enveloped(&self) -> bool {
        self.revision == ENVELOPE
    }

    pub fn link(&self) -> Link {
        self.link
    }

    /// Returns whether the server keeps state of this client between requests.
    pub fn is_stateful(&self) -> bool {
        self.link.is_stateful(&self.revision)
    }

    /// Selects a revision; performs the handshake where the revision has one.
    pub async fn open(&mut self, revision: &str) {
        self.open_as(revision, json!({})).await;
    }

    /// Like `open`, with client capabilities. In the envelope era the test must put them into every request.
    pub async fn open_as(&mut self, revision: &str, capabilities: Value) {
        revision.clone_into(&mut self.revision);
        if !self.is_enveloped() {
            let answer = self.answer("initialize", initialize(revision, capabilities)).await;
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            self.notify("notifications/initialized", json!({})).await;
        }
    }

    pub async fn line(&mut self, line: &str) {
        self.transcript.push(format!("-> {line}"));
        let writer = self.writer.as_mut().expect("nothing is sent after the end");
        writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        writer.flush().await.unwrap();
    }

    /// Sends raw bytes, which are not recorded: they can be large and need not be text.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        let writer = self.writer.as_mut().expect("nothing is sent after the end");
        writer.write_all(bytes).await.unwrap();
        writer.flush().await.unwrap();
    }

    pub async fn send(&mut self, frame: Value) {
        self.line(&frame.to_string()).await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request with the members that its era requires, and returns its id.
    pub async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        if self.is_enveloped() {
            let envelope = envelope(ENVELOPE);
            let meta = params["_meta"].take();
            params["_meta"] = merged(envelope, meta);
        }
        self.last_id += 1;
        let id = self.last_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Sends a request and waits for its response; earlier frames are buffered.
    pub async fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(id).await
    }

    pub async fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let is_it = |frame: &Value| frame.get("method").is_none() && frame.get("id") == Some(&id);
        if let Some(at) = self.buffered.iter().position(is_it) {
            return self.buffered.remove(at).unwrap();
        }
        loop {
            let frame = self.read().await.unwrap_or_else(|| panic!("the end instead of an answer to {id}"));
            if is_it(&frame) {
                return frame;
            }
            self.buffered.push_back(frame);
        }
    }

    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the error as code, message and data.
    pub async fn error(&mut self, method: &str, params: Value) -> (i64, String, Value) {
        let answer = self.answer(method, params).await;
        error_of(&answer)
    }

    pub async fn tool(&mut self, name: &str) -> Value {
        self.answer("tools/call", json!({ "name": name })).await
    }

    /// Returns the text result of a tool of the fixture.
    pub async fn tool_text(&mut self, name: &str, meta: Value) -> String {
        let result = self.result("tools/call", json!({ "name": name, "_meta": meta })).await;
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits until `count` calls of the fixture's `wait` have started: over HTTP, requests can overtake each other.
    pub async fn until_waiting(&mut self, count: usize) {
        while self.tool_text("waiting", json!({})).await != count.to_string() {}
    }

    /// Returns the next frame, buffered frames first.
    pub async fn next(&mut self) -> Value {
        if let Some(frame) = self.buffered.pop_front() {
            return frame;
        }
        self.read().await.expect("a frame")
    }

    /// Takes the frames that arrived before an awaited response.
    pub fn take_buffered(&mut self) -> Vec<Value> {
        self.buffered.drain(..).collect()
    }

    /// Returns `count` buffered or later frames. Over HTTP, notifications outside a request have their own stream and no
    /// order relative to the others.
    pub async fn received(&mut self, count: usize) -> Vec<Value> {
        let mut received = self.take_buffered();
        while received.len() < count {
            received.push(self.next().await);
        }
        received
    }

    /// Ends the input after these requests have been cancelled. A stream carries no response to them; an HTTP response must
    /// end with an error, which reports the cancellation.
    pub async fn end_with_cancelled(&mut self, ids: &[i64]) {
        let (rest, ended) = self.finish().await;
        assert!(ended.is_orderly(), "{ended:?}");
        let mut answered: Vec<_> =
            rest.iter().map(|frame| (frame["id"].as_i64(), error_of(frame).0)).collect();
        answered.sort_unstable();
        let expected: Vec<_> = ids.iter().map(|id| (Some(*id), -32800)).collect();
        assert_eq!(answered, if self.link.is_http() { expected } else { Vec::new() });
    }

    async fn read(&mut self) -> Option<Value> {
        let line = timeout(TEST_TIMEOUT, self.lines.next_line()).await.expect("a line in time").unwrap()?;
        self.transcript.push(format!("<- {line}"));
        let frame = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        frames::check(&frame);
        Some(frame)
    }

    /// Ends the input and returns the remaining frames, and how the server ended.
    pub async fn finish(&mut self) -> (Vec<Value>, Ended) {
        self.transcript.push("-> end".to_owned());
        self.writer = None;
        self.rest().await
    }

    /// Takes the writer, for a task that writes while the test reads.
    pub fn take_writer(&mut self) -> Writer {
        self.writer.take().expect("it has not ended")
    }

    /// Returns the remaining frames until the server ends by itself.
    pub async fn rest(&mut self) -> (Vec<Value>, Ended) {
        let mut frames: Vec<_> = self.buffered.drain(..).collect();
        while let Some(frame) = self.read().await {
            frames.push(frame);
        }
        let ended = match &mut self.served {
            Served::Here(runs) => Ended::Run(runs.join_next().await.unwrap().unwrap()),
            Served::Child(child) => Ended::Exit(timeout(TEST_TIMEOUT, child.wait()).await.unwrap().unwrap()),
        };
        (frames, ended)
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> Option<u32> {
        match &self.served {
            Served::Child(child) => child.id(),
            Served::Here(_) => None,
        }
    }

    /// Returns the lines of the server's standard error, if it was spawned with a pipe for it.
    pub fn stderr(&mut self) -> Lines<BufReader<ChildStderr>> {
        match &mut self.served {
            Served::Child(child) => BufReader::new(child.stderr.take().unwrap()).lines(),
            Served::Here(_) => panic!("a server in this process"),
        }
    }

    pub fn transcript(&self) -> String {
        self.transcript.join("\n")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?} {}\n{}", self.link, self.revision, self.transcript());
        }
    }
}

fn directed(link: Link) -> (Reader, Writer) {
    match link {
        Link::Memory => {
            let (reader, writer) = tokio::io::duplex(1 << 16);
            (Box::new(reader), Box::new(writer))
        }
        Link::Pipe => {
            let (writer, reader) = pipe::pipe().unwrap();
            (Box::new(reader), Box::new(writer))
        }
        _ => panic!("{link:?} is no stream within this process"),
    }
}

/// Returns the params of a handshake.
#[expect(clippy::needless_pass_by_value, reason = "callers write it down in place")]
pub fn initialize(revision: &str, capabilities: Value) -> Value {
    let client = json!({ "name": "wire", "version": "0" });
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client })
}

/// Returns the `_meta` of a request of the envelope era.
pub fn envelope(revision: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientInfo": { "name": "wire", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn merged(mut base: Value, over: Value) -> Value {
    if let Value::Object(over) = over {
        for (key, value) in over {
            base[key] = value;
        }
    }
    base
}

pub fn error_of(answer: &Value) -> (i64, String, Value) {
    let error = &answer["error"];
    let code = error["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"));
    (code, error["message"].as_str().unwrap().to_owned(), error["data"].clone())
}
