//! The envelope era: `subscriptions/listen`.

use std::sync::Mutex;

use bytestring::ByteString;
use duplexer_types::jsonrpc::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::wire::{Over, TIMEOUT, Wire, error, notification};
use super::*;
use crate::kernel::connection::Caller;
use crate::kernel::driver::serve_envelope;
use duplexer_core::dispatch::{
    CallContext, Cancellation, Channel, Message, NotifyFuture, Outbound, OutboundRequest, lock,
};
use duplexer_core::error::CallError;
use duplexer_core::transport::{RequestStream, TransportContext};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

fn everything() -> Value {
    json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["file:///a"]})
}

fn tagged(method: &str, mut params: Value, id: &Value) -> Value {
    params["_meta"] = json!({ SUBSCRIPTION_ID: id });
    notification(method, params)
}

fn acknowledged(filter: &Value, id: &Value) -> Value {
    tagged("notifications/subscriptions/acknowledged", json!({"notifications": filter}), id)
}

fn tools_changed(id: &Value) -> Value {
    tagged("notifications/tools/list_changed", json!({}), id)
}

fn updated(uri: &str, id: &Value) -> Value {
    tagged("notifications/resources/updated", json!({"uri": uri}), id)
}

fn cancelled(id: &Value) -> Value {
    tagged("notifications/cancelled", json!({"requestId": id, "reason": "the server ends it"}), id)
}

fn result(id: &Value) -> Value {
    let info = json!({"name": "test", "version": "0"});
    let meta = json!({SUBSCRIPTION_ID: id, "io.modelcontextprotocol/serverInfo": info});
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}})
}

async fn listen(wire: &mut Wire, id: i64, filter: Value) {
    wire.ask(id, "subscriptions/listen", json!({"notifications": filter})).await;
    wire.expect(acknowledged(&filter, &id.into())).await;
}

/// SUB-02, SUB-04, P-SUB-1, P-SUB-3, P-SUB-4, P-SUB-6, P-SUB-7, P-SUB-8: the acknowledgement first, then each its own.
#[tokio::test]
async fn a_listener_receives_what_it_requested_under_its_own_id() {
    for over in Over::BOTH {
        let bus = MemoryBus::new();
        let running = running(bus.clone()).await;
        let mut wire = over.connect(&running);
        let (number, text) = (json!(7), json!("7"));
        listen(&mut wire, 7, everything()).await;
        let prompts = json!({"promptsListChanged": true});
        wire.ask("7", "subscriptions/listen", json!({"notifications": prompts})).await;
        wire.expect(acknowledged(&prompts, &text)).await;
        bus.tell(&Event::ToolsChanged);
        wire.expect(tools_changed(&number)).await;
        bus.tell(&Event::resource_updated("file:///a/b"));
        bus.tell(&Event::resource_updated("file:///a"));
        wire.expect(updated("file:///a", &number)).await;
        bus.tell(&Event::ResourcesChanged);
        wire.expect(tagged("notifications/resources/list_changed", json!({}), &number)).await;
        bus.tell(&Event::PromptsChanged);
        let mut both = [wire.next().await, wire.next().await];
        both.sort_by_key(|message| message["params"]["_meta"][SUBSCRIPTION_ID].is_string());
        let expected = [&number, &text].map(|id| tagged("notifications/prompts/list_changed", json!({}), id));
        assert_eq!(both, expected, "{over:?}");
    }
}

/// SUB-03: what happens while the acknowledgement is written, and even before it, is sent after it.
#[tokio::test]
async fn an_acknowledged_listener_misses_nothing() {
    let bus = OddBus::new(|listener| listener(BusMessage::Event(&Event::PromptsChanged, Position(1))));
    let running = running(bus.clone()).await;
    let channel = Arc::new(Way { bus: bus.inner, ..Way::default() });
    let envelope = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let params = format!(r#"{{"notifications":{},"_meta":{envelope}}}"#, everything());
    let message = Message::new("subscriptions/listen", Some(params.into()));
    let transport = Arc::new(TransportContext::stream("test"));
    let cx = CallContext::new(Some(1_i64.into()), transport, Arc::clone(&channel) as _);
    let served = serve_envelope(&running, cx, message, None, Caller::default());
    timeout(TIMEOUT, served).await.expect("it listens in vain").unwrap();
    let expected = ["subscriptions/acknowledged", "prompts/list_changed", "tools/list_changed", "cancelled"];
    assert_eq!(*lock(&channel.sent), expected.map(|name| format!("notifications/{name}")));
}

/// A channel to a client that sees a change with its acknowledgement, and the end with that change.
#[derive(Default)]
struct Way {
    bus: MemoryBus,
    sent: Mutex<Vec<String>>,
    closing: Cancellation,
    never: Cancellation,
}

impl Outbound for Way {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
    }

    fn notify(&self, method: &str, _: Option<&dyn Body>) -> NotifyFuture {
        lock(&self.sent).push(method.to_owned());
        match method {
            "notifications/subscriptions/acknowledged" => drop(self.bus.tell(&Event::ToolsChanged)),
            "notifications/tools/list_changed" => self.closing.cancel(),
            _ => {}
        }
        NotifyFuture::done()
    }
}

