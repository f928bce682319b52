//! A server process on a socket, and a client that sends exactly the given bytes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{echo, request};
use crate::ENVELOPE;

/// Maximum wait of a test; a longer wait is a failure.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Raises the limit of descriptors to its maximum: some tests open more connections than the usual limit.
fn many_descriptors() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    }
}

pub struct Site {
    pub child: Child,
    pub address: SocketAddr,
}

impl Site {
    /// Starts a server without sessions.
    pub async fn open() -> Self {
        Self::start(&["http"]).await
    }

    /// Starts a server without sessions that offers a directory.
    pub async fn offering(directory: &Path) -> Self {
        Self::start(&["http", directory.to_str().expect("a path in UTF-8")]).await
    }

    pub async fn with_sessions() -> Self {
        Self::start(&["sessions"]).await
    }

    /// Starts a server with a transport and settings, which inherits the maximum number of descriptors.
    pub async fn start(arguments: &[&str]) -> Self {
        many_descriptors();
        let mut child = Command::new(env!("CARGO_BIN_EXE_attacked"))
            .args(arguments)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            timeout(TEST_TIMEOUT, lines.next_line()).await.expect("a start").unwrap().expect("an address");
        Self { child, address: address.parse().unwrap() }
    }

    pub async fn connect(&self) -> Socket {
        Socket { stream: TcpStream::connect(self.address).await.unwrap(), rest: Vec::new() }
    }

    /// Sends one request on a new connection.
    pub async fn send(&self, post: &Post) -> Reply {
        self.exchange(&post.bytes()).await.expect("a response")
    }

    /// Sends raw bytes on a new connection; the server can reject them by closing it.
    pub async fn exchange(&self, bytes: &[u8]) -> Option<Reply> {
        let mut socket = self.connect().await;
        // The server can reject the request before it has read all of it.
        let _ = socket.stream.write_all(bytes).await;
        socket.reply().await
    }

    /// Checks that a well-behaved client is still served, in both eras.
    pub async fn serves(&self) {
        for revision in super::ERAS {
            let reply = self.send(&Post::of(revision, &echo(revision, 1, "honest"))).await;
            assert_eq!((reply.status, reply.text_of_tool()), (200, "honest".to_owned()), "{}", reply.body);
        }
    }
}

/// A request under construction.
#[derive(Clone)]
pub struct Post {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Post {
    /// Builds a request with the headers that match its body.
    pub fn of(revision: &str, frame: &Value) -> Self {
        let post = Self::raw(revision, frame.to_string());
        let named = frame["params"]["name"].as_str().or_else(|| frame["params"]["uri"].as_str());
        match (frame["method"].as_str(), named) {
            (Some(method), Some(name)) => post.header("Mcp-Method", method).header("Mcp-Name", name),
            (Some(method), None) => post.header("Mcp-Method", method),
            (None, _) => post,
        }
    }

    /// Builds a request for any path, without headers.
    pub fn at(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self { method: "POST", path: path.into(), headers: Vec::new(), body: body.into() }
    }

    /// Builds a request with any body and the headers that every request has.
    pub fn raw(revision: &str, body: impl Into<String>) -> Self {
        let post = Self::at("/mcp", body);
        post.header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", revision)
    }

    pub fn tool(revision: &str, name: &str) -> Self {
        let params = json!({ "name": name, "_meta": { "progressToken": 1 } });
        Self::of(revision, &request(revision, 1, "tools/call", params))
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub fn instead(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    pub fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub fn head(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        format!("{} {} HTTP/1.1\r\n{}", self.method, self.path, headers.collect::<String>())
    }

    pub fn bytes(&self) -> Vec<u8> {
        format!("{}content-length: {}\r\n\r\n{}", self.head(), self.body.len(), self.body).into_bytes()
    }
}

/// A client connection.
pub struct Socket {
    pub stream: TcpStream,
    rest: Vec<u8>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HashMap<String, String>,
    pub body: String,
}

impl Reply {
    /// Returns the frames of the response, from a JSON body or an event stream.
    pub fn frames(&self) -> Vec<Value> {
        let lines = self.body.lines();
        let data = lines.filter_map(|line| line.strip_prefix("data: "));
        let data: Vec<_> = data.filter(|data| !data.is_empty()).collect();
        let texts = if data.is_empty() { vec![&*self.body] } else { data };
        let read = |text| serde_json::from_str(text).unwrap_or_else(|_| panic!("{:?}", self.body));
        let frames: Vec<Value> = texts.into_iter().map(read).collect();
        frames.iter().for_each(crate::frames::check);
        frames
    }

    pub fn answer(&self) -> Value {
        self.frames().pop().expect("a frame")
    }

    pub fn code(&self) -> i64 {
        self.answer()["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {}", self.body))
    }

    pub fn text_of_tool(&self) -> String {
        self.answer()["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }
}

impl Socket {
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn fill(&mut self) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        let read = timeout(TEST_TIMEOUT, self.stream.read(&mut buffer)).await;
        let count = read.expect("an answer in time").unwrap_or(0);
        self.rest.extend_from_slice(&buffer[..count]);
        count > 0
    }

    /// Reads everything up to and including `mark`; returns `None` if the connection ends first.
    pub async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
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

    /// Reads the next complete response; returns `None` if the connection ends first.
    pub async fn reply(&mut self) -> Option<Reply> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: HashMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut body = Vec::new();
        if let Some(length) = headers.get("content-length") {
            body = self.exactly(length.parse().unwrap()).await;
        } else if headers.contains_key("transfer-encoding") {
            loop {
                let size = String::from_utf8(self.until(b"\r\n").await?).unwrap();
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                body.extend(self.exactly(size + 2).await);
                body.truncate(body.len() - 2);
                if size == 0 {
                    break;
                }
            }
        }
        Some(Reply { status, headers, body: String::from_utf8(body).unwrap() })
    }

    /// Reads the remaining bytes and returns whether the server closes the connection.
    pub async fn is_closed(&mut self) -> bool {
        while self.fill().await {}
        true
    }
}

/// Starts a call, waits for its first message, so that it is known to run, and returns its connection.
pub async fn running(site: &Site, revision: &str, tool: &str) -> Socket {
    let mut socket = site.connect().await;
    socket.send(&Post::tool(revision, tool).bytes()).await;
    socket.until(b"notifications/progress").await.expect("a first message");
    socket
}

/// Opens a subscription stream and waits for its acknowledgement.
pub async fn listening(site: &Site) -> Socket {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut socket = site.connect().await;
    socket.send(&Post::of(ENVELOPE, &request(ENVELOPE, "l", "subscriptions/listen", filter)).bytes()).await;
    socket.until(b"notifications/subscriptions/acknowledged").await.expect("an acknowledgement");
    socket
}
