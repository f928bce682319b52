//! One connection to a server, seen as the frames that go over it.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use duplexer_core::dispatch::{DispatchOptions, RunError};
use duplexer_core::transport::{TransportContext, lines};
use duplexer_http::{Builder, Handshake, Responses, StreamableHttp};
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

/// Longer than anything takes; a test that waits for so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A connection in raw frames. Whatever went over it is printed when its test fails.
pub struct Wire {
    link: Link,
    lines: Lines<BufReader<Reader>>,
    writer: Option<Writer>,
    served: Served,
    revision: String,
    last_id: i64,
    /// Read while waiting for something else.
    aside: VecDeque<Value>,
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
    pub fn in_order(&self) -> bool {
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

    /// A server within this process; nobody ends its lifespans.
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

    fn post(link: Link, service: Builder, form: Responses) -> Self {
        let ((there, here), (forth, back)) = (directed(Link::Memory), directed(Link::Memory));
        let service = service.responses(form).build().unwrap();
        let mut runs = JoinSet::new();
        runs.spawn(http::carry(service, form, there, back));
        Self::new(link, forth, here, Served::Here(runs))
    }

    pub fn spawn(stderr: Stdio) -> Self {
        Self::spawn_with(&[], stderr)
    }

    /// The server's process with arguments that make it another server.
    pub fn spawn_with(arguments: &[&str], stderr: Stdio) -> Self {
        Self::spawn_program(env!("CARGO_BIN_EXE_stdio-server"), arguments, stderr)
    }

    /// A server process; panics on its way are none of this test's output.
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
            aside: VecDeque::new(),
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

    /// Whether the server remembers this client from one request to the next.
    pub fn is_remembered(&self) -> bool {
        self.link.remembers(&self.revision)
    }

    /// Speaks this revision from now on; shakes hands first where it has that.
    pub async fn open(&mut self, revision: &str) {
        self.open_as(revision, json!({})).await;
    }

    /// The same as a client that can do something. In the envelope era every request says so itself.
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

    /// Not recorded: it may be large, and need not be text.
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

    /// Sends a request with what its era needs, and gives its id.
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

    /// Sends a request and waits for its answer; what comes before it can be read afterwards.
    pub async fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(id).await
    }

    pub async fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let is_it = |frame: &Value| frame.get("method").is_none() && frame.get("id") == Some(&id);
        if let Some(at) = self.aside.iter().position(is_it) {
            return self.aside.remove(at).unwrap();
        }
        loop {
            let frame = self.read().await.unwrap_or_else(|| panic!("the end instead of an answer to {id}"));
            if is_it(&frame) {
                return frame;
            }
            self.aside.push_back(frame);
        }
    }

    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The error as code, message and data.
    pub async fn error(&mut self, method: &str, params: Value) -> (i64, String, Value) {
        let answer = self.answer(method, params).await;
        error_of(&answer)
    }

    pub async fn tool(&mut self, name: &str) -> Value {
        self.answer("tools/call", json!({ "name": name })).await
    }

    /// The text a tool of the fixture answers with.
    pub async fn tool_text(&mut self, name: &str, meta: Value) -> String {
        let result = self.result("tools/call", json!({ "name": name, "_meta": meta })).await;
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Until so many calls of the fixture's `wait` have begun: over HTTP requests overtake each other.
    pub async fn until_waiting(&mut self, count: usize) {
        while self.tool_text("waiting", json!({})).await != count.to_string() {}
    }

    /// The next frame, of those put aside first.
    pub async fn next(&mut self) -> Value {
        if let Some(frame) = self.aside.pop_front() {
            return frame;
        }
        self.read().await.expect("a frame")
    }

    /// What came before an answer that has been waited for.
    pub fn taken_aside(&mut self) -> Vec<Value> {
        self.aside.drain(..).collect()
    }

    /// So many frames that came before an answer or still come: over HTTP what is told beside a request has a stream of its
    /// own and keeps no order with the others.
    pub async fn told(&mut self, count: usize) -> Vec<Value> {
        let mut told = self.taken_aside();
        while told.len() < count {
            told.push(self.next().await);
        }
        told
    }

    /// Ends the input after these requests have been cancelled. A stream is silent about them; over HTTP a response can only
    /// end with an answer, which says so.
    pub async fn end_with_cancelled(&mut self, ids: &[i64]) {
        let (rest, ended) = self.finish().await;
        assert!(ended.in_order(), "{ended:?}");
        let mut answered: Vec<_> =
            rest.iter().map(|frame| (frame["id"].as_i64(), error_of(frame).0)).collect();
        answered.sort_unstable();
        let expected: Vec<_> = ids.iter().map(|id| (Some(*id), -32800)).collect();
        assert_eq!(answered, if self.link.is_http() { expected } else { Vec::new() });
    }

    async fn read(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time").unwrap()?;
        self.transcript.push(format!("<- {line}"));
        let frame = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        frames::judge(&frame);
        Some(frame)
    }

    /// Ends the input and gives everything that still comes, and how the server ended.
    pub async fn finish(&mut self) -> (Vec<Value>, Ended) {
        self.transcript.push("-> end".to_owned());
        self.writer = None;
        self.rest().await
    }

    /// The way in, for somebody who writes while this reads.
    pub fn take_writer(&mut self) -> Writer {
        self.writer.take().expect("it has not ended")
    }

    /// Everything that still comes until the server ends of itself.
    pub async fn rest(&mut self) -> (Vec<Value>, Ended) {
        let mut frames: Vec<_> = self.aside.drain(..).collect();
        while let Some(frame) = self.read().await {
            frames.push(frame);
        }
        let ended = match &mut self.served {
            Served::Here(runs) => Ended::Run(runs.join_next().await.unwrap().unwrap()),
            Served::Child(child) => Ended::Exit(timeout(PATIENCE, child.wait()).await.unwrap().unwrap()),
        };
        (frames, ended)
    }

    /// The id of the server's process.
    pub fn pid(&self) -> Option<u32> {
        match &self.served {
            Served::Child(child) => child.id(),
            Served::Here(_) => None,
        }
    }

    /// What the server's process prints beside the protocol, if it was spawned with a pipe for that.
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

/// Params of a handshake.
#[expect(clippy::needless_pass_by_value, reason = "callers write it down in place")]
pub fn initialize(revision: &str, capabilities: Value) -> Value {
    let client = json!({ "name": "wire", "version": "0" });
    json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client })
}

/// `_meta` of a request of the envelope era.
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
