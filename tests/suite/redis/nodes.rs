//! Messages between nodes, leases, and the log of changes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::run::RunId;
use duplexer_http::{Health, NodeListener, NodeMessage, Sent, SessionDigest};
use duplexer_server::subscriptions::{
    BusMessage, Event, EventListener, Position, Since, SubscriptionBus as _,
};
use duplexer_types::jsonrpc::RequestId;
use tokio::sync::mpsc;

use super::store::Store;

struct Inbox(mpsc::Sender<NodeMessage>);

impl NodeListener for Inbox {
    fn receive(&self, message: NodeMessage) {
        self.0.try_send(message).unwrap();
    }
}

fn messages() -> [NodeMessage; 5] {
    let session = SessionDigest::of("s");
    [
        NodeMessage::Response { session, message: "{\"id\":1}".into() },
        NodeMessage::Progress { session, message: "{}".into() },
        NodeMessage::Cancelled { session, request: RequestId::from("a") },
        NodeMessage::Deleted { session },
        NodeMessage::Posted { link: session, message: "\"x\"".into() },
    ]
}

/// SCL-43: messages arrive once, in order, also those sent before there is a listener.
#[tokio::test]
async fn messages_reach_the_inbox_of_a_run() {
    let Some(store) = Store::start("inboxes").await else { return };
    let (first, second) = (store.node().await, store.node().await);
    let (one, two) = (first.stores(), second.stores());
    let (sender, mut received) = mpsc::channel(64);
    let listener: Arc<dyn NodeListener> = Arc::new(Inbox(sender));
    for message in &messages() {
        assert_eq!(one.nodes.send(second.run(), message).await.unwrap(), Sent::Queued);
    }
    two.nodes.receive(Arc::downgrade(&listener) as Weak<_>);
    for message in messages() {
        assert_eq!(received.recv().await.unwrap(), message);
    }
    for message in messages() {
        one.nodes.send(second.run(), &message).await.unwrap();
        assert_eq!(received.recv().await.unwrap(), message);
    }
    assert!(received.try_recv().is_err());
    assert_eq!(one.nodes.send(RunId(1), &messages()[3]).await.unwrap(), Sent::Gone);
}

/// A run is alive until its lease ends, and then the node goes on as another run.
#[tokio::test]
async fn a_lost_lease_is_another_run() {
    let Some(store) = Store::start("leases").await else { return };
    let (first, second) =
        (store.node().await, store.connect().lease(Duration::from_millis(400)).await.unwrap());
    let (one, two) = (first.stores(), second.stores());
    let run = second.run();
    assert!(one.nodes.is_alive(run).await.unwrap());
    assert_eq!(two.nodes.health(), Health::Healthy);
    two.nodes.leave().await.unwrap();
    assert!(!one.nodes.is_alive(run).await.unwrap());
    while second.run() == run {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while !one.nodes.is_alive(second.run()).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(second.stats().runs, 2);
    // The new run is woken on its own channel.
    let (sender, mut received) = mpsc::channel(64);
    let listener: Arc<dyn NodeListener> = Arc::new(Inbox(sender));
    two.nodes.receive(Arc::downgrade(&listener) as Weak<_>);
    one.nodes.send(second.run(), &messages()[3]).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), messages()[3]);
}

/// A change, or the position up to which changes were missed.
type Heard = Result<(Event, Position), Position>;

fn heard() -> (EventListener, mpsc::Receiver<Heard>) {
    let (sender, received) = mpsc::channel(64);
    let listener: EventListener = Arc::new(move |message| {
        let heard = match message {
            BusMessage::Event(event, position) => Ok((event.clone(), position)),
            BusMessage::Missed(position) => Err(position),
        };
        sender.try_send(heard).unwrap();
    });
    (listener, received)
}

