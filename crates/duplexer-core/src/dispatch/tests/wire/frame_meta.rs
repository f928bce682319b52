//! Metadata of frames: routing, headers, the context of a message, the hook of an unanswered request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::RequestId;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{
    CallOptions, Dispatch, DispatchLimits, DispatchOptions, JsonRpcDispatcher, NotificationRoute, Outbound,
    OutboundHook, OutboundRequest, OutboundSpan, Peer, lock,
};
use crate::error::CallError;
use crate::transport::{
    FrameMeta, FrameReader, FrameWriter, Frames, Incoming, IncomingMessage, OnUnanswered, Transport,
    TransportContext, TransportError,
};

/// A transport that sends one message at a time and knows more about each than its text.
struct MessageTransport {
    incoming: mpsc::Receiver<Incoming>,
    outgoing: mpsc::Sender<(Value, FrameMeta)>,
}

impl Transport for MessageTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(MessageReader(self.incoming)), Box::new(MessageWriter(self.outgoing)))
    }
}

struct MessageReader(mpsc::Receiver<Incoming>);

impl FrameReader for MessageReader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}

struct MessageWriter(mpsc::Sender<(Value, FrameMeta)>);

impl FrameWriter for MessageWriter {
    fn poll_write(&mut self, _: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        while let Some((frame, meta)) = frames.pop() {
            if self.0.try_send((serde_json::from_slice(&frame).unwrap(), meta)).is_err() {
                return Poll::Ready(Err(TransportError::Closed));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }
}

struct Harness {
    to: mpsc::Sender<Incoming>,
    from: mpsc::Receiver<(Value, FrameMeta)>,
    peer: Peer,
    run: JoinSet<Result<(), crate::dispatch::RunError>>,
}

impl Harness {
    async fn new(inbound: TestInbound, options: DispatchOptions) -> Self {
        let ((to, incoming), (outgoing, from)) = (mpsc::channel(16), mpsc::channel(16));
        let (dispatcher, peer) =
            JsonRpcDispatcher::with_options(MessageTransport { incoming, outgoing }, options);
        let mut run = JoinSet::new();
        run.spawn(dispatcher.run(Arc::new(inbound)));
        tokio::task::yield_now().await;
        Self { to, from, peer, run }
    }

    async fn deliver(&self, frame: &Value, change: impl FnOnce(&mut IncomingMessage)) {
        let context = Arc::new(TransportContext::stream("post"));
        let mut message = IncomingMessage::new(frame.to_string().into(), context);
        change(&mut message);
        self.to.send(Incoming::Message(message)).await.unwrap();
    }

    async fn request(&self, id: i64, method: &str, change: impl FnOnce(&mut IncomingMessage)) {
        self.deliver(&json!({"jsonrpc": "2.0", "id": id, "method": method}), change).await;
    }

    async fn cancel(&self, id: i64) {
        let params = json!({"requestId": id});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        self.deliver(&note, |_| {}).await;
    }
}

fn related(id: i64) -> FrameMeta {
    FrameMeta { related: Some(RequestId::from(id)), ..FrameMeta::default() }
}

/// DISP-30: and serving continues.
#[tokio::test(start_paused = true)]
async fn without_a_context_a_request_is_refused_and_a_notification_dropped() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    let inbound = TestInbound::new().on_notification(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    });
    let mut harness = Harness::new(inbound, DispatchOptions::default()).await;
    harness.request(1, "echo", |message| message.context = None).await;
    let refusal = json!({"code": -32603, "message": "transport context unavailable"});
    assert_eq!(harness.from.recv().await.unwrap().0["error"], refusal);
    harness.deliver(&json!({"jsonrpc": "2.0", "method": "note"}), |message| message.context = None).await;
    harness.request(2, "echo", |_| {}).await;
    assert_eq!(harness.from.recv().await.unwrap().0["id"], json!(2));
    assert_eq!(heard.load(Ordering::Relaxed), 0);
}

/// DISP-10, DISP-13: what a handler sends is routed with its request, and so is a cancellation.
#[tokio::test(start_paused = true)]
async fn what_a_handler_sends_is_routed_with_its_request() {
    let inbound = TestInbound::new().on("talk", |cx, _| async move {
        cx.channel.notify("note", None).await;
        let mut options = CallOptions::new().timeout(Duration::from_secs(1));
        options.resumption = Some("dropped".into());
        options.headers = vec![("a".into(), "b".into())];
        let _ = cx.channel.request(OutboundRequest::new("ask").options(options)).await;
        Ok(Reply::of(&json!({})))
    });
    let mut harness = Harness::new(inbound, DispatchOptions::default()).await;
    harness.request(5, "talk", |_| {}).await;
    let mut next = async || harness.from.recv().await.map(|(frame, meta)| (frame["method"].clone(), meta));
    assert_eq!(next().await.unwrap(), (json!("note"), related(5)));
    let headers = vec![("a".to_owned(), "b".to_owned())];
    assert_eq!(next().await.unwrap(), (json!("ask"), FrameMeta { headers, ..related(5) }));
    assert_eq!(next().await.unwrap(), (json!("notifications/cancelled"), related(5)));
    assert_eq!(next().await.unwrap().0, Value::Null);
}

