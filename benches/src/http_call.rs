//! A call through the whole HTTP service in this thread, without a socket: from an `http::Request` to the last byte of
//! its response. The measurement includes building the request.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use duplexer_http::{Handshake, StreamableHttp};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use hyper::body::Body;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

use crate::message::{self, Era};
use crate::server;

/// A service and a request to it.
#[derive(Debug)]
pub struct HttpCall {
    runtime: Runtime,
    service: StreamableHttp,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpCall {
    /// Creates a tool call in the envelope era. `params` are the members of an object, without `_meta`.
    pub fn envelope(tool: &'static str, params: &str) -> Option<Self> {
        let mut call = Self::new(Handshake::Sessions)?;
        call.set("mcp-method", HeaderValue::from_static("tools/call"));
        call.set("mcp-name", HeaderValue::from_static(tool));
        Some(call.asks(Era::Envelope, params))
    }

    /// Creates a tool call in a session of the handshake era.
    pub fn session(params: &str) -> Option<Self> {
        let mut call = Self::without_session()?;
        call.open_session()?;
        Some(call.asks(Era::Handshake, params))
    }

    /// Creates a service with sessions, none of which is open.
    pub fn without_session() -> Option<Self> {
        Self::new(Handshake::Sessions)
    }

    /// Opens a session, and uses it for the next calls.
    pub fn open_session(&mut self) -> Option<()> {
        let mut ignored = Vec::new();
        self.headers.remove("mcp-session-id");
        self.body = Bytes::from_static(message::INITIALIZE.as_bytes());
        let session = self.exchange(&mut ignored)?.get("mcp-session-id")?.clone();
        self.set("mcp-session-id", session);
        self.body = Bytes::from_static(message::INITIALIZED.as_bytes());
        self.exchange(&mut ignored).map(|_| ())
    }

    /// Creates a tool call in the handshake era, without sessions.
    pub fn stateless(params: &str) -> Option<Self> {
        Some(Self::new(Handshake::Stateless)?.asks(Era::Handshake, params))
    }

    fn new(handshake: Handshake) -> Option<Self> {
        let service = StreamableHttp::builder(server::build(server::Offer::default()).ok()?)
            .handshake(handshake)
            .build()
            .ok()?;
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let mut call = Self { runtime, service, headers: HeaderMap::new(), body: Bytes::new() };
        call.set("host", HeaderValue::from_static("localhost"));
        call.set("content-type", HeaderValue::from_static("application/json"));
        call.set("accept", HeaderValue::from_static("application/json, text/event-stream"));
        Some(call)
    }

    fn set(&mut self, name: &'static str, value: HeaderValue) {
        self.headers.insert(HeaderName::from_static(name), value);
    }

    fn asks(mut self, era: Era, params: &str) -> Self {
        let version = match era {
            Era::Envelope => message::ENVELOPE_VERSION,
            Era::Handshake => message::HANDSHAKE_VERSION,
        };
        self.set("mcp-protocol-version", HeaderValue::from_static(version));
        let mut body = Vec::new();
        message::Request { method: "tools/call", params, era, token: Some(1) }.write(1, &mut body);
        self.body = body.into();
        self
    }

    /// Makes the call once; `None` on an error.
    pub fn answer(&mut self, out: &mut Vec<u8>) -> Option<()> {
        self.exchange(out).map(|_| ())
    }

    /// Sends `body`, reads the whole response and returns its headers.
    fn exchange(&mut self, out: &mut Vec<u8>) -> Option<HeaderMap> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static("/mcp");
        *request.headers_mut() = self.headers.clone();
        let service = &mut self.service;
        self.runtime.block_on(async {
            let Ok(response) = service.call(request).await;
            let (head, mut body) = response.into_parts();
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                out.extend_from_slice(frame.ok()?.data_ref()?);
            }
            head.status.is_success().then_some(head.headers)
        })
    }
}
