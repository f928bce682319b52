//! One call as a task: what its context uses in place of the request's channel. Before it is a task, everything goes to the
//! request; from then on questions, progress and cancellation go to the record.

mod channel;
mod questions;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use duplexer_core::dispatch::{CallClock, Cancellation, Latch, lock};
use duplexer_core::error::McpError;
use duplexer_types::version::{ProtocolVersion, feature};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use super::change::{Author, Change};
use super::engine::Engine;
use super::limits::RUN_TIMEOUT;
use super::policy::{Start, TaskPolicy};
use super::record::{TaskId, TaskRecord};
use crate::kernel::connection::Connection;
use crate::kernel::context::Context;

/// A call that is a task, or can become one.
pub(crate) struct TaskCall {
    engine: Arc<Engine>,
    /// Set once the tool is known: a task that is run again finds it by its name.
    tool: OnceLock<CalledTool>,
    client: Client,
    phase: Mutex<Phase>,
    /// Whether the function has asked to become a task, and whether it is one.
    background: Background,
    cancellation: Cancellation,
    run: RunState,
}

/// How the tool is run.
#[derive(Clone, Default)]
pub(crate) struct CalledTool {
    pub(crate) policy: TaskPolicy,
    pub(crate) timeout: Option<Duration>,
    /// Whether the function blocks a thread: dropping its future does not stop it.
    pub(crate) blocking: bool,
}

/// The client that made the call.
struct Client {
    connection: Arc<Connection>,
    version: ProtocolVersion,
}

enum Phase {
    /// The call runs in this request.
    Request(Box<Context>),
    /// It is a task, in this epoch.
    Task(TaskId, u64),
}

#[derive(Default)]
struct Background {
    requested: Latch,
    entered: Latch,
}

/// What changes while the work runs.
#[derive(Default)]
struct RunState {
    /// Stands still while the client is asked.
    clock: CallClock,
    slot: Mutex<Slot>,
    /// The last status text that is not stored yet.
    message: Mutex<Option<String>>,
    message_changed: Notify,
    handed_over: AtomicBool,
}

/// The permit to run, which is given back while the client is asked.
#[derive(Default)]
struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    /// Number of questions that are waited for.
    waiting: usize,
}

impl TaskCall {
    /// Creates the call of a request that can become a task.
    pub(super) fn in_request(engine: &Arc<Engine>, cx: &Context, tool: CalledTool) -> Arc<Self> {
        let client = Client { connection: Arc::clone(cx.connection()), version: cx.protocol_version() };
        let call = Self::new(engine, client, Phase::Request(Box::new(cx.clone())));
        call.set_tool(tool);
        Arc::new(call)
    }

    /// Creates the call of a task whose work is run again.
    pub(super) fn again(
        engine: &Arc<Engine>,
        record: &TaskRecord,
        connection: &Arc<Connection>,
    ) -> Arc<Self> {
        let client = Client { connection: Arc::clone(connection), version: connection.version() };
        let phase = Phase::Task(record.id.clone(), record.lease.epoch);
        let call = Self::new(engine, client, phase);
        call.background.entered.set();
        Arc::new(call)
    }

    fn new(engine: &Arc<Engine>, client: Client, phase: Phase) -> Self {
        Self {
            engine: Arc::clone(engine),
            tool: OnceLock::new(),
            client,
            phase: Mutex::new(phase),
            background: Background::default(),
            cancellation: Cancellation::new(),
            run: RunState::default(),
        }
    }

    /// Sets how the tool is run. The first one counts.
    pub(super) fn set_tool(&self, tool: CalledTool) {
        let _ = self.tool.set(tool);
    }

    fn tool(&self) -> &CalledTool {
        self.tool.get_or_init(CalledTool::default)
    }

    /// Makes the call a task. The request is no longer used.
    pub(super) fn enter(&self, record: &TaskRecord) {
        let request =
            std::mem::replace(&mut *lock(&self.phase), Phase::Task(record.id.clone(), record.lease.epoch));
        // Dropped without the lock, because it can own anything.
        drop(request);
        self.background.entered.set();
    }

