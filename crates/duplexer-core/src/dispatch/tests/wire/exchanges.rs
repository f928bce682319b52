//! Own requests whose callers poll their exchange with the peer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::jsonrpc::RequestId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::dispatch::tests::TestInbound;
use crate::dispatch::{
    CallOptions, Dispatch, JsonRpcDispatcher, OnDrop, Outbound, OutboundRequest, Peer, lock,
};
use crate::error::CallError;
use crate::transport::{
    Exchanged, FrameMeta, FrameReader, FrameWriter, Frames, Incoming, IncomingMessage, PolledExchange,
    Transport, TransportContext, TransportError, TransportFailure,
};

/// A request that was begun, and what ends it.
type Begun = (Value, Option<oneshot::Sender<Exchanged>>);

/// A transport whose exchanges end as a test says.
#[derive(Clone, Default)]
struct Script {
    /// Requests that were begun, and what ends them.
    begun: Arc<Mutex<Vec<Begun>>>,
    /// Frames that were queued.
    queued: Arc<Mutex<Vec<Value>>>,
    released: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct Scripted {
    script: Script,
    incoming: mpsc::Receiver<Incoming>,
}

impl Transport for Scripted {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(Reader(self.incoming)), Box::new(Writer(self.script)))
    }
}

struct Reader(mpsc::Receiver<Incoming>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}

struct Writer(Script);

