//! Stores with one deliberate fault each.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use duplexer_core::run::RunId;

use super::super::NodeStores;
use crate::dispatch::BoxFuture;
use crate::error::StoreError;
use crate::http::{
    Admission, Admitted, Appended, Attach, Attached, Batch, Change, Concluded, Created, EventStore, Health,
    NodeListener, NodeMessage, Nodes, Numbering, Page, Placement, Revision, Sent, SessionRecord,
    SessionStore, SharedStores, StreamKey, Takeover, Wake,
};
use crate::server::subscriptions::{Event, EventListener, Position, Since, Subscription, SubscriptionBus};
use crate::tasks::{
    Taker, TaskCreation, TaskId, TaskLimits, TaskOwner, TaskRecord, TaskReplacement, TaskStore, UnixMillis,
};
use crate::types::jsonrpc::RequestId;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    SecondCreationSucceeds,
    StrangerHearsOfRequest,
    AnyRunReleases,
    NoBoundOfRequests,
    StaleRecord,
    LostUpdates,
    DeletionForgetsRequests,
    TouchIsIgnored,
    PagesWithoutEnd,
    RepetitionIsAppended,
    AnyRunWrites,
    TokensAreIgnored,
    PositionsAreIgnored,
    HolesAreHidden,
    QuestionsAreEvicted,
    NoWakeUps,
    EventsAfterTheEnd,
    AnyWriterIsConcluded,
    SecondReader,
    AnyReaderIsDetached,
    MessagesAreLost,
    DeadRunsLive,
    ChangesAreDoubled,
    GapsAreHidden,
    LogRepeatsPosition,
    UnsubscribeIsIgnored,
    AnyRevisionIsStored,
    NoBoundOfTasks,
    OwnersAreIgnored,
    LeasesAreIgnored,
    LossesAreHidden,
    NothingIsSwept,
}

/// Each fault, and the law that it breaks first.
pub(super) const FAULTS: &[(Fault, &str)] = &[
    (Fault::SecondCreationSucceeds, "a_session_is_created_once"),
    (Fault::StrangerHearsOfRequest, "a_message_of_another_principal_changes_nothing"),
    (Fault::AnyRunReleases, "a_request_is_in_flight_once_in_all_nodes"),
    (Fault::NoBoundOfRequests, "the_requests_in_flight_of_a_session_are_bounded"),
    (Fault::StaleRecord, "a_node_gets_the_record_when_another_has_changed_it"),
    (Fault::LostUpdates, "concurrent_changes_are_all_kept"),
    (Fault::DeletionForgetsRequests, "a_deleted_session_stays_deleted"),
    (Fault::TouchIsIgnored, "use_renews_a_session_and_a_stranger_does_not"),
    (Fault::PagesWithoutEnd, "events_are_read_in_order_and_in_pages"),
    (Fault::RepetitionIsAppended, "a_repeated_batch_is_stored_once"),
    (Fault::AnyRunWrites, "a_stream_has_one_writer"),
    (Fault::TokensAreIgnored, "several_writers_share_one_numbering"),
    (Fault::PositionsAreIgnored, "changes_are_written_once_by_their_position"),
    (Fault::HolesAreHidden, "a_stream_is_bounded_and_shows_its_hole"),
    (Fault::QuestionsAreEvicted, "an_unanswered_event_is_never_evicted"),
    (Fault::NoWakeUps, "a_watcher_is_woken_by_another_node"),
    (Fault::EventsAfterTheEnd, "a_stream_ends_once"),
    (Fault::AnyWriterIsConcluded, "a_dead_writers_stream_is_concluded_once"),
    (Fault::SecondReader, "a_stream_has_one_reader"),
    (Fault::AnyReaderIsDetached, "a_replaced_reader_does_not_detach_its_successor"),
    (Fault::MessagesAreLost, "a_message_reaches_the_inbox_of_its_run_in_order"),
    (Fault::DeadRunsLive, "a_run_that_has_left_is_dead"),
    (Fault::ChangesAreDoubled, "a_change_is_heard_at_every_node_once_and_in_order"),
    (Fault::GapsAreHidden, "the_log_is_bounded_and_admits_what_it_dropped"),
    (Fault::LogRepeatsPosition, "the_log_returns_what_happened_since_a_position"),
    (Fault::UnsubscribeIsIgnored, "a_listener_that_has_unsubscribed_hears_nothing"),
    (Fault::AnyRevisionIsStored, "a_task_is_replaced_by_its_next_revision_only"),
    (Fault::NoBoundOfTasks, "tasks_are_bounded_per_owner_and_in_all"),
    (Fault::OwnersAreIgnored, "a_list_has_the_tasks_of_one_owner"),
    (Fault::LeasesAreIgnored, "a_task_is_taken_over_once_its_lease_has_ended"),
    (Fault::LossesAreHidden, "a_task_is_taken_over_once_its_lease_has_ended"),
    (Fault::NothingIsSwept, "an_ended_task_is_deleted_after_its_retention"),
];