    /// Waits until the function has asked to become a task.
    pub(super) async fn requested(&self) {
        self.background.requested.wait().await;
    }

    /// Asks to become a task, and waits until it is one.
    pub(super) async fn enter_background(&self) {
        self.background.requested.set();
        self.background.entered.wait().await;
    }

    fn task(&self) -> Option<(TaskId, u64)> {
        match &*lock(&self.phase) {
            Phase::Request(_) => None,
            Phase::Task(id, epoch) => Some((id.clone(), *epoch)),
        }
    }

    pub(super) fn id(&self) -> Option<TaskId> {
        self.task().map(|(id, _)| id)
    }

    /// Returns the request, as long as the call runs in it.
    pub(crate) fn request(&self) -> Option<Context> {
        match &*lock(&self.phase) {
            Phase::Request(cx) => Some((**cx).clone()),
            Phase::Task(..) => None,
        }
    }

    /// Returns whether questions belong to the task: those of an explicit tool do once it is one.
    pub(crate) fn asks(&self) -> bool {
        self.tool().policy.start != Start::Explicit || self.task().is_some()
    }

    fn is_experiment(&self) -> bool {
        self.client.version.has(feature::TASK_EXPERIMENT)
    }

    pub(super) fn is_blocking(&self) -> bool {
        self.tool().blocking
    }

    /// Returns how long cancelled work may go on. A thread cannot be stopped.
    pub(super) fn cancel_grace(&self) -> Option<Duration> {
        if self.tool().blocking { Some(Duration::MAX) } else { self.tool().policy.cancel_grace }
    }

    pub(super) fn cancel(&self) {
        self.cancellation.cancel();
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.run.handed_over.load(Ordering::Acquire)
    }

    /// Resolves with the limit when the work has taken longer. Time in which the client is asked does not count.
    pub(super) async fn timed_out(&self) -> Duration {
        let limit = self.tool().timeout.unwrap_or(RUN_TIMEOUT);
        self.run.clock.run_for(limit).await;
        limit
    }

    /// Leaves the end of the task to another program.
    pub(super) async fn hand_over(&self, time: Duration) -> Result<TaskId, McpError> {
        self.enter_background().await;
        let Some((id, epoch)) = self.task() else { return Err(McpError::internal("the call is not a task")) };
        let deadline = self.engine.clock.now().after(time);
        self.run.handed_over.store(true, Ordering::Release);
        let author = Author::Run(self.engine.run, epoch);
        if let Err(error) = self.engine.update(&id, author, &Change::HandOver(deadline)).await {
            self.run.handed_over.store(false, Ordering::Release);
            return Err(error.into());
        }
        self.engine.upkeep_at(deadline);
        Ok(id)
    }

    /// Reports progress as the status text of the task. What is reported before the call is a task is its first text.
    pub(crate) fn report(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let text = match (message, total) {
            (Some(text), _) => text.to_owned(),
            (None, Some(total)) => format!("{progress} of {total}"),
            (None, None) => progress.to_string(),
        };
        let most = self.engine.plan.settings.limits.message_bytes;
        *lock(&self.run.message) = Some(beginning(text, most));
        self.run.message_changed.notify_one();
    }

    pub(super) async fn message_changed(&self) {
        self.run.message_changed.notified().await;
    }

    pub(super) fn take_message(&self) -> Option<String> {
        lock(&self.run.message).take()
    }

    /// Waits for the permit to run.
    pub(super) async fn acquire_slot(&self) {
        let permit = Arc::clone(&self.engine.work.slots).acquire_owned().await.ok();
        lock(&self.run.slot).permit = permit;
    }

    pub(super) fn release_slot(&self) {
        lock(&self.run.slot).permit = None;
    }
}

/// Cuts a text at a character.
fn beginning(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
