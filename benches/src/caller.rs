//! Calls of a tool by whole client programs: ours, and a plain one with `reqwest` and `serde_json`.
//!
//! Both check the text of every result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use duplexer::client::{Client, Negotiation, PinnedVersion};
use duplexer_http_client::HttpTransport;
use duplexer_types::version::ProtocolVersion;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::text;

/// Size of the echoed text.
const SIZE: usize = 43;

/// Era of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Every request carries its envelope.
    Envelope,
    /// A handshake opens a session.
    Sessions,
}

impl Era {
    /// Reads the name of an era.
    pub fn read(name: &str) -> Option<Self> {
        match name {
            "envelope" => Some(Self::Envelope),
            "sessions" => Some(Self::Sessions),
            _ => None,
        }
    }

    fn version(self) -> ProtocolVersion {
        match self {
            Self::Envelope => ProtocolVersion::LATEST_ENVELOPE,
            Self::Sessions => ProtocolVersion::LATEST_HANDSHAKE,
        }
    }
}

/// A client with an open session. Clones share it.
#[derive(Clone, Debug)]
pub enum Caller {
    /// The client of this project.
    Ours(Client),
    /// A program without a library for the protocol.
    Plain(Plain),
}

impl Caller {
    /// Opens a session of our client.
    pub async fn ours(era: Era, url: &str) -> Result<Self, String> {
        let negotiation = match era {
            Era::Envelope => Negotiation::Pinned(PinnedVersion::new(era.version().as_str())),
            Era::Sessions => Negotiation::Handshake,
        };
        let transport = HttpTransport::new(url).map_err(|error| error.to_string())?;
        let opened = Client::builder("bench-client", "1").negotiation(negotiation).connect(transport).await;
        opened.map(Self::Ours).map_err(|error| error.to_string())
    }

    /// Opens a session of the plain program.
    pub async fn plain(era: Era, url: &str) -> Result<Self, String> {
        Plain::open(era, url)
            .await
            .map(Self::Plain)
            .ok_or_else(|| "the session could not be opened".to_owned())
    }

    /// Makes this many calls, one after another. Fails if a result is not the echoed text.
    pub async fn call(&self, times: usize) -> Result<(), String> {
        let text = text::of(SIZE);
        for _ in 0..times {
            let arguments = json!({"text": text});
            let echoed = match self {
                Self::Ours(client) => {
                    let result = client.call_tool("echo", &arguments).await;
                    let result = result.map_err(|error| error.to_string())?;
                    result.content.first().and_then(|content| Some(content.as_text()? == text))
                }
                Self::Plain(plain) => {
                    let result = plain.call(&arguments).await;
                    result.and_then(|result| Some(result["content"][0]["text"].as_str()? == text))
                }
            };
            if echoed != Some(true) {
                return Err("a result is not the text that was sent".to_owned());
            }
        }
        Ok(())
    }
}

/// `reqwest` and `serde_json`, with what a request must have.
#[derive(Clone, Debug)]
pub struct Plain {
    client: reqwest::Client,
    url: String,
    era: Era,
    /// Headers of every request.
    headers: HeaderMap,
    /// Number of calls so far. Concurrent requests of one session must have different ids.
    calls: Arc<AtomicU64>,
}

impl Plain {
    async fn open(era: Era, url: &str) -> Option<Self> {
        // A transport chooses the library for cryptography, which reqwest asks for.
        HttpTransport::new(url).ok()?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let calls = Arc::default();
        let mut plain = Self { client: reqwest::Client::new(), url: url.to_owned(), era, headers, calls };
        if era == Era::Sessions {
            plain.shake_hands().await?;
        }
        let version = HeaderValue::from_static(era.version().as_str());
        plain.headers.insert(HeaderName::from_static("mcp-protocol-version"), version);
        Some(plain)
    }

    async fn shake_hands(&mut self) -> Option<()> {
        let params = json!({"protocolVersion": self.era.version().as_str(), "capabilities": {},
            "clientInfo": {"name": "bench-client", "version": "1"}});
        let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let opened = self.post(&opening, HeaderMap::new()).await?;
        let session = opened.headers().get("mcp-session-id")?.clone();
        drop(opened.bytes().await.ok()?);
        self.headers.insert(HeaderName::from_static("mcp-session-id"), session);
        let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        drop(self.post(&confirmed, HeaderMap::new()).await?.bytes().await.ok()?);
        Some(())
    }

    async fn post(&self, message: &Value, more: HeaderMap) -> Option<reqwest::Response> {
        let request = self.client.post(&self.url).headers(self.headers.clone()).headers(more);
        let response = request.body(message.to_string()).send().await.ok()?;
        response.status().is_success().then_some(response)
    }

    async fn call(&self, arguments: &Value) -> Option<Value> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let (mut params, mut headers) = (json!({"name": "echo", "arguments": arguments}), HeaderMap::new());
        if self.era == Era::Envelope {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.era.version().as_str(),
                "io.modelcontextprotocol/clientInfo": {"name": "bench-client", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}});
            headers.insert(HeaderName::from_static("mcp-method"), HeaderValue::from_static("tools/call"));
            headers.insert(HeaderName::from_static("mcp-name"), HeaderValue::from_static("echo"));
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let response = self.post(&request, headers).await?;
        let mut response: Value = serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
        Some(response["result"].take())
    }
}
