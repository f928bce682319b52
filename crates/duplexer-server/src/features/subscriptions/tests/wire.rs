//! A client at the level of lines, for tests.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, duplex};
use tokio::net::unix::pipe;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::kernel::driver::StreamServer;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{DispatchOptions, Peer, RunError};
use duplexer_core::transport::{TransportContext, lines};

/// Maximum time that a test waits for a message.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// The transport of the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Over {
    Memory,
    Pipes,
}

impl Over {
    pub(crate) const BOTH: [Self; 2] = [Self::Memory, Self::Pipes];

    /// Connects a stream to a running server.
    pub(crate) fn connect(self, running: &RunningServer) -> Wire {
        self.connect_as(running, TransportContext::stream("test"))
    }

    pub(crate) fn connect_as(self, running: &RunningServer, context: TransportContext) -> Wire {
        match self {
            Self::Memory => {
                let ((a, b), (c, d)) = (duplex(65_536), duplex(65_536));
                Wire::new(running, context, (a, d), (c, b))
            }
            Self::Pipes => {
                let ((b, a), (d, c)) = (pipe::pipe().unwrap(), pipe::pipe().unwrap());
                Wire::new(running, context, (a, d), (c, b))
            }
        }
    }
}

pub(crate) struct Wire {
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub(crate) server: Peer,
    pub(crate) run: JoinSet<Result<(), RunError>>,
}

impl Wire {
    fn new(
        running: &RunningServer,
        context: TransportContext,
        theirs: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
        ours: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    ) -> Self {
        let transport = lines::over(theirs.0, theirs.1, context, lines::DEFAULT_LIMIT);
        let (stream, server) = StreamServer::new(running, transport, DispatchOptions::default());
        let mut run = JoinSet::new();
        run.spawn(stream.run());
        let reader: Box<dyn AsyncRead + Send + Unpin> = Box::new(ours.0);
        Self { lines: BufReader::new(reader).lines(), writer: Some(Box::new(ours.1)), server, run }
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    /// Closes the sending half; reading continues.
    pub(crate) fn close_sending(&mut self) {
        self.writer = None;
    }

    /// Reads the next message, or `None` at the end.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        let line = timeout(TIMEOUT, self.lines.next_line()).await.expect("nothing comes").unwrap();
        line.map(|line| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.read().await.expect("the stream has ended")
    }

    /// Asserts the next message.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: Value) -> impl Future<Output = ()> {
        let location = std::panic::Location::caller();
        async move { assert_eq!(self.next().await, expected, "at {location}") }
    }

    /// Sends a request of the envelope era from a client without capabilities.
    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.ask_with(id, method, params, json!({})).await;
    }

    /// Does the same with more members in `_meta`.
    pub(crate) async fn ask_with(
        &mut self,
        id: impl Into<Value>,
        method: &str,
        mut params: Value,
        meta: Value,
    ) {
        let mut own = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        own.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        params["_meta"] = own;
        self.request(id, method, params).await;
    }

    /// Sends a request verbatim.
    pub(crate) async fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends `initialize` and returns its result.
    pub(crate) async fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
        });
        self.request(0, "initialize", params).await;
        self.next().await["result"].take()
    }

    /// Performs a whole handshake. Later messages are handled after it.
    pub(crate) async fn handshake(&mut self) {
        self.initialize().await;
        self.notify("notifications/initialized", json!({})).await;
    }
}

/// Returns a notification as the server sends it.
pub(crate) fn notification(method: &str, params: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params.into()})
}

/// Returns an error response.
pub(crate) fn error(id: i64, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
