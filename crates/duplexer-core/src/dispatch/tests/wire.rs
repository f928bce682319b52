//! Behaviour that shows only in frames: raw lines in, raw lines out.

mod cancelling;
mod closing;
mod exchanges;
mod flushing;
mod frame_meta;
mod junk;
mod limits;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinSet;

use super::{EndsIdleTest, TestInbound};
use crate::dispatch::{Dispatch, DispatchOptions, JsonRpcDispatcher, Peer, RunError};
use crate::transport::{TransportContext, lines};

/// A running dispatcher and the other end of its connection.
pub(super) struct Wire {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    pub(super) peer: Peer,
    run: JoinSet<Result<(), RunError>>,
    _idle: EndsIdleTest,
}

impl Wire {
    pub(super) async fn new(inbound: TestInbound) -> Self {
        Self::with(inbound, DispatchOptions::default()).await
    }

    pub(super) async fn with(inbound: TestInbound, options: DispatchOptions) -> Self {
        Self::holding(inbound, options, 65_536).await
    }

    /// Creates a connection whose capacity is `bytes` in each direction.
    pub(super) async fn holding(inbound: TestInbound, options: DispatchOptions, bytes: usize) -> Self {
        let ((input, reader), (writer, output)) = (tokio::io::duplex(bytes), tokio::io::duplex(bytes));
        let transport = lines::over(reader, writer, TransportContext::stream("memory"), 4096);
        let (dispatcher, peer) = JsonRpcDispatcher::with_options(transport, options);
        let mut run = JoinSet::new();
        run.spawn(dispatcher.run(Arc::new(inbound)));
        tokio::task::yield_now().await;
        let output = BufReader::new(output).lines();
        Self { input: Some(input), output, peer, run, _idle: EndsIdleTest::new() }
    }

    pub(super) async fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    pub(super) async fn request(&mut self, id: &Value, method: &str) {
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string()).await;
    }

    pub(super) async fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        self.send_line(&note.to_string()).await;
    }

    /// Returns the next line, which must arrive.
    pub(super) async fn receive(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().expect("a line");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["jsonrpc"], "2.0", "{line}");
        value
    }

    /// Asserts that no frame arrives before the response to a request that is sent now.
    pub(super) async fn expect_no_other_frame(&mut self) {
        self.request(&json!("fence"), "echo").await;
        assert_eq!(self.receive().await, json!({"jsonrpc": "2.0", "id": "fence", "result": {}}));
    }

    /// Ends the input.
    pub(super) fn end_input(&mut self) {
        self.input = None;
    }

    /// Returns every frame until the run ends, and how it ended.
    pub(super) async fn rest(mut self) -> (Vec<Value>, Result<(), RunError>) {
        let mut heard = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            heard.push(serde_json::from_str(&line).unwrap());
        }
        (heard, self.run.join_next().await.unwrap().unwrap())
    }
}

pub(super) fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) fn error(id: Option<&Value>, code: i64, message: &str) -> Value {
    let error = json!({"code": code, "message": message});
    match id {
        Some(id) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        None => json!({"jsonrpc": "2.0", "error": error}),
    }
}