/// SCL-10: a change that one node publishes is heard at every node, in order.
#[tokio::test]
async fn changes_are_heard_at_every_node() {
    let Some(store) = Store::start("changes").await else { return };
    let (first, second) = (store.node().await, store.node().await);
    let (one, two) = (first.bus(), second.bus());
    let ((here, mut at_one), (there, mut at_two)) = (heard(), heard());
    let _subscriptions = (one.subscribe(here), two.subscribe(there));
    let events = [Event::ToolsChanged, Event::resource_updated("a://1"), Event::PromptsChanged];
    let start = one.latest();
    let mut positions = Vec::new();
    for event in &events {
        positions.push(one.publish(event.clone()).await.unwrap());
    }
    for received in [&mut at_one, &mut at_two] {
        for (event, position) in events.iter().zip(&positions) {
            assert_eq!(received.recv().await.unwrap(), Ok((event.clone(), *position)));
        }
    }
    let all: Vec<_> = positions.iter().copied().zip(events).collect();
    assert_eq!(two.since(start, 10).await.unwrap(), Since::Events(all.clone()));
    assert_eq!(two.since(positions[0], 1).await.unwrap(), Since::Events(vec![all[1].clone()]));
    assert_eq!(two.since(Position(77), 10).await.unwrap(), Since::Missed(positions[2]));
    assert_eq!(two.latest(), positions[2]);
}

/// SCL-10, SCL-65: a log that was lost with the data of the store is a gap, which every listener hears of. Later changes are
/// heard as before.
#[tokio::test]
async fn a_lost_log_is_a_gap() {
    let Some(store) = Store::start("a lost log").await else { return };
    let node = store.node().await;
    let bus = node.bus();
    let (listener, mut received) = heard();
    let _subscription = bus.subscribe(listener);
    let position = bus.publish(Event::ToolsChanged).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), Ok((Event::ToolsChanged, position)));
    let () = redis::cmd("DEL").arg(LOG).query_async(&mut store.commands().await).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), Err(Position(0)));
    let position = bus.publish(Event::PromptsChanged).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), Ok((Event::PromptsChanged, position)));
    assert_eq!(node.stats().changes_missed, 1);
}

/// SCL-10: a log that has ended because of its age has lost nothing.
#[tokio::test]
async fn an_expired_log_is_no_gap() {
    let Some(store) = Store::start("an expired log").await else { return };
    let mut commands = store.commands().await;
    write_old(&mut commands, Duration::from_secs(2 * 3600), 1).await;
    let node = store.node().await;
    let bus = node.bus();
    let (listener, mut received) = heard();
    let _subscription = bus.subscribe(listener);
    let () = redis::cmd("DEL").arg(LOG).query_async(&mut commands).await.unwrap();
    while bus.latest() != Position(0) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let position = bus.publish(Event::ToolsChanged).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), Ok((Event::ToolsChanged, position)));
    assert_eq!(node.stats().changes_missed, 0);
}

/// SCL-10: old changes leave the log, but not before a node that has read the last one has heard of the next.
#[tokio::test]
async fn the_age_of_the_log_is_no_gap() {
    let Some(store) = Store::start("an old log").await else { return };
    let mut commands = store.commands().await;
    write_old(&mut commands, Duration::from_secs(20 * 60), 1000).await;
    let node = store.node().await;
    let bus = node.bus();
    let (listener, mut received) = heard();
    let _subscription = bus.subscribe(listener);
    for event in [Event::ToolsChanged, Event::PromptsChanged] {
        let position = bus.publish(event.clone()).await.unwrap();
        assert_eq!(received.recv().await.unwrap(), Ok((event, position)));
    }
    let left: usize = redis::cmd("XLEN").arg(LOG).query_async(&mut commands).await.unwrap();
    assert!(left < 500, "{left}");
    assert_eq!(node.stats().changes_missed, 0);
}

const LOG: &str = "dpx1:test:{bus}:l";

/// Writes changes that were published a while ago.
async fn write_old(commands: &mut redis::aio::MultiplexedConnection, age: Duration, count: u64) {
    let (seconds, _): (u64, u64) = redis::cmd("TIME").query_async(commands).await.unwrap();
    let time = (seconds - age.as_secs()) * 1000;
    let event = serde_json::to_string(&Event::ToolsChanged).unwrap();
    for number in 0..count {
        let mut command = redis::cmd("XADD");
        command.arg(LOG).arg(format!("{time}-{}", number + 1)).arg("e").arg(&event);
        let _: String = command.query_async(commands).await.unwrap();
    }
}
