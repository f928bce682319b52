//! Laws of nodes: inboxes and leases.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::fresh::random;
use super::{Outcome, StoresUnderTest, ensure, ensure_eq};
use crate::http::{Health, NodeListener, NodeMessage, Sent, SessionDigest};

/// Records what an inbox receives.
#[derive(Default)]
struct Inbox {
    received: Mutex<Vec<NodeMessage>>,
    changed: Notify,
}

impl NodeListener for Inbox {
    fn receive(&self, message: NodeMessage) {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        self.changed.notify_one();
    }
}

impl Inbox {
    fn received(&self) -> Vec<NodeMessage> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until(&self, count: usize) {
        while self.received().len() < count {
            self.changed.notified().await;
        }
    }
}

pub(super) async fn runs_are_different(stores: &dyn StoresUnderTest) -> Outcome {
    let nodes = [stores.node().await?, stores.node().await?, stores.node().await?];
    let mut runs: Vec<_> = nodes.iter().map(|node| node.shared.nodes.run()).collect();
    ensure_eq!(nodes[0].shared.nodes.run(), runs[0], "the run of a node that lives");
    runs.sort();
    runs.dedup();
    ensure_eq!(runs.len(), nodes.len(), "the number of different runs");
    for node in &nodes {
        ensure!(nodes[0].shared.nodes.is_alive(node.shared.nodes.run()).await?, "a node that runs is alive");
        ensure_eq!(node.shared.nodes.health(), Health::Healthy, "the health of a node that runs");
    }
    Ok(())
}

/// SCL-43: also what arrives before the node listens. A message of an unknown session is not lost, its receiver drops it.
pub(super) async fn a_message_reaches_the_inbox_of_its_run_in_order(stores: &dyn StoresUnderTest) -> Outcome {
    let (a, b, c) = (stores.node().await?, stores.node().await?, stores.node().await?);
    let session = SessionDigest::of(&random().to_string());
    let message = |number: usize| NodeMessage::Progress { session, message: Bytes::from(number.to_string()) };
    let (inbox, other) = (Arc::new(Inbox::default()), Arc::new(Inbox::default()));
    let as_listener = |inbox: &Arc<Inbox>| {
        let listener: Arc<dyn NodeListener> = Arc::clone(inbox) as _;
        Arc::downgrade(&listener)
    };
    let listener: Weak<dyn NodeListener> = as_listener(&other);
    c.shared.nodes.receive(listener);
    for number in 0..8 {
        if number == 4 {
            b.shared.nodes.receive(as_listener(&inbox));
        }
        let sender = if number % 2 == 0 { &a } else { &b };
        let sent = sender.shared.nodes.send(b.shared.nodes.run(), &message(number)).await?;
        ensure_eq!(sent, Sent::Queued, "message {number}");
    }
    let arrived = timeout(stores.limits().delay, inbox.until(8)).await;
    ensure!(arrived.is_ok(), "only {} of 8 messages arrived", inbox.received().len());
    let expected: Vec<_> = (0..8).map(message).collect();
    ensure_eq!(inbox.received(), expected, "the messages of an inbox");
    ensure_eq!(other.received(), Vec::new(), "the messages of another inbox");
    Ok(())
}

pub(super) async fn a_run_that_has_left_is_dead(stores: &dyn StoresUnderTest) -> Outcome {
    let (a, b, c) = (stores.node().await?, stores.node().await?, stores.node().await?);
    let (left, dropped) = (b.shared.nodes.run(), c.shared.nodes.run());
    for _ in 0..2 {
        b.shared.nodes.leave().await?;
    }
    drop(c);
    let message = NodeMessage::Deleted { session: SessionDigest::of("none") };
    ensure!(!a.shared.nodes.is_alive(left).await?, "a run that has left is not alive");
    let sent = a.shared.nodes.send(left, &message).await?;
    ensure_eq!(sent, Sent::Gone, "a message to a run that has left");
    sleep(stores.limits().lease).await;
    ensure!(
        !a.shared.nodes.is_alive(dropped).await?,
        "a run whose node is gone is not alive after its lease"
    );
    let sent = a.shared.nodes.send(dropped, &message).await?;
    ensure_eq!(sent, Sent::Gone, "a message to a run whose lease has ended");
    ensure!(a.shared.nodes.is_alive(a.shared.nodes.run()).await?, "the other runs stay alive");
    Ok(())
}