impl FrameWriter for Writer {
    fn poll_write(&mut self, _: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while let Some((frame, _)) = frames.pop() {
            lock(&self.0.queued).push(serde_json::from_slice(&frame).unwrap());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn begin(
        &mut self,
        _: &RequestId,
        frame: &mut Vec<u8>,
        _: Option<&FrameMeta>,
    ) -> Option<Box<dyn PolledExchange>> {
        let (end, ended) = oneshot::channel();
        let request = serde_json::from_slice(&std::mem::take(frame)).unwrap();
        lock(&self.0.begun).push((request, Some(end)));
        Some(Box::new(Exchange { ended, script: self.0.clone() }))
    }
}

struct Exchange {
    ended: oneshot::Receiver<Exchanged>,
    script: Script,
}

impl PolledExchange for Exchange {
    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<Exchanged> {
        std::pin::Pin::new(&mut self.ended).poll(cx).map(Result::unwrap)
    }

    fn release(self: Box<Self>) {
        self.script.released.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.script.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

struct Harness {
    script: Script,
    to: mpsc::Sender<Incoming>,
    peer: Peer,
    run: JoinSet<Result<(), crate::dispatch::RunError>>,
}

type Outcome = Result<ByteString, CallError>;

impl Harness {
    async fn new() -> Self {
        let (script, (to, incoming)) = (Script::default(), mpsc::channel(16));
        let (dispatcher, peer) = JsonRpcDispatcher::new(Scripted { script: script.clone(), incoming });
        let mut run = JoinSet::new();
        run.spawn(dispatcher.run(Arc::new(TestInbound::new())));
        tokio::task::yield_now().await;
        Self { script, to, peer, run }
    }

    /// Starts a call and waits until it is with the transport.
    async fn call(&self, options: CallOptions) -> JoinSet<Outcome> {
        let (peer, mut call) = (self.peer.clone(), JoinSet::new());
        call.spawn(async move { peer.request(OutboundRequest::new("ask").options(options)).await });
        settled().await;
        call
    }

    fn end(&self, how: Exchanged) {
        let end = lock(&self.script.begun).last_mut().unwrap().1.take().unwrap();
        assert!(end.send(how).is_ok());
    }

    fn counts(&self) -> (usize, usize) {
        (self.script.released.load(Ordering::Relaxed), self.script.dropped.load(Ordering::Relaxed))
    }

    fn queued_methods(&self) -> Vec<Value> {
        lock(&self.script.queued).iter().map(|frame| frame["method"].clone()).collect()
    }
}

/// Lets the other tasks run until they wait.
async fn settled() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

async fn outcome(mut call: JoinSet<Outcome>) -> Outcome {
    call.join_next().await.unwrap().unwrap()
}

/// The caller gets the response, the error or the failure of its own exchange; nothing is queued, and nothing cancelled.
#[tokio::test(start_paused = true)]
async fn a_caller_gets_the_end_of_its_own_exchange() {
    let harness = Harness::new().await;
    let call = harness.call(CallOptions::new()).await;
    harness.end(Exchanged::Response(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#.into()));
    assert_eq!(outcome(call).await.unwrap(), r#"{"a":1}"#);
    let call = harness.call(CallOptions::new()).await;
    harness.end(Exchanged::Response(r#"{"jsonrpc":"2.0","id":2,"error":{"code":5,"message":"no"}}"#.into()));
    assert!(matches!(outcome(call).await, Err(CallError::Rpc(error)) if error.message == "no"));
    let call = harness.call(CallOptions::new()).await;
    harness.end(Exchanged::Failed(TransportFailure::SessionEnded));
    assert!(matches!(outcome(call).await, Err(CallError::Transport(TransportFailure::SessionEnded))));
    // What is no response fails the call and not the connection.
    let call = harness.call(CallOptions::new()).await;
    harness.end(Exchanged::Response(r#"{"jsonrpc":"2.0","method":"note"}"#.into()));
    assert!(matches!(outcome(call).await, Err(CallError::Transport(TransportFailure::Protocol(_)))));
    assert_eq!((harness.queued_methods(), harness.counts()), (vec![], (0, 4)));
}

/// A response that comes with other messages is read by the reader half, under the id of the call.
#[tokio::test(start_paused = true)]
async fn a_response_can_come_elsewhere() {
    let harness = Harness::new().await;
    let call = harness.call(CallOptions::new()).await;
    harness.end(Exchanged::Elsewhere);
    let id = lock(&harness.script.begun)[0].0["id"].clone();
    let text = json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string();
    let context = Arc::new(TransportContext::stream("post"));
    harness.to.send(Incoming::Message(IncomingMessage::new(text.into(), context))).await.unwrap();
    assert_eq!(outcome(call).await.unwrap(), "{}");
}

/// DISP-10: a call that is dropped or times out releases its exchange, then the cancellation is queued.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_releases_its_exchange() {
    let harness = Harness::new().await;
    let call = harness.call(CallOptions::new()).await;
    drop(call);
    // A request that follows a queued frame is queued too.
    settled().await;
    let timed_out = harness.call(CallOptions::new().timeout(Duration::from_secs(3))).await;
    assert!(matches!(outcome(timed_out).await, Err(CallError::Timeout(_))));
    settled().await;
    assert_eq!(harness.counts(), (2, 2));
    assert_eq!(harness.queued_methods(), ["notifications/cancelled", "notifications/cancelled"]);
    let cancelled: Vec<_> =
        lock(&harness.script.queued).iter().map(|frame| frame["params"]["requestId"].clone()).collect();
    let begun: Vec<_> =
        lock(&harness.script.begun).iter().map(|(request, _)| request["id"].clone()).collect();
    assert_eq!(cancelled, begun);
}

/// A request that continues without its caller is queued, because its caller cannot poll it then.
#[tokio::test(start_paused = true)]
async fn a_detached_request_is_queued() {
    let harness = Harness::new().await;
    let call = harness.call(CallOptions::new().on_drop(OnDrop::Detach)).await;
    assert_eq!(harness.queued_methods(), ["ask"]);
    assert!(lock(&harness.script.begun).is_empty());
    drop(call);
}

/// The end of the connection ends the call; its exchange is dropped.
#[tokio::test(start_paused = true)]
async fn an_exchange_ends_with_its_connection() {
    let mut harness = Harness::new().await;
    let call = harness.call(CallOptions::new()).await;
    harness.peer.stop();
    assert!(harness.run.join_next().await.unwrap().unwrap().is_ok());
    assert!(matches!(outcome(call).await, Err(CallError::Closed)));
    assert_eq!(harness.counts(), (0, 1));
}
