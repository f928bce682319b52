//! Tasks of clients of 2025-11-25 that have ended for the client only: calls that were answered at once, although their
//! client asked for a task, and tasks that were cancelled and whose work goes on for a while.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use bytestring::ByteString;
use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;
use duplexer_types::task::{Task, TaskStatus};
use tokio::time::Instant;

/// Time for which an answer is kept.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// Maximum number of answers of one client. The oldest are dropped.
const MAX_ANSWERS: usize = 64;

/// Answers of one client, by the id of their task.
#[derive(Default)]
pub(crate) struct Finished(Mutex<HashMap<String, (Instant, Ended)>>);

/// A task that has ended.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) task: Task,
    /// The result of the tool. A cancelled task has none.
    pub(super) result: Option<ByteString>,
}

impl Finished {
    /// Keeps the result of a tool. Returns its task.
    pub(super) fn keep(&self, status: TaskStatus, result: ByteString) -> Result<Task, McpError> {
        let id = crate::bridge::handshake_server::random_state()?;
        let now = duplexer_server::tasks::UnixMillis::from(SystemTime::now()).rfc3339();
        let retention = u64::try_from(RETENTION.as_millis()).ok();
        let task = Task::new(id.as_str(), status, now.as_str(), now.as_str(), retention);
        self.insert(Ended { task: task.clone(), result: Some(result) });
        Ok(task)
    }

    /// Keeps a cancelled task: it stays cancelled, whatever its work still does.
    pub(super) fn cancelled(&self, task: Task) {
        self.insert(Ended { task, result: None });
    }

    fn insert(&self, ended: Ended) {
        let mut finished = lock(&self.0);
        finished.retain(|_, (since, _)| since.elapsed() < RETENTION);
        if finished.len() >= MAX_ANSWERS
            && let Some(oldest) = finished.iter().min_by_key(|(_, (since, _))| *since)
        {
            let oldest = oldest.0.clone();
            finished.remove(&oldest);
        }
        finished.insert(ended.task.task_id.clone(), (Instant::now(), ended));
    }

    /// Returns the task with this id.
    pub(super) fn get(&self, id: &str) -> Option<Ended> {
        let finished = lock(&self.0);
        let (since, ended) = finished.get(id)?;
        (since.elapsed() < RETENTION).then(|| ended.clone())
    }
}
