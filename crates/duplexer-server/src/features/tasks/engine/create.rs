//! Creation: the record is stored first, and the work goes on only then.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::Json;

use super::{Engine, within};
use crate::features::tasks::change::{Author, Change, lost};
use crate::features::tasks::limits::MAX_RETENTION;
use crate::features::tasks::policy::TaskPolicy;
use crate::features::tasks::record::{
    TaskId, TaskLease, TaskOwner, TaskQuestion, TaskRecord, TaskState, TaskTimes, TaskedCall,
};
use crate::features::tasks::store::TaskCreation;
use crate::features::tasks::time::millis;
use crate::kernel::context::Context;

/// A task that is to be created.
pub(crate) struct NewTask<'a> {
    /// The request that creates it.
    pub(crate) cx: &'a Context,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Json,
    pub(crate) policy: &'a TaskPolicy,
    /// Questions that rounds of the call have answered.
    pub(crate) answered: Vec<TaskQuestion>,
    /// Retention that the client asks for.
    pub(crate) retention: Option<Duration>,
}

impl Engine {
    /// Stores a new task. It is unfinished until its work ends it, or the guard is dropped.
    pub(crate) async fn create(self: &Arc<Self>, new: NewTask<'_>) -> Result<Created, McpError> {
        if self.work.closing.is_cancelled() {
            return Err(McpError::new(ErrorCode::INTERNAL_ERROR, "The server is shutting down"));
        }
        let record = Arc::new(self.record(new)?);
        let created = Created::new(self, record);
        let stored =
            within(self.plan.store.create(Arc::clone(&created.record), self.plan.settings.limits.clone()));
        match stored.await {
            Ok(TaskCreation::Stored) => {
                self.upkeep_at(self.clock.now().after(self.renewal()));
                self.plan.hub.upkeep_at(created.record.lease.until);
                tracing::debug!(task = %created.record.id, tool = created.record.call.tool, "a task is created");
                Ok(created)
            }
            Ok(TaskCreation::TooMany) => {
                created.forget();
                Err(McpError::new(ErrorCode::INTERNAL_ERROR, "Too many tasks are under way"))
            }
            Err(error) => Err(McpError::internal(error)),
        }
    }

    fn record(&self, new: NewTask<'_>) -> Result<TaskRecord, McpError> {
        let NewTask { cx, tool, arguments, policy, answered, retention } = new;
        let now = self.clock.now();
        let client = cx.connection().client();
        let retention = retention.unwrap_or_default().min(MAX_RETENTION).max(self.plan.settings.retention);
        Ok(TaskRecord {
            id: TaskId::random().map_err(McpError::internal)?,
            revision: 0,
            owner: cx.principal().map(TaskOwner::of),
            call: TaskedCall {
                tool: tool.to_owned(),
                arguments: arguments.clone(),
                version: cx.protocol_version().as_str().to_owned(),
                client_info: client.info.clone(),
                capabilities: client.capabilities.clone(),
                progress_token: cx.meta().progress_token,
            },
            times: TaskTimes { created: now, updated: now, ended: None, retention: millis(retention) },
            state: TaskState { questions: answered, ..TaskState::default() },
            lease: TaskLease {
                run: Some(self.run),
                epoch: 1,
                until: now.after(self.plan.settings.lease),
                attempt: 1,
                resumable: policy.resumable,
                handed_over: false,
            },
        })
    }
}

/// A task that this run holds. If it is dropped before its work has started, for example because the request was cancelled
/// while the store worked, the task ends as failed: it must not stay unfinished.
pub(crate) struct Created {
    engine: Arc<Engine>,
    pub(crate) record: Arc<TaskRecord>,
    started: bool,
}

impl Created {
    pub(super) fn new(engine: &Arc<Engine>, record: Arc<TaskRecord>) -> Self {
        engine.work.held.fetch_add(1, Ordering::AcqRel);
        Self { engine: Arc::clone(engine), record, started: false }
    }

    /// Hands the task to its work, which counts it from here on.
    pub(super) fn start(mut self) -> Arc<TaskRecord> {
        self.started = true;
        Arc::clone(&self.record)
    }

    /// Drops a task that was not stored.
    fn forget(mut self) {
        self.started = true;
        self.engine.release();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        if self.started {
            return;
        }
        let (engine, record) = (Arc::clone(&self.engine), Arc::clone(&self.record));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let tracker = engine.work.tracker.clone();
        tracker.spawn_on(
            async move {
                let author = Author::Run(engine.run, record.lease.epoch);
                let outcome = lost("The call was cancelled before the task could start");
                engine.finish(&record.id, author, Change::End { outcome, message: None }).await;
                engine.release();
            },
            &runtime,
        );
    }
}
