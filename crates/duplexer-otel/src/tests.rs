//! Traced servers, observed through their messages and an in-memory exporter.

mod calls;
mod messages;
mod metrics;

use std::sync::Arc;

use duplexer_core::dispatch::DispatchOptions;
use duplexer_core::transport::{TransportContext, lines};
use duplexer_server::driver::StreamServer;
use duplexer_server::{Server, ServerBuilder};
use opentelemetry::Value;
use opentelemetry::trace::{SpanId, Status, TraceId};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};

use crate::{OtelHook, OtelMiddleware};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A provider and the spans that it has exported.
struct Recorder {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
}

impl Recorder {
    fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        Self { exporter, provider }
    }

    fn server(&self) -> ServerBuilder<()> {
        Server::builder("traced", "0").middleware(OtelMiddleware::with_provider(&self.provider))
    }

    fn spans(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }

    /// The one span with this name.
    fn span(&self, name: &str) -> SpanData {
        let mut named: Vec<_> = self.spans().into_iter().filter(|span| span.name == name).collect();
        assert_eq!(named.len(), 1, "{name} among {:?}", self.names());
        named.remove(0)
    }

    fn names(&self) -> Vec<String> {
        self.spans().into_iter().map(|span| span.name.into_owned()).collect()
    }
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let mut values = span.attributes.iter().filter(|attribute| attribute.key.as_str() == key);
    let value = values.next().map(|attribute| match &attribute.value {
        Value::String(text) => text.to_string(),
        other => panic!("{key} is {other:?}, not a string"),
    });
    assert!(values.next().is_none(), "{key} appears once");
    value
}

/// The client's end of a connection.
struct Wire {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Wire {
    async fn send(&mut self, message: &serde_json::Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Sends a request of the envelope era and returns its response.
    async fn ask(&mut self, method: &str, mut params: serde_json::Value) -> serde_json::Value {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
        meta["io.modelcontextprotocol/clientCapabilities"] = serde_json::json!({});
        self.send(&serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).await;
        self.next().await
    }

    async fn shake_hands(&mut self) {
        let params = serde_json::json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "c", "version": "1"}});
        self.send(&serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        self.next().await;
        self.send(&serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }
}

/// Serves a connection until the script ends, with or without a hook for requests of the server.
async fn serve<T>(
    server: ServerBuilder<()>,
    hook: Option<OtelHook>,
    script: impl AsyncFnOnce(&mut Wire) -> T,
) -> T {
    let (here, there) = duplex(1 << 16);
    let (reader, writer) = split(there);
    let transport = lines::over(reader, writer, TransportContext::stream("test"), lines::DEFAULT_LIMIT);
    let running = server.build().unwrap().start().await.unwrap();
    let options = DispatchOptions::default().hook(hook.map(|hook| Arc::new(hook) as _));
    let (stream, _) = StreamServer::new(&running, transport, options);
    let (reader, writer) = split(here);
    let mut wire = Wire { lines: BufReader::new(reader).lines(), writer };
    let client = async {
        let result = script(&mut wire).await;
        drop(wire);
        result
    };
    let (ended, result) = tokio::join!(stream.run(), client);
    ended.unwrap();
    result
}

fn parent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

fn ids() -> (TraceId, SpanId) {
    (TraceId::from_hex(TRACE).unwrap(), SpanId::from_hex(SPAN).unwrap())
}
