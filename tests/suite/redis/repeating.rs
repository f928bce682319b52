//! Stores that repeat an operation whose outcome is unknown, as the server does.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{
    Admission, Admitted, Appended, Attach, Attached, Batch, Change, Concluded, Created, EventStore, Health,
    NodeListener, NodeMessage, Nodes, Page, Placement, Revision, Sent, SessionRecord, SessionStore,
    SharedStores, StreamKey, Wake,
};
use duplexer_server::subscriptions::{Event, EventListener, Position, Since, Subscription, SubscriptionBus};
use duplexer_server::tasks::{
    Taker, TaskCreation, TaskId, TaskLimits, TaskOwner, TaskRecord, TaskReplacement, TaskStore, UnixMillis,
};
use duplexer_types::jsonrpc::RequestId;

/// Wraps a store.
pub struct Repeating<T: ?Sized>(pub(crate) Arc<T>);

/// Wraps the stores of a node.
pub fn stores(stores: &SharedStores) -> SharedStores {
    SharedStores::new(
        Arc::new(Repeating(Arc::clone(&stores.sessions))),
        Arc::new(Repeating(Arc::clone(&stores.events))),
        Arc::new(Repeating(Arc::clone(&stores.nodes))),
    )
}

/// Runs an operation until the store answers, for at most half a minute.
fn repeat<'a, T: 'a>(mut operation: impl FnMut() -> Answer<'a, T> + Send + 'a) -> Answer<'a, T> {
    Box::pin(async move {
        let mut attempts = 0;
        loop {
            match operation().await {
                Err(StoreError::Unavailable(_)) if attempts < 300 => attempts += 1,
                outcome => return outcome,
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl SessionStore for Repeating<dyn SessionStore> {
    fn create<'a>(&'a self, id: &'a str, record: &'a SessionRecord) -> Answer<'a, Created> {
        repeat(move || self.0.create(id, record))
    }

    fn admit<'a>(&'a self, id: &'a str, admission: Admission<'a>) -> Answer<'a, Admitted> {
        repeat(move || self.0.admit(id, admission))
    }

    fn update<'a>(&'a self, id: &'a str, changes: &'a [Change]) -> Answer<'a, Option<Revision>> {
        repeat(move || self.0.update(id, changes))
    }

    fn locate<'a>(&'a self, id: &'a str, request: &'a RequestId) -> Answer<'a, Option<Placement>> {
        repeat(move || self.0.locate(id, request))
    }

    fn release<'a>(&'a self, id: &'a str, request: &'a RequestId, placement: Placement) -> Answer<'a, ()> {
        repeat(move || self.0.release(id, request, placement))
    }

    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> Answer<'a, ()> {
        repeat(move || self.0.touch(ids))
    }

    fn delete<'a>(&'a self, id: &'a str) -> Answer<'a, Vec<Placement>> {
        repeat(move || self.0.delete(id))
    }
}

impl EventStore for Repeating<dyn EventStore> {
    fn append<'a>(&'a self, stream: &'a StreamKey, batch: Batch<'a>) -> Answer<'a, Appended> {
        repeat(move || self.0.append(stream, batch))
    }

    fn read<'a>(&'a self, stream: &'a StreamKey, after: u64, at_most: usize) -> Answer<'a, Option<Page>> {
        repeat(move || self.0.read(stream, after, at_most))
    }

    fn attach<'a>(&'a self, stream: &'a StreamKey, attach: Attach) -> Answer<'a, Attached> {
        repeat(move || self.0.attach(stream, attach))
    }

    fn detach<'a>(&'a self, stream: &'a StreamKey, reader: u64, received: u64) -> Answer<'a, ()> {
        repeat(move || self.0.detach(stream, reader, received))
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> Answer<'a, Concluded> {
        repeat(move || self.0.conclude(stream, writer, last))
    }

    fn forget<'a>(&'a self, session: &'a str) -> Answer<'a, ()> {
        repeat(move || self.0.forget(session))
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        self.0.watch(stream)
    }
}

impl Nodes for Repeating<dyn Nodes> {
    fn run(&self) -> RunId {
        self.0.run()
    }

    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> Answer<'a, Sent> {
        repeat(move || self.0.send(to, message))
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        self.0.receive(listener);
    }

    fn is_alive(&self, run: RunId) -> Answer<'_, bool> {
        repeat(move || self.0.is_alive(run))
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    fn leave(&self) -> Answer<'_, ()> {
        repeat(move || self.0.leave())
    }
}

impl SubscriptionBus for Repeating<dyn SubscriptionBus> {
    fn publish(&self, event: Event) -> Answer<'_, Position> {
        repeat(move || self.0.publish(Event::clone(&event)))
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        self.0.subscribe(listener)
    }

    fn since(&self, position: Position, at_most: usize) -> Answer<'_, Since> {
        repeat(move || self.0.since(position, at_most))
    }

    fn latest(&self) -> Position {
        self.0.latest()
    }
}

impl TaskStore for Repeating<dyn TaskStore> {
    fn create(&self, record: Arc<TaskRecord>, limits: TaskLimits) -> Answer<'_, TaskCreation> {
        repeat(move || self.0.create(Arc::clone(&record), limits.clone()))
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> Answer<'a, Option<Arc<TaskRecord>>> {
        repeat(move || self.0.get(id))
    }

    fn put(&self, record: Arc<TaskRecord>) -> Answer<'_, TaskReplacement> {
        repeat(move || self.0.put(Arc::clone(&record)))
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> Answer<'_, Vec<Arc<TaskRecord>>> {
        repeat(move || self.0.list(owner.clone(), after.clone(), most))
    }

    fn renew(&self, taker: Taker, now: UnixMillis) -> Answer<'_, Vec<TaskId>> {
        repeat(move || self.0.renew(taker, now))
    }

    fn take_over(&self, taker: Taker, now: UnixMillis, most: usize) -> Answer<'_, Vec<Arc<TaskRecord>>> {
        repeat(move || self.0.take_over(taker, now, most))
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> Answer<'_, Option<UnixMillis>> {
        repeat(move || self.0.sweep(now, most))
    }
}