/// Returns the stores of a node with a fault.
pub(super) fn faulty(node: &NodeStores, fault: Fault) -> NodeStores {
    let store = Arc::new(Faulty {
        inner: node.shared.clone(),
        bus: Arc::clone(&node.bus),
        tasks: Arc::clone(&node.tasks),
        fault,
        updates: AtomicUsize::new(0),
        numbers: Mutex::default(),
    });
    let shared = SharedStores::new(Arc::clone(&store) as _, Arc::clone(&store) as _, Arc::clone(&store) as _);
    NodeStores { shared, bus: Arc::clone(&store) as _, tasks: store }
}

struct Faulty {
    inner: SharedStores,
    bus: Arc<dyn SubscriptionBus>,
    tasks: Arc<dyn TaskStore>,
    fault: Fault,
    updates: AtomicUsize,
    /// Last number of each stream that this node writes.
    numbers: Mutex<HashMap<StreamKey, u64>>,
}

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl SessionStore for Faulty {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: &'a SessionRecord,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(async move {
            let created = self.inner.sessions.create(id, record).await?;
            Ok(if self.has(Fault::SecondCreationSucceeds) { Created::New } else { created })
        })
    }

    fn admit<'a>(
        &'a self,
        id: &'a str,
        admission: Admission<'a>,
    ) -> BoxFuture<'a, Result<Admitted, StoreError>> {
        Box::pin(async move {
            Ok(match (self.inner.sessions.admit(id, admission).await?, self.fault) {
                (Admitted::Unknown, Fault::StrangerHearsOfRequest) if admission.principal.is_some() => {
                    Admitted::InFlight
                }
                (Admitted::TooMany, Fault::NoBoundOfRequests) => Admitted::Current,
                (Admitted::Record(..), Fault::StaleRecord) if admission.known.is_some() => Admitted::Current,
                (admitted, _) => admitted,
            })
        })
    }

    fn update<'a>(
        &'a self,
        id: &'a str,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Option<Revision>, StoreError>> {
        let is_lost = self.updates.fetch_add(1, Ordering::Relaxed) % 4 == 3;
        let changes = if is_lost && self.has(Fault::LostUpdates) { &[] } else { changes };
        self.inner.sessions.update(id, changes)
    }

    fn locate<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<Placement>, StoreError>> {
        self.inner.sessions.locate(id, request)
    }

    fn release<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
        placement: Placement,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let known = self.inner.sessions.locate(id, request).await?;
            let owner = known.filter(|_| self.has(Fault::AnyRunReleases));
            self.inner.sessions.release(id, request, owner.unwrap_or(placement)).await
        })
    }

    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.sessions.touch(if self.has(Fault::TouchIsIgnored) { &[] } else { ids })
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Placement>, StoreError>> {
        Box::pin(async move {
            let placements = self.inner.sessions.delete(id).await?;
            Ok(if self.has(Fault::DeletionForgetsRequests) { Vec::new() } else { placements })
        })
    }
}

