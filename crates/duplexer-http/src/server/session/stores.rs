//! The stores of one service, all behind one guard. Exists only if there is an event store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_core::tasks::TaskTracker;
use duplexer_types::jsonrpc::RequestId;
use tokio::time::Instant;

use super::store::StoreGuard;
use crate::server::config::SessionSettings;
use crate::session::{
    Appended, Attach, Attached, Batch, Concluded, EventStore, NodeMessage, Page, Sent, SharedStores,
    StreamKey, Wake,
};
use crate::sync::{Mutex, lock};

/// Time for which the liveness of a run is remembered.
const ALIVE: Duration = Duration::from_secs(1);
/// Number of runs whose liveness is remembered.
const MAX_RUNS: usize = 1024;

/// The stores of one service.
pub(in crate::server) struct Stores {
    events: Arc<dyn EventStore>,
    shared: Option<SharedStores>,
    guard: StoreGuard,
    /// The run of a service without shared stores.
    run: RunId,
    tasks: TaskTracker,
    alive: Mutex<HashMap<RunId, (Instant, bool)>>,
    /// Number of requests to clients.
    questions: AtomicU64,
}

impl Stores {
    /// Returns the stores that the settings name, if there are any.
    pub(in crate::server) fn new(settings: &SessionSettings, tasks: &TaskTracker) -> Option<Arc<Self>> {
        let events = settings.events.clone()?;
        Some(Arc::new(Self {
            events,
            shared: settings.shared.clone(),
            guard: StoreGuard::new(settings.stores),
            run: RunId::random(),
            tasks: tasks.clone(),
            alive: Mutex::default(),
            questions: AtomicU64::new(0),
        }))
    }

    pub(in crate::server) fn run(&self) -> RunId {
        self.shared.as_ref().map_or(self.run, |shared| shared.nodes.run())
    }

    /// Returns the stores that other nodes use too.
    pub(in crate::server) fn shared(&self) -> Option<&SharedStores> {
        self.shared.as_ref()
    }

    pub(super) fn guard(&self) -> &StoreGuard {
        &self.guard
    }

    /// Returns the id of a new request to a client: it names this run, because the response can arrive at another node.
    pub(super) fn question_id(&self) -> RequestId {
        let number = self.questions.fetch_add(1, Ordering::Relaxed) + 1;
        RequestId::from(format!("{}.{number}", self.run()).as_str())
    }

    /// Spawns work that no request awaits.
    pub(in crate::server) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        }
    }

    /// Opens the stream of a request, unless its admission has done so.
    pub(super) async fn open(&self, key: &StreamKey, request: &RequestId) -> Result<(), StoreError> {
        if self.shared.is_some() {
            return Ok(());
        }
        self.append(key, Batch::open(self.run, request)).await.map(drop)
    }

    pub(super) async fn append(&self, key: &StreamKey, batch: Batch<'_>) -> Result<Appended, StoreError> {
        self.guard.run(|| self.events.append(key, batch)).await
    }

    pub(super) async fn read(
        &self,
        key: &StreamKey,
        after: u64,
        at_most: usize,
    ) -> Result<Option<Page>, StoreError> {
        self.guard.run(|| self.events.read(key, after, at_most)).await
    }

    pub(super) async fn attach(&self, key: &StreamKey, attach: Attach) -> Result<Attached, StoreError> {
        self.guard.run(|| self.events.attach(key, attach)).await
    }

    /// Detaches a reader. If that fails, the store finds out that its run is gone, or another reader takes over.
    pub(super) async fn detach(&self, key: &StreamKey, reader: u64, received: u64) {
        let _ = self.guard.run(|| self.events.detach(key, reader, received)).await;
    }

    pub(super) async fn conclude(
        &self,
        key: &StreamKey,
        writer: RunId,
        last: &Bytes,
    ) -> Result<Concluded, StoreError> {
        self.guard.run(|| self.events.conclude(key, writer, last)).await
    }

    /// Removes the events of a session that has ended on the only node.
    pub(super) async fn forget(&self, session: &str) {
        // A store that fails here must expire the events itself.
        let _ = self.guard.run(|| self.events.forget(session)).await;
    }

    pub(super) fn watch(&self, key: &StreamKey) -> Wake {
        self.events.watch(key)
    }

    /// Sends a message to another node.
    pub(in crate::server) async fn send(&self, to: RunId, message: &NodeMessage) -> Result<Sent, StoreError> {
        match &self.shared {
            Some(shared) => self.guard.run(|| shared.nodes.send(to, message)).await,
            None => Ok(Sent::Gone),
        }
    }

    /// Returns whether a run is alive. If that is unknown, it counts as alive.
    pub(super) async fn is_alive(&self, run: RunId) -> bool {
        let Some(shared) = self.shared.as_ref().filter(|_| run != self.run()) else { return true };
        let known = lock(&self.alive).get(&run).copied();
        if let Some((at, is_alive)) = known
            && at.elapsed() < ALIVE
        {
            return is_alive;
        }
        let is_alive = self.guard.run(|| shared.nodes.is_alive(run)).await.unwrap_or(true);
        let mut alive = lock(&self.alive);
        if alive.len() >= MAX_RUNS {
            alive.clear();
        }
        alive.insert(run, (Instant::now(), is_alive));
        is_alive
    }
}