impl Channel for Way {
    fn cancellation(&self) -> &Cancellation {
        &self.never
    }

    fn closing(&self) -> &Cancellation {
        &self.closing
    }
}

/// P-SUB-2, SUB-01: what the server does not have is not acknowledged; unknown keys are ignored.
#[tokio::test]
async fn only_what_the_server_has_is_acknowledged() {
    let server = Server::builder("test", "0").on(methods::ToolsList, |_: PaginatedParams| async {
        Ok::<_, McpError>(ListToolsResult::new(Vec::new()))
    });
    let running = server.subscriptions(MemoryBus::new()).build().unwrap().start().await.unwrap();
    let mut wire = Over::Memory.connect(&running);
    let mut asked = everything();
    asked["somethingElse"] = json!({"a": 1});
    wire.ask(1, "subscriptions/listen", json!({"notifications": asked})).await;
    wire.expect(acknowledged(&json!({"toolsListChanged": true}), &json!(1))).await;
    assert!(!running.server().handles("resources/subscribe"));
}

/// P-SUB-17, SUB-05: a filter that is missing, malformed or too large is refused; a notification cannot listen.
#[tokio::test]
async fn a_malformed_filter_is_refused() {
    let limits = SubscriptionLimits { uris: 1, ..SubscriptionLimits::default() };
    let running = running_within(MemoryBus::new(), limits).await;
    let mut wire = Over::Memory.connect(&running);
    for params in [
        json!({}),
        json!({"notifications": null}),
        json!({"notifications": []}),
        json!({"notifications": {"toolsListChanged": "yes"}}),
        json!({"notifications": {"resourceSubscriptions": "file:///a"}}),
        json!({"notifications": {"resourceSubscriptions": [1]}}),
        json!({"notifications": {"resourceSubscriptions": ["file:///a", "file:///b"]}}),
    ] {
        wire.ask(1, "subscriptions/listen", params.clone()).await;
        assert_eq!(wire.next().await["error"]["code"], -32602, "{params}");
    }
    wire.notify("subscriptions/listen", json!({"notifications": everything()})).await;
    listen(&mut wire, 2, everything()).await;
    assert_eq!(open_streams(&running), 1);
}

/// SUB-05, P-SUB-11, P-SUB-18: a limit of streams; a cancelled one sends nothing more and releases its permit.
#[tokio::test]
async fn a_cancelled_stream_makes_room_for_another() {
    for over in Over::BOTH {
        let bus = MemoryBus::new();
        let limits = SubscriptionLimits { streams: 1, ..SubscriptionLimits::default() };
        let running = running_within(bus.clone(), limits).await;
        let mut wire = over.connect(&running);
        listen(&mut wire, 1, everything()).await;
        wire.ask(2, "subscriptions/listen", json!({"notifications": {}})).await;
        wire.expect(error(2, -32603, "Subscription limit reached")).await;
        wire.notify("notifications/cancelled", json!({"requestId": 1})).await;
        until(|| open_streams(&running) == 0).await;
        assert_eq!(running.subscriptions().unwrap().router.len(), (0, 0));
        bus.tell(&Event::ToolsChanged);
        listen(&mut wire, 3, everything()).await;
        bus.tell(&Event::ToolsChanged);
        wire.expect(tools_changed(&json!(3))).await;
    }
}

