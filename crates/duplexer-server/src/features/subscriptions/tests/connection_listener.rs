//! The handshake era: changes on the connection itself.

use duplexer_types::lifecycle::EmptyResult;
use duplexer_types::resource::SubscribeParams;
use serde_json::{Value, json};

use super::wire::{Over, Wire, error, notification};
use super::*;
use crate::registry::NotificationOptions;

fn changed(list: &str) -> Value {
    notification(&format!("notifications/{list}/list_changed"), json!({}))
}

fn updated(uri: &str) -> Value {
    notification("notifications/resources/updated", json!({"uri": uri}))
}

async fn subscribe(wire: &mut Wire, verb: &str, uri: &str) {
    wire.request(1, &format!("resources/{verb}"), json!({"uri": uri})).await;
    wire.expect(json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
}

/// A client whose handshake is complete on the server.
async fn connected(over: Over, running: &RunningServer) -> Wire {
    let before = listeners(running);
    let mut wire = over.connect(running);
    wire.handshake().await;
    until(|| listeners(running) != before).await;
    wire
}

/// SUB-04, P-SUB-7, P-LEG-26: lists to every client, resources to subscribed clients, until they unsubscribe.
#[tokio::test]
async fn a_client_is_notified_of_lists_and_of_its_subscribed_resources() {
    for over in Over::BOTH {
        let bus = MemoryBus::new();
        let running = running(bus.clone()).await;
        let mut one = connected(over, &running).await;
        let mut two = connected(over, &running).await;
        subscribe(&mut one, "subscribe", "file:///a").await;
        subscribe(&mut one, "subscribe", "file:///a").await;
        subscribe(&mut one, "unsubscribe", "file:///never").await;
        bus.tell(&Event::resource_updated("file:///a"));
        bus.tell(&Event::resource_updated("file:///a/b"));
        bus.tell(&Event::ToolsChanged);
        one.expect(updated("file:///a")).await;
        one.expect(changed("tools")).await;
        two.expect(changed("tools")).await;
        subscribe(&mut one, "unsubscribe", "file:///a").await;
        bus.tell(&Event::resource_updated("file:///a"));
        bus.tell(&Event::PromptsChanged);
        bus.tell(&Event::ResourcesChanged);
        for wire in [&mut one, &mut two] {
            wire.expect(changed("prompts")).await;
            wire.expect(changed("resources")).await;
        }
    }
}

/// P-LEG-4: before the handshake has ended nothing is sent; a client that never ends it but subscribes gets its
/// updates.
#[tokio::test]
async fn a_client_is_not_notified_before_it_is_ready() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let mut wire = Over::Memory.connect(&running);
    let result = wire.initialize().await;
    let list = json!({"listChanged": true});
    let expected =
        json!({"tools": list, "prompts": list, "resources": {"listChanged": true, "subscribe": true}});
    assert_eq!(result["capabilities"], expected);
    bus.tell(&Event::ToolsChanged);
    subscribe(&mut wire, "subscribe", "file:///a").await;
    bus.tell(&Event::resource_updated("file:///a"));
    wire.expect(updated("file:///a")).await;
}

/// A handler publishes to all clients, its own included; unadvertised changes are not sent.
#[tokio::test]
async fn a_handler_notifies_all_clients_of_advertised_changes() {
    let bus = MemoryBus::new();
    let options = NotificationOptions { prompts_changed: true, ..NotificationOptions::default() };
    let server = described().subscriptions(bus.clone()).notification_options(options).build().unwrap();
    let running = server.start().await.unwrap();
    let mut one = connected(Over::Memory, &running).await;
    let mut two = connected(Over::Memory, &running).await;
    one.request(5, "tools/call", json!({"name": "change"})).await;
    two.expect(changed("prompts")).await;
    // The tool itself notifies its own client; what was published can arrive before or after the response.
    one.expect(changed("tools")).await;
    let mut both = [one.next().await, one.next().await];
    both.sort_by_key(|message| message["id"].is_number());
    assert_eq!(both[0], changed("prompts"));
    assert_eq!(both[1]["id"], 5);
}

