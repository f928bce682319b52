//! The engine: runs tasks, answers for them, and keeps them alive. One per run of a server.
//!
//! A change reads the record, applies the change and replaces it; it starts over if another change was first. Only the run
//! that holds the lease of a task ends it, so no task ends twice.

mod create;
mod run;
mod upkeep;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, Cancellation, Channel, lock};
use duplexer_core::error::{McpError, StoreError};
use duplexer_core::run::RunId;
use duplexer_core::tasks::TaskTracker;
use duplexer_types::error::ErrorCode;
use duplexer_types::version::{Era, ProtocolVersion};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;

use super::Plan;
use super::change::{Applied, Author, Change, Refused};
use super::limits::STORE_TIMEOUT;
use super::record::{TaskId, TaskRecord};
use super::store::TaskReplacement;
use super::time::TaskClock;
use super::view;
use crate::features::subscriptions::{BusMessage, Event, Subscription};
use crate::kernel::principal::Principal;
use crate::registry::WeakServer;
use duplexer_types::task::{DetailedTask, Task};

pub(crate) use create::NewTask;
pub(crate) use run::Work;

/// How often a change is tried again because another one was first.
const MAX_TRIES: usize = 64;

pub(crate) struct Engine {
    pub(super) run: RunId,
    pub(super) plan: Plan,
    pub(super) clock: TaskClock,
    pub(super) work: Workload,
    /// Open `tasks/result` requests, whose streams carry the questions of their tasks (2025-11-25).
    streams: Mutex<HashMap<TaskId, Vec<Arc<dyn Channel>>>>,
    server: Mutex<WeakServer>,
    /// When unknown ids were last logged.
    unknown_logged: AtomicU64,
    /// Keeps the engine subscribed to changes by other nodes.
    _subscription: Option<Subscription>,
}

/// The tasks of this run.
pub(super) struct Workload {
    /// Owns everything that the engine spawns.
    pub(super) tracker: TaskTracker,
    /// Permits to run at once.
    pub(super) slots: Arc<Semaphore>,
    /// Number of unfinished tasks of this run.
    pub(super) held: AtomicUsize,
    /// New tasks are refused from here on.
    pub(super) closing: Cancellation,
    /// Running tasks are dropped from here on.
    pub(super) stopping: Cancellation,
    pub(super) upkeep: Arc<Notify>,
    /// When the upkeep runs next, in milliseconds since 1970.
    pub(super) next_upkeep: AtomicU64,
}

/// Why a change did not happen.
#[derive(Debug)]
pub(crate) enum Unchanged {
    /// There is no such task.
    Unknown,
    /// The state of the task does not permit it.
    Refused(Refused),
    /// The store has failed.
    Store(StoreError),
}

impl From<StoreError> for Unchanged {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Unchanged> for McpError {
    fn from(error: Unchanged) -> Self {
        match error {
            Unchanged::Unknown => unknown(),
            Unchanged::Refused(Refused::Limit(text)) => Self::new(ErrorCode::INVALID_PARAMS, text),
            Unchanged::Refused(Refused::Final) => Self::new(ErrorCode::INVALID_PARAMS, "The task has ended"),
            Unchanged::Refused(Refused::Fenced) => Self::internal("another node has taken the task over"),
            Unchanged::Store(error) => Self::internal(error),
        }
    }
}

/// The one error for tasks that do not exist, have expired, or belong to another principal.
pub(crate) fn unknown() -> McpError {
    McpError::new(ErrorCode::INVALID_PARAMS, "Unknown task")
}

impl Engine {
    pub(crate) fn new(plan: Plan, server: WeakServer) -> Self {
        let subscription = plan.bus.as_ref().map(|bus| {
            plan.hub.attach(bus);
            let hub = Arc::downgrade(&plan.hub);
            bus.subscribe(Arc::new(move |message| {
                let Some(hub) = hub.upgrade() else { return };
                match message {
                    BusMessage::Event(Event::TaskChanged { id }, _) => hub.notify(&TaskId::from(&**id)),
                    BusMessage::Event(..) => {}
                    BusMessage::Missed(_) => hub.notify_all(),
                }
            }))
        });
        let slots = Arc::new(Semaphore::new(plan.settings.running.clamp(1, Semaphore::MAX_PERMITS)));
        let work = Workload {
            tracker: TaskTracker::new(),
            slots,
            held: AtomicUsize::new(0),
            closing: Cancellation::new(),
            stopping: Cancellation::new(),
            upkeep: Arc::new(Notify::new()),
            next_upkeep: AtomicU64::new(0),
        };
        Self {
            run: RunId::random(),
            plan,
            clock: TaskClock::start(),
            work,
            streams: Mutex::default(),
            server: Mutex::new(server),
            unknown_logged: AtomicU64::new(0),
            _subscription: subscription,
        }
    }

    /// Sets the server that runs tasks again.
    pub(crate) fn set_server(&self, server: WeakServer) {
        *lock(&self.server) = server;
    }

    /// Returns the task with this id, if the principal may see it.
    pub(crate) async fn find(
        &self,
        id: &TaskId,
        principal: Option<&Principal>,
    ) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        let found = self.get(id).await?;
        let now = self.clock.now();
        let is_kept = |record: &TaskRecord| record.times.forgotten().is_none_or(|forgotten| forgotten > now);
        Ok(found.filter(|record| record.belongs_to(principal) && is_kept(record)))
    }

    pub(super) async fn get(&self, id: &TaskId) -> Result<Option<Arc<TaskRecord>>, StoreError> {
        get(&self.plan, id).await
    }