impl EventStore for Faulty {
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        mut batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(async move {
            match (self.fault, batch.numbering) {
                (Fault::RepetitionIsAppended, Numbering::From(_)) if !batch.events.is_empty() => {
                    let mut numbers = self.numbers.lock().unwrap();
                    let last = numbers.entry(stream.clone()).or_default();
                    batch.numbering = Numbering::From(*last + 1);
                    *last += batch.events.len() as u64;
                }
                (Fault::AnyRunWrites, _) => {
                    let page = self.inner.events.read(stream, 0, 0).await?;
                    batch.writer = page.and_then(|page| page.writer).unwrap_or(batch.writer);
                }
                (Fault::TokensAreIgnored, Numbering::Next { position, .. }) => {
                    let token = super::super::fresh::random().into();
                    batch.numbering = Numbering::Next { token, position };
                }
                (Fault::PositionsAreIgnored, Numbering::Next { token, .. }) => {
                    batch.numbering = Numbering::Next { token, position: None };
                }
                (Fault::QuestionsAreEvicted, _) => batch.unanswered = None,
                _ => {}
            }
            let appended = self.inner.events.append(stream, batch).await?;
            let page = self.inner.events.read(stream, 0, usize::MAX).await?;
            let has_ended = page.is_some_and(|page| page.ended && page.writer == Some(batch.writer));
            Ok(match appended {
                Appended::Closed if self.has(Fault::EventsAfterTheEnd) && has_ended => {
                    Appended::UpTo { last: 0, reader: None }
                }
                appended => appended,
            })
        })
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>> {
        Box::pin(async move {
            let at_most = if self.has(Fault::PagesWithoutEnd) { usize::MAX } else { at_most };
            let page = self.inner.events.read(stream, after, at_most).await?;
            Ok(page.map(|mut page| {
                if self.has(Fault::HolesAreHidden) {
                    page.first = after + 1;
                }
                page
            }))
        })
    }

    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        mut attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>> {
        if self.has(Fault::SecondReader) {
            attach.takeover = Takeover::Always;
        }
        self.inner.events.attach(stream, attach)
    }

    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let page = self.inner.events.read(stream, 0, 0).await?;
            let current = page.and_then(|page| page.reader).filter(|_| self.has(Fault::AnyReaderIsDetached));
            let reader = current.map_or(reader, |current| current.number);
            self.inner.events.detach(stream, reader, received).await
        })
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>> {
        Box::pin(async move {
            let page = self.inner.events.read(stream, 0, 0).await?;
            let actual = page.and_then(|page| page.writer).filter(|_| self.has(Fault::AnyWriterIsConcluded));
            self.inner.events.conclude(stream, actual.unwrap_or(writer), last).await
        })
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.events.forget(session)
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        if self.has(Fault::NoWakeUps) {
            Wake::new(std::future::pending())
        } else {
            self.inner.events.watch(stream)
        }
    }
}

impl Nodes for Faulty {
    fn run(&self) -> RunId {
        self.inner.nodes.run()
    }

    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>> {
        if self.has(Fault::MessagesAreLost) {
            return Box::pin(std::future::ready(Ok(Sent::Queued)));
        }
        self.inner.nodes.send(to, message)
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        self.inner.nodes.receive(listener);
    }

    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>> {
        if self.has(Fault::DeadRunsLive) {
            return Box::pin(std::future::ready(Ok(true)));
        }
        self.inner.nodes.is_alive(run)
    }

    fn health(&self) -> Health {
        self.inner.nodes.health()
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.nodes.leave()
    }
}

impl SubscriptionBus for Faulty {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move {
            if self.has(Fault::ChangesAreDoubled) {
                self.bus.publish(event.clone()).await?;
            }
            self.bus.publish(event).await
        })
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        let subscription = self.bus.subscribe(listener);
        if self.has(Fault::UnsubscribeIsIgnored) {
            std::mem::forget(subscription);
            return Subscription::new(|| {});
        }
        subscription
    }

    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
        Box::pin(async move {
            let position = match self.fault {
                Fault::LogRepeatsPosition => Position(position.0.saturating_sub(1)),
                _ => position,
            };
            Ok(match self.bus.since(position, at_most).await? {
                Since::Missed(_) if self.has(Fault::GapsAreHidden) => Since::Events(Vec::new()),
                since => since,
            })
        })
    }

    fn latest(&self) -> Position {
        self.bus.latest()
    }
}

impl TaskStore for Faulty {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        let limits = if self.has(Fault::NoBoundOfTasks) { TaskLimits::default() } else { limits };
        self.tasks.create(record, limits)
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        self.tasks.get(id)
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        Box::pin(async move {
            let put = self.tasks.put(record).await?;
            let is_hidden = put == TaskReplacement::Superseded && self.has(Fault::AnyRevisionIsStored);
            Ok(if is_hidden { TaskReplacement::Stored } else { put })
        })
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        let owner = owner.filter(|_| !self.has(Fault::OwnersAreIgnored));
        self.tasks.list(owner, after, most)
    }

    fn renew(&self, taker: Taker, now: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        Box::pin(async move {
            let lost = self.tasks.renew(taker, now).await?;
            Ok(if self.has(Fault::LossesAreHidden) { Vec::new() } else { lost })
        })
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        let now = if self.has(Fault::LeasesAreIgnored) { UnixMillis(u64::MAX) } else { now };
        self.tasks.take_over(taker, now, most)
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        self.tasks.sweep(now, if self.has(Fault::NothingIsSwept) { 0 } else { most })
    }
}