/// SUB-05: the URIs of a connection are bounded.
#[tokio::test]
async fn a_client_cannot_subscribe_without_end() {
    let limits = SubscriptionLimits { uris: 1, ..SubscriptionLimits::default() };
    let running = running_within(MemoryBus::new(), limits).await;
    let mut wire = Over::Memory.connect(&running);
    wire.handshake().await;
    subscribe(&mut wire, "subscribe", "file:///a").await;
    wire.request(2, "resources/subscribe", json!({"uri": "file:///b"})).await;
    wire.expect(error(2, -32603, "Subscription limit reached")).await;
    subscribe(&mut wire, "unsubscribe", "file:///a").await;
    subscribe(&mut wire, "subscribe", "file:///b").await;
    wire.request(3, "resources/subscribe", json!({})).await;
    assert_eq!(wire.next().await["error"]["code"], -32602);
}

/// A closed connection receives no events.
#[tokio::test]
async fn a_closed_connection_unsubscribes_from_the_bus() {
    for over in Over::BOTH {
        let bus = MemoryBus::new();
        let running = running(bus.clone()).await;
        drop(connected(over, &running).await);
        let mut wire = connected(over, &running).await;
        subscribe(&mut wire, "subscribe", "file:///a").await;
        wire.close_sending();
        assert_eq!(wire.read().await, None);
        until(|| listeners(&running) == 0).await;
        assert_eq!(running.subscriptions().unwrap().router.len(), (0, 0));
        bus.tell(&Event::ToolsChanged);
    }
}

/// SUB-08: a client that does not read blocks neither the bus nor other clients nor the shutdown.
#[tokio::test]
async fn a_client_that_does_not_read_blocks_no_other() {
    let bus = MemoryBus::new();
    let running = running(bus.clone()).await;
    let mut slow = connected(Over::Memory, &running).await;
    let mut quick = connected(Over::Memory, &running).await;
    let uri = |index: usize| format!("file:///{index}/{}", "x".repeat(400));
    for index in 0..500 {
        subscribe(&mut slow, "subscribe", &uri(index)).await;
    }
    for _ in 0..5 {
        for index in 0..500 {
            bus.publish(Event::resource_updated(uri(index))).await.unwrap();
        }
    }
    bus.publish(Event::ToolsChanged).await.unwrap();
    quick.expect(changed("tools")).await;
    let mut received = 0;
    while slow.next().await != changed("tools") {
        received += 1;
    }
    assert!((500..2500).contains(&received), "merged, and each sent: {received}");
    for index in 0..500 {
        bus.publish(Event::resource_updated(uri(index))).await.unwrap();
    }
    running.shutdown().await;
}

/// SUB-11: a handler of the author's own stays; in the envelope era there is no such method.
#[tokio::test]
async fn subscribing_can_be_the_authors_own() {
    let bus = MemoryBus::new();
    let own = |params: SubscribeParams| async move {
        if params.uri == "file:///a" { Ok(EmptyResult::new()) } else { Err(McpError::internal("unknown")) }
    };
    let server = described().on(methods::ResourcesSubscribe, own).subscriptions(bus.clone()).build().unwrap();
    let running = server.start().await.unwrap();
    let mut wire = connected(Over::Memory, &running).await;
    subscribe(&mut wire, "subscribe", "file:///a").await;
    wire.request(2, "resources/subscribe", json!({"uri": "file:///b"})).await;
    assert_eq!(wire.next().await["error"]["code"], -32603);
    let mut wire = Over::Memory.connect(&running);
    wire.ask(1, "resources/subscribe", json!({"uri": "file:///a"})).await;
    assert_eq!(wire.next().await["error"]["code"], -32601);
}

/// SCL-10: after a gap a client hears that its lists and its subscribed resources have changed.
#[tokio::test]
async fn a_client_hears_that_everything_has_changed_after_a_gap() {
    let bus = OddBus::new(|_| {});
    let gap = bus.clone();
    let running = running(bus).await;
    let mut wire = connected(Over::Memory, &running).await;
    subscribe(&mut wire, "subscribe", "file:///a").await;
    gap.deliver(BusMessage::Missed(Position(7)));
    for expected in [changed("tools"), changed("prompts"), changed("resources"), updated("file:///a")] {
        wire.expect(expected).await;
    }
    gap.inner.tell(&Event::PromptsChanged);
    wire.expect(changed("prompts")).await;
}