    /// Applies a change and returns the record after it.
    pub(crate) async fn update(
        &self,
        id: &TaskId,
        author: Author,
        change: &Change,
    ) -> Result<Arc<TaskRecord>, Unchanged> {
        update(&self.plan, self.clock, id, author, change).await
    }

    /// Returns the state of a task for clients of a revision.
    pub(crate) fn task(&self, record: &TaskRecord, version: ProtocolVersion) -> Task {
        let id = record.id.clone();
        view::task(record, id, version.era(), || self.clock.now(), self.plan.settings.poll_interval)
    }

    /// Returns the task with its questions, result or error.
    pub(crate) fn detailed(&self, record: &TaskRecord, id: TaskId, era: Era) -> DetailedTask {
        view::detailed(record, id, era, || self.clock.now(), self.plan.settings.poll_interval)
    }

    /// Returns what is notified of every change of a task.
    pub(crate) fn watch(&self, id: &TaskId) -> Arc<Notify> {
        self.plan.hub.watch(id)
    }

    /// Logs that a client has asked for tasks that are unknown to it, at most once a minute.
    pub(crate) fn note_unknown(&self) {
        let (now, last) = (self.clock.now().0, self.unknown_logged.load(Ordering::Relaxed));
        let swap = || self.unknown_logged.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if now.saturating_sub(last) >= 60_000 && swap().is_ok() {
            tracing::warn!("clients ask for tasks that do not exist, or not for them");
        }
    }

    /// Lets the questions of a task use the stream of a request, until the guard is dropped.
    pub(crate) fn open_stream(self: &Arc<Self>, id: &TaskId, channel: Arc<dyn Channel>) -> OpenStream {
        lock(&self.streams).entry(id.clone()).or_default().push(Arc::clone(&channel));
        self.plan.hub.notify(id);
        OpenStream { engine: Arc::clone(self), id: id.clone(), channel }
    }

    /// Returns the newest open stream of a task.
    pub(super) fn stream(&self, id: &TaskId) -> Option<Arc<dyn Channel>> {
        lock(&self.streams).get(id).and_then(|open| open.last()).map(Arc::clone)
    }

    /// Counts a task of this run as ended. The upkeep of a server that shuts down ends with the last one.
    pub(super) fn release(&self) {
        self.work.held.fetch_sub(1, Ordering::AcqRel);
        if self.work.closing.is_cancelled() {
            self.work.upkeep.notify_one();
        }
    }

    /// Returns the cancellation that occurs when running tasks are dropped.
    pub(super) fn stopping(&self) -> &Cancellation {
        &self.work.stopping
    }

    pub(super) fn renewal(&self) -> Duration {
        self.plan.settings.lease / 3
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.work.upkeep.notify_one();
    }
}

/// Reads a task. A store that returns another one has failed: a client must not see a task under a foreign id.
pub(super) async fn get(plan: &Plan, id: &TaskId) -> Result<Option<Arc<TaskRecord>>, StoreError> {
    match within(plan.store.get(id)).await? {
        Some(record) if record.id != *id => {
            Err(StoreError::Failed("the store has returned another task than the requested one".into()))
        }
        found => Ok(found),
    }
}

/// Applies a change to the record of a store, and tells everybody.
pub(super) async fn update(
    plan: &Plan,
    clock: TaskClock,
    id: &TaskId,
    author: Author,
    change: &Change,
) -> Result<Arc<TaskRecord>, Unchanged> {
    for _ in 0..MAX_TRIES {
        let Some(record) = get(plan, id).await? else { return Err(Unchanged::Unknown) };
        // First, so that a record is not copied for a change that comes too late.
        if record.permits(change, author).map_err(Unchanged::Refused)? == Applied::Unchanged {
            return Ok(record);
        }
        let mut next = (*record).clone();
        let applied = next.apply(change, author, clock.now(), &plan.settings.limits);
        if applied.map_err(Unchanged::Refused)? == Applied::Unchanged {
            return Ok(record);
        }
        let next = Arc::new(next);
        match within(plan.store.put(Arc::clone(&next))).await? {
            TaskReplacement::Stored => {
                plan.hub.announce(id).await;
                return Ok(next);
            }
            TaskReplacement::Superseded => {}
            TaskReplacement::Gone => return Err(Unchanged::Unknown),
        }
    }
    Err(StoreError::Unavailable("the task is changed without end by others".into()).into())
}

/// Bounds an operation of a store: one that hangs has failed.
pub(super) async fn within<T>(mut operation: BoxFuture<'_, Result<T, StoreError>>) -> Result<T, StoreError> {
    // Operations in memory are ready at once, and need no timer.
    let at_once = |cx: &mut std::task::Context<'_>| Poll::Ready(operation.as_mut().poll(cx));
    if let Poll::Ready(done) = std::future::poll_fn(at_once).await {
        return done;
    }
    match timeout(STORE_TIMEOUT, operation).await {
        Ok(done) => done,
        Err(_) => Err(StoreError::Unavailable("the store did not respond in time".into())),
    }
}

/// An open stream for the questions of a task.
pub(crate) struct OpenStream {
    engine: Arc<Engine>,
    id: TaskId,
    channel: Arc<dyn Channel>,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = lock(&self.engine.streams);
        if let Some(open) = streams.get_mut(&self.id) {
            open.retain(|channel| !Arc::ptr_eq(channel, &self.channel));
            if open.is_empty() {
                streams.remove(&self.id);
            }
        }
    }
}
