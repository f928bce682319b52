//! Several nodes in one process, with shared stores in memory: for tests, and as a model for distributed stores.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;

use super::{
    Health, MemoryEventStore, MemorySessionStore, NodeListener, NodeMessage, Nodes, Reach, Sent, SharedStores,
};
use crate::sync::{Mutex, lock};

/// Messages that wait in the inbox of a node without a listener.
const MAX_MESSAGES: usize = 10_000;

/// Nodes that share stores in memory.
///
/// ```
/// # use duplexer_server::Server;
/// use std::time::Duration;
///
/// use duplexer_http::{MemoryCluster, StreamableHttp};
///
/// let cluster = MemoryCluster::new(Duration::from_secs(30 * 60));
/// for _ in 0..3 {
///     let server = Server::builder("notes", "1.0.0").build()?;
///     let service = StreamableHttp::builder(server).scale_out(cluster.node()).build()?;
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryCluster {
    sessions: Arc<MemorySessionStore>,
    events: Arc<MemoryEventStore>,
    inboxes: Arc<Mutex<Inboxes>>,
}

type Inboxes = HashMap<RunId, Inbox>;

#[derive(Default)]
struct Inbox {
    listener: Option<Weak<dyn NodeListener>>,
    waiting: VecDeque<NodeMessage>,
}

impl MemoryCluster {
    /// Creates stores that remove sessions which have not been used for `idle`.
    pub fn new(idle: Duration) -> Self {
        let events = Arc::new(MemoryEventStore::new());
        let sessions = MemorySessionStore::new(idle, Arc::clone(&events));
        Self { sessions, events, inboxes: Arc::default() }
    }

    /// Starts a run, and returns the stores of its node.
    pub fn node(&self) -> SharedStores {
        let run = RunId::random();
        lock(&self.inboxes).insert(run, Inbox::default());
        let node = Node { run, inboxes: Arc::clone(&self.inboxes) };
        SharedStores {
            sessions: Arc::clone(&self.sessions) as _,
            events: Arc::clone(&self.events) as _,
            nodes: Arc::new(node),
            reach: Reach::Process,
        }
    }

    /// Ends the lease of a run, as if its process had died.
    pub fn end_lease(&self, run: RunId) {
        lock(&self.inboxes).remove(&run);
    }
}

impl fmt::Debug for MemoryCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCluster").field("runs", &lock(&self.inboxes).len()).finish_non_exhaustive()
    }
}

/// One node. Its lease ends when it leaves, or when its stores are dropped.
struct Node {
    run: RunId,
    inboxes: Arc<Mutex<Inboxes>>,
}

impl Node {
    fn deliver(&self, to: RunId, message: &NodeMessage) -> Result<Sent, StoreError> {
        let mut inboxes = lock(&self.inboxes);
        let Some(inbox) = inboxes.get_mut(&to) else { return Ok(Sent::Gone) };
        let Some(listener) = inbox.listener.clone() else {
            if inbox.waiting.len() >= MAX_MESSAGES {
                return Err(StoreError::Full);
            }
            inbox.waiting.push_back(message.clone());
            return Ok(Sent::Queued);
        };
        drop(inboxes);
        if let Some(listener) = listener.upgrade() {
            listener.receive(message.clone());
        }
        Ok(Sent::Queued)
    }
}

impl Nodes for Node {
    fn run(&self) -> RunId {
        self.run
    }

    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>> {
        Box::pin(ready(self.deliver(to, message)))
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        let waiting = lock(&self.inboxes).get_mut(&self.run).map(|inbox| {
            inbox.listener = Some(Weak::clone(&listener));
            std::mem::take(&mut inbox.waiting)
        });
        for message in waiting.into_iter().flatten() {
            if let Some(listener) = listener.upgrade() {
                listener.receive(message);
            }
        }
    }

    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(ready(Ok(lock(&self.inboxes).contains_key(&run))))
    }

    fn health(&self) -> Health {
        if lock(&self.inboxes).contains_key(&self.run) { Health::Healthy } else { Health::Disconnected }
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        lock(&self.inboxes).remove(&self.run);
        Box::pin(ready(Ok(())))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        lock(&self.inboxes).remove(&self.run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionDigest;

    #[derive(Default)]
    struct Received(Mutex<Vec<NodeMessage>>);

    impl NodeListener for Received {
        fn receive(&self, message: NodeMessage) {
            lock(&self.0).push(message);
        }
    }

    fn deleted(session: &str) -> NodeMessage {
        NodeMessage::Deleted { session: SessionDigest::of(session) }
    }

    /// SCL-43: a message reaches the inbox of its run, also before that listens. One to a run without a lease is dropped.
    #[tokio::test]
    async fn a_message_reaches_the_run_it_names() {
        let cluster = MemoryCluster::new(Duration::from_secs(60));
        let (a, b) = (cluster.node().nodes, cluster.node().nodes);
        assert_ne!(a.run(), b.run());
        assert_eq!(a.send(b.run(), &deleted("1")).await.unwrap(), Sent::Queued);
        let received = Arc::new(Received::default());
        let listener = Arc::downgrade(&received);
        b.receive(listener);
        assert_eq!(a.send(b.run(), &deleted("2")).await.unwrap(), Sent::Queued);
        assert_eq!(*lock(&received.0), [deleted("1"), deleted("2")]);
        assert!(a.is_alive(b.run()).await.unwrap());
        b.leave().await.unwrap();
        assert_eq!(a.send(b.run(), &deleted("3")).await.unwrap(), Sent::Gone);
        assert!(!a.is_alive(b.run()).await.unwrap());
        assert_eq!((a.health(), b.health()), (Health::Healthy, Health::Disconnected));
        let run = a.run();
        drop(a);
        assert!(!b.is_alive(run).await.unwrap(), "a node that is dropped is not alive");
    }
}
