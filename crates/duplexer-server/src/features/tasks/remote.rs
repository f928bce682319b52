//! Tasks whose work is done elsewhere: what a queue, a webhook or another process reports.

use std::sync::Arc;

use duplexer_core::error::{McpError, StoreError};
use duplexer_types::error::ErrorObject;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;

use super::Plan;
use super::change::{Author, Change};
use super::engine::{self, Unchanged};
use super::record::{TaskId, TaskOutcome, TaskRecord};
use super::time::TaskClock;
use super::view;
use crate::features::input_rounds;
use crate::kernel::outcome::Outcome;

/// A task that was handed over ([`Context::hand_over`](crate::Context::hand_over)), for the program that does its work. Returned by
/// [`Tasks::of`](crate::tasks::Tasks::of).
#[derive(Clone)]
pub struct TaskRemote {
    plan: Plan,
    clock: TaskClock,
    id: TaskId,
}

impl TaskRemote {
    pub(crate) fn new(plan: Plan, id: TaskId) -> Self {
        Self { plan, clock: TaskClock::start(), id }
    }

    /// Sets the status text.
    ///
    /// # Errors
    ///
    /// Fails if there is no such task, if it has ended or is not handed over, and if the store fails.
    pub async fn progress(&self, text: impl Into<String>) -> Result<(), McpError> {
        self.change(&Change::Message(text.into())).await.map(|_| ())
    }

    /// Asks the client, and waits for the answer.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskRemote::progress`], and if the task ends meanwhile.
    pub async fn ask(&self, key: &str, request: impl Into<InputRequest>) -> Result<InputResponse, McpError> {
        let request = request.into();
        let (text, digest) = input_rounds::digest_of(&request)?;
        let watch = self.plan.hub.watch(&self.id);
        let change = Change::Ask { key: key.to_owned(), request: text, digest: digest.clone() };
        let mut record = self.change(&change).await?;
        loop {
            let mut changed = std::pin::pin!(watch.notified());
            changed.as_mut().enable();
            if let Some(answer) = record.question(key, &digest).and_then(|asked| asked.answer.as_ref()) {
                return answer.decode().map_err(McpError::internal);
            }
            let _ = tokio::time::timeout(self.plan.settings.lease, changed).await;
            record = self.record().await?;
        }
    }

    /// Ends the task with a result.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskRemote::progress`].
    pub async fn complete(&self, result: CallToolResult) -> Result<(), McpError> {
        let outcome = view::outcome(Ok(Outcome::of(result)), "");
        self.change(&Change::End { outcome, message: None }).await.map(|_| ())
    }

    /// Ends the task with an error of the protocol.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskRemote::progress`].
    pub async fn fail(&self, error: ErrorObject) -> Result<(), McpError> {
        let outcome = TaskOutcome::Error(error);
        self.change(&Change::End { outcome, message: None }).await.map(|_| ())
    }

    /// Returns the arguments of the call.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskRemote::progress`].
    pub async fn arguments(&self) -> Result<Json, McpError> {
        Ok(self.record().await?.call.arguments.clone())
    }

    async fn record(&self) -> Result<Arc<TaskRecord>, McpError> {
        let found = engine::get(&self.plan, &self.id).await.map_err(McpError::internal)?;
        match found {
            None => Err(engine::unknown()),
            Some(record) if record.is_final() => {
                Err(Unchanged::Refused(super::change::Refused::Final).into())
            }
            Some(record) if !record.lease.handed_over => {
                Err(McpError::internal(StoreError::Denied("the task is not handed over".into())))
            }
            Some(record) => Ok(record),
        }
    }

    async fn change(&self, change: &Change) -> Result<Arc<TaskRecord>, McpError> {
        self.record().await?;
        Ok(engine::update(&self.plan, self.clock, &self.id, Author::Anyone, change).await?)
    }
}

impl std::fmt::Debug for TaskRemote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskRemote").field("id", &self.id).finish_non_exhaustive()
    }
}