/// SUB-05: the limit of a server is 1024, also where they all come from one client, and the client gets that error.
#[tokio::test]
async fn a_client_can_open_a_thousand_streams_and_no_more() {
    let running = running(MemoryBus::new()).await;
    let mut wire = Over::Memory.connect(&running);
    for id in 0..1024 {
        listen(&mut wire, id, json!({"toolsListChanged": true})).await;
    }
    wire.ask(2000, "subscriptions/listen", json!({"notifications": {}})).await;
    wire.expect(error(2000, -32603, "Subscription limit reached")).await;
}

/// SUB-07, P-SUB-12: a disconnected client leaves nothing behind.
#[tokio::test]
async fn the_end_of_a_connection_frees_its_streams() {
    for over in Over::BOTH {
        let running = running(MemoryBus::new()).await;
        let mut wire = over.connect(&running);
        listen(&mut wire, 1, everything()).await;
        drop(wire);
        until(|| open_streams(&running) == 0).await;
        assert_eq!(listeners(&running), 0);
    }
}

/// SUB-06: a stream with a full backlog is ended, its permit is released at once, and waiting events are still sent.
#[tokio::test]
async fn a_stream_that_cannot_keep_up_is_ended_in_order() {
    let limits = SubscriptionLimits { backlog: 2, ..SubscriptionLimits::default() };
    let bus = MemoryBus::new();
    let running = running_within(bus.clone(), limits).await;
    let mut wire = Over::Memory.connect(&running);
    let calm = json!({"toolsListChanged": true});
    listen(&mut wire, 1, calm).await;
    listen(&mut wire, 2, everything()).await;
    // No task runs between these, so that the streams cannot send in between.
    for event in [Event::ToolsChanged, Event::PromptsChanged, Event::ToolsChanged, Event::ResourcesChanged] {
        bus.tell(&event);
    }
    let mut received: Vec<Value> = Vec::new();
    for _ in 0..5 {
        received.push(wire.next().await);
    }
    let (of_calm, of_ended): (Vec<_>, Vec<_>) =
        received.into_iter().partition(|message| message["params"]["_meta"][SUBSCRIPTION_ID] == 1);
    assert_eq!(of_calm, [tools_changed(&json!(1))]);
    let id = json!(2);
    let prompts = tagged("notifications/prompts/list_changed", json!({}), &id);
    assert_eq!(of_ended, [tools_changed(&id), prompts, cancelled(&id), result(&id)]);
    assert_eq!(open_streams(&running), 1);
    bus.tell(&Event::ToolsChanged);
    wire.expect(tools_changed(&json!(1))).await;
}

/// SUB-07, P-SUB-9, P-SUB-10, P-CAN-4: what waits, then the cancellation where streams are shared, then the result.
#[tokio::test]
async fn the_end_of_the_server_ends_a_stream_with_its_result() {
    for over in Over::BOTH {
        for end in ["stop", "shutdown", "end of input"] {
            let bus = MemoryBus::new();
            let running = running(bus.clone()).await;
            let mut wire = over.connect(&running);
            listen(&mut wire, 1, everything()).await;
            bus.tell(&Event::ToolsChanged);
            match end {
                "stop" => wire.server.stop(),
                "shutdown" => running.shutdown().await,
                _ => wire.close_sending(),
            }
            let id = json!(1);
            wire.expect(tools_changed(&id)).await;
            wire.expect(cancelled(&id)).await;
            wire.expect(result(&id)).await;
            if end != "shutdown" {
                assert_eq!(wire.read().await, None, "{over:?} {end}");
                wire.run.join_next().await.unwrap().unwrap().unwrap();
            }
        }
    }
}

/// P-SUB-10: where a request has a stream of its own, that ends instead.
#[tokio::test]
async fn a_stream_of_its_own_is_ended_by_its_result_alone() {
    let running = running(MemoryBus::new()).await;
    let mut context = TransportContext::stream("test");
    context.request_stream = RequestStream::Own;
    let mut wire = Over::Memory.connect_as(&running, context);
    listen(&mut wire, 1, everything()).await;
    running.shutdown().await;
    wire.expect(result(&json!(1))).await;
}

