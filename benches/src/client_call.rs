//! Calls of a tool by our client, and by a plain program without any protocol, to a peer that does as little as possible.
//!
//! The peer runs in this thread too: its cost, the same for all, is part of each case.

use std::future::poll_fn;

use duplexer::client::{Client, Negotiation, PinnedVersion};
use duplexer_core::transport::{Frames, Incoming, Transport, memory};
use duplexer_http_client::HttpTransport;
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::lifecycle::DiscoverResult;
use duplexer_types::version::ProtocolVersion;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::text;

/// A caller, and the peer that answers it.
#[derive(Debug)]
pub struct ClientCall {
    runtime: Runtime,
    /// Owns the task of the peer.
    _serving: JoinSet<()>,
    caller: Caller,
    arguments: Value,
}

#[derive(Debug)]
enum Caller {
    Ours(Client),
    /// `reqwest` and `serde_json`, with what a request must have.
    Plain {
        client: reqwest::Client,
        url: String,
        id: u64,
    },
}

impl ClientCall {
    /// Creates a client over an in-memory transport.
    pub fn over_memory() -> Option<Self> {
        Self::new(async |serving| {
            let (near, far) = memory::pair();
            serving.spawn(answer_frames(far));
            Some(Caller::Ours(builder().connect(near).await.ok()?))
        })
    }

    /// Creates a client over HTTP.
    pub fn over_http() -> Option<Self> {
        Self::new(async |serving| {
            let url = listen(serving).await?;
            Some(Caller::Ours(builder().connect(HttpTransport::new(&url).ok()?).await.ok()?))
        })
    }

    /// Creates a program that sends the same requests without a library for the protocol.
    pub fn plain() -> Option<Self> {
        Self::new(async |serving| {
            let url = listen(serving).await?;
            // A transport chooses the library for cryptography, which reqwest asks for.
            HttpTransport::new(&url).ok()?;
            Some(Caller::Plain { client: reqwest::Client::new(), url, id: 0 })
        })
    }

    fn new(make: impl AsyncFnOnce(&mut JoinSet<()>) -> Option<Caller>) -> Option<Self> {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let mut serving = JoinSet::new();
        let caller = runtime.block_on(make(&mut serving))?;
        Some(Self { runtime, _serving: serving, caller, arguments: json!({"text": text::of(43)}) })
    }

    /// Makes one call and appends the text of its result.
    pub fn answer(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let Self { runtime, caller, arguments, .. } = self;
        runtime.block_on(async {
            match caller {
                Caller::Ours(client) => {
                    let result = client.call_tool("echo", &*arguments).await.ok()?;
                    out.extend_from_slice(result.content.first()?.as_text()?.as_bytes());
                }
                Caller::Plain { client, url, id } => {
                    *id += 1;
                    let result = plain_call(client, url, *id, arguments).await?;
                    out.extend_from_slice(result["content"][0]["text"].as_str()?.as_bytes());
                }
            }
            Some(())
        })
    }
}

fn builder() -> duplexer::client::ClientBuilder {
    let version = ProtocolVersion::LATEST_ENVELOPE.as_str();
    let found = DiscoverResult::new([version.to_owned()], ServerCapabilities::new());
    let pinned = Negotiation::Pinned(PinnedVersion::new(version).prior(found));
    Client::builder("bench", "1").negotiation(pinned)
}

async fn plain_call(client: &reqwest::Client, url: &str, id: u64, arguments: &Value) -> Option<Value> {
    let version = ProtocolVersion::LATEST_ENVELOPE.as_str();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"name": "echo", "arguments": arguments, "_meta": meta});
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    let response = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .header("mcp-protocol-version", version)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo")
        .body(request.to_string())
        .send()
        .await
        .ok()?;
    let mut response: Value = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
    Some(response["result"].take())
}

/// Returns the response to a request: its id is found by the text before it.
fn response(request: &str) -> Option<String> {
    let (_, rest) = request.split_once("\"id\":")?;
    let id = rest.split([',', '}']).next()?;
    Some(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{}"}}]}}}}"#,
        "x".repeat(43)
    ))
}

async fn answer_frames(transport: memory::Memory) {
    let (mut reader, mut writer) = transport.split();
    while let Some(Ok(Incoming::Message(message))) = poll_fn(|cx| reader.poll_next(cx)).await {
        let Some(response) = response(&message.text) else { return };
        let mut frames = Frames::default();
        frames.push(response.as_bytes(), None);
        if poll_fn(|cx| writer.poll_write(cx, &mut frames)).await.is_err() {
            return;
        }
    }
}

/// Starts the peer on a socket, and returns its URL.
async fn listen(serving: &mut JoinSet<()>) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.ok()?;
    let url = format!("http://{}/mcp", listener.local_addr().ok()?);
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            connections.spawn(async move {
                // A connection ends when its client is dropped.
                let _ = answer_socket(socket).await;
            });
        }
    });
    Some(url)
}

/// Answers one request after another. A request arrives with its whole body, because it is small.
async fn answer_socket(mut socket: TcpStream) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let mut read = 0;
        let response = loop {
            let count = socket.read(&mut buffer[read..]).await.ok().filter(|count| *count > 0)?;
            read += count;
            let text = std::str::from_utf8(&buffer[..read]).ok()?;
            if let Some((_, body)) = text.split_once("\r\n\r\n")
                && body.ends_with('}')
            {
                break response(body)?;
            }
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            response.len()
        );
        socket.write_all((head + &response).as_bytes()).await.ok()?;
    }
}