/// DISP-10, DISP-13: a call that can be resumed is not cancelled.
#[tokio::test(start_paused = true)]
async fn headers_and_resumption_accompany_a_plain_call() {
    let mut harness = Harness::new(TestInbound::new(), DispatchOptions::default()).await;
    let cases =
        [(None, vec![]), (None, vec![("h".to_owned(), "1".to_owned())]), (Some("token".to_owned()), vec![])];
    for (resumption, headers) in cases {
        let mut options = CallOptions::new().timeout(Duration::from_secs(1));
        (options.resumption, options.headers) = (resumption.clone(), headers.clone());
        let outcome = harness.peer.request(OutboundRequest::new("ask").options(options)).await;
        assert!(matches!(outcome, Err(CallError::Timeout(_))));
        let (_, meta) = harness.from.recv().await.unwrap();
        assert_eq!(meta, FrameMeta { related: None, headers, resumption: resumption.clone() });
        if resumption.is_none() {
            let (frame, meta) = harness.from.recv().await.unwrap();
            assert_eq!((&frame["method"], meta), (&json!("notifications/cancelled"), FrameMeta::default()));
        }
    }
    harness.request(1, "echo", |_| {}).await;
    assert_eq!(harness.from.recv().await.unwrap().0["id"], json!(1));
}

/// DISP-25: only for requests that the peer has cancelled; a hook that panics does no harm.
#[tokio::test(start_paused = true)]
async fn the_hook_of_an_unanswered_request_runs_when_the_peer_has_cancelled_it() {
    let inbound = TestInbound::new().on("stuck", |_, _| std::future::pending());
    let limits = DispatchLimits { drain: Duration::ZERO, running: 2, ..DispatchLimits::default() };
    let mut harness = Harness::new(inbound, DispatchOptions { limits, ..DispatchOptions::default() }).await;
    let called = Arc::new(Mutex::new(Vec::new()));
    let hook = |id: i64| {
        let called = Arc::clone(&called);
        move |message: &mut IncomingMessage| {
            message.unanswered = Some(OnUnanswered::new(move || {
                lock(&called).push(id);
                assert_ne!(id, 1, "secret: hook");
            }));
        }
    };
    for id in [1, 2] {
        harness.request(id, "stuck", hook(id)).await;
    }
    // This one is queued, and is cancelled there.
    harness.request(3, "stuck", hook(3)).await;
    harness.cancel(3).await;
    harness.cancel(1).await;
    harness.request(4, "echo", hook(4)).await;
    assert_eq!(harness.from.recv().await.unwrap().0, json!({"jsonrpc": "2.0", "id": 4, "result": {}}));
    assert_eq!(*lock(&called), [1, 3]);
    drop(harness.to);
    // The one that is aborted is answered, so its hook does not run.
    let (cut, _) = harness.from.recv().await.unwrap();
    assert_eq!((&cut["id"], &cut["error"]["code"]), (&json!(2), &json!(-32000)));
    harness.run.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(*lock(&called), [1, 3]);
}

/// A queued request refers to its connection, which refers to it. Both end with the runtime, though no handler runs on.
#[test]
fn a_queued_request_is_released_with_its_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let context = Arc::new(TransportContext::stream("post"));
    let harness = runtime.block_on(async {
        let read = Arc::new(Notify::new());
        let noted = Arc::clone(&read);
        let inbound = TestInbound::new().on("stuck", |_, _| std::future::pending()).on_read(move |_| {
            noted.notify_one();
            NotificationRoute::Consume
        });
        let limits = DispatchLimits { running: 1, ..DispatchLimits::default() };
        let harness = Harness::new(inbound, DispatchOptions { limits, ..DispatchOptions::default() }).await;
        for id in [1, 2] {
            harness.request(id, "stuck", |message| message.context = Some(Arc::clone(&context))).await;
        }
        harness.deliver(&json!({"jsonrpc": "2.0", "method": "note"}), |_| {}).await;
        read.notified().await;
        harness
    });
    assert_eq!(Arc::strong_count(&context), 2, "the handler has dropped the other one");
    drop(runtime);
    drop(harness);
    assert_eq!(Arc::strong_count(&context), 1);
}

struct Spans(Arc<Mutex<Vec<String>>>);

impl OutboundHook for Spans {
    fn begin(
        &self,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        meta: &mut JsonObject,
    ) -> Box<dyn OutboundSpan> {
        meta.insert("traceparent", Json::from("00-1"));
        lock(&self.0).push(format!("begin {id} {method} {params:?}"));
        Box::new(Span(Arc::clone(&self.0)))
    }
}

struct Span(Arc<Mutex<Vec<String>>>);

impl OutboundSpan for Span {
    fn end(self: Box<Self>, outcome: Result<&str, &CallError>) {
        lock(&self.0).push(format!("end {:?}", outcome.map_err(ToString::to_string)));
    }
}

/// DISP-05: a hook sees every own request and its outcome, and can add to its `_meta`.
#[tokio::test(start_paused = true)]
async fn the_outbound_hook_wraps_every_own_request() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let options =
        DispatchOptions { hook: Some(Arc::new(Spans(Arc::clone(&log)))), ..DispatchOptions::default() };
    let mut harness = Harness::new(TestInbound::new(), options).await;
    let peer = harness.peer.clone();
    let mut calls = JoinSet::new();
    calls.spawn(async move { peer.request(OutboundRequest::new("ask").params(json!({"a": 1}))).await });
    let (frame, _) = harness.from.recv().await.unwrap();
    assert_eq!(frame["params"], json!({"a": 1, "_meta": {"traceparent": "00-1"}}));
    harness.deliver(&json!({"jsonrpc": "2.0", "id": 1, "result": [1]}), |_| {}).await;
    calls.join_next().await.unwrap().unwrap().unwrap();
    let options = CallOptions::new().timeout(Duration::from_secs(1));
    let _ = harness.peer.request(OutboundRequest::new("late").options(options)).await;
    assert_eq!(
        *lock(&log),
        [
            r#"begin 1 ask Some("{\"a\":1}")"#,
            r#"end Ok("[1]")"#,
            "begin 2 late None",
            r#"end Err("Request 'late' timed out")"#,
        ]
    );
}