/// SUB-06, SUB-08: a client that does not read blocks neither the bus nor other clients, and gets its last message.
#[tokio::test]
async fn a_listener_that_does_not_read_blocks_no_other() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let (mut slow, mut quick) = (Over::Memory.connect(&running), Over::Memory.connect(&running));
    let uri = |index: usize| format!("file:///{index}/{}", "x".repeat(400));
    let mut filter = json!({"toolsListChanged": true});
    filter["resourceSubscriptions"] = (0..500).map(uri).collect();
    listen(&mut slow, 1, filter).await;
    listen(&mut quick, 1, json!({"toolsListChanged": true})).await;
    for _ in 0..5 {
        for index in 0..500 {
            bus.publish(Event::resource_updated(uri(index))).await.unwrap();
        }
    }
    bus.publish(Event::ToolsChanged).await.unwrap();
    quick.expect(tools_changed(&json!(1))).await;
    let mut received = 0;
    while slow.next().await != tools_changed(&json!(1)) {
        received += 1;
    }
    assert!((500..2500).contains(&received), "merged, and each sent: {received}");
    assert_eq!(open_streams(&running), 2);
}

/// SUB-09: a bus that never drops its listener holds no permit.
#[tokio::test]
async fn a_bus_that_fails_does_not_leak_a_place() {
    let mut bus = OddBus::new(|_| {});
    bus.on_unsubscribe = Arc::new(|| panic!("a bus that fails"));
    let running = running(bus).await;
    let mut wire = Over::Memory.connect(&running);
    listen(&mut wire, 1, everything()).await;
    wire.notify("notifications/cancelled", json!({"requestId": 1})).await;
    until(|| open_streams(&running) == 0).await;
    running.shutdown().await;
}

/// SCL-10: after a gap a listener hears that everything it requested has changed, however small its backlog is.
#[tokio::test]
async fn a_listener_hears_that_everything_has_changed_after_a_gap() {
    let bus = OddBus::new(|_| {});
    let gap = bus.clone();
    let limits = SubscriptionLimits { backlog: 1, ..SubscriptionLimits::default() };
    let running = running_within(bus, limits).await;
    let mut wire = Over::Memory.connect(&running);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    listen(&mut wire, 1, filter).await;
    gap.deliver(BusMessage::Missed(Position(7)));
    wire.expect(tools_changed(&json!(1))).await;
    wire.expect(updated("file:///a", &json!(1))).await;
    gap.inner.tell(&Event::ToolsChanged);
    wire.expect(tools_changed(&json!(1))).await;
    assert_eq!(open_streams(&running), 1);
}

/// SUB-10: without a bus there are no listeners, nothing is advertised, and publishing has no effect.
#[tokio::test]
async fn without_a_bus_there_are_no_listeners() {
    let running = described().build().unwrap().start().await.unwrap();
    let mut wire = Over::Memory.connect(&running);
    wire.ask(1, "subscriptions/listen", json!({"notifications": {}})).await;
    assert_eq!(wire.next().await["error"]["code"], -32601);
    wire.ask(2, "server/discover", json!({})).await;
    assert_eq!(wire.next().await["result"]["capabilities"]["tools"], json!({"listChanged": false}));
    wire.ask(3, "tools/call", json!({"name": "change"})).await;
    assert_eq!(wire.next().await["id"], 3);
}

/// CONN-07, P-SUB-4, P-SUB-5: changes are sent on streams of subscribers only, with the id of the stream.
#[tokio::test]
async fn nothing_is_sent_outside_the_streams() {
    for over in Over::BOTH {
        let running = running(MemoryBus::new()).await;
        let mut wire = over.connect(&running);
        wire.ask(1, "tools/call", json!({"name": "change"})).await;
        assert_eq!(wire.next().await["id"], 1, "{over:?}");
        listen(&mut wire, 2, json!({"toolsListChanged": true})).await;
        wire.ask(3, "tools/call", json!({"name": "change"})).await;
        let mut both = [wire.next().await, wire.next().await];
        both.sort_by_key(|message| message["id"].is_number());
        assert_eq!(both[0], tools_changed(&json!(2)), "{over:?}");
        assert_eq!(both[1]["id"], 3, "{over:?}");
        wire.ask(4, "tools/list", json!({})).await;
        assert_eq!(wire.next().await["id"], 4, "{over:?}");
    }
}

/// P-SUB-1: capabilities follow from the bus.
#[tokio::test]
async fn a_bus_is_advertised() {
    let running = running(MemoryBus::new()).await;
    let mut wire = Over::Memory.connect(&running);
    wire.ask(1, "server/discover", json!({})).await;
    let capabilities = wire.next().await["result"]["capabilities"].take();
    let list = json!({"listChanged": true});
    let expected =
        json!({"tools": list, "prompts": list, "resources": {"listChanged": true, "subscribe": true}});
    assert_eq!(capabilities, expected);
}
