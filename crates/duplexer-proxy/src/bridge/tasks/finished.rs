//! Calls that were answered at once, although their client asked for a task (2025-11-25): the answer is kept until the client
//! fetches it.

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
pub(crate) struct Finished(Mutex<HashMap<String, (Instant, Task, ByteString)>>);

impl Finished {
    /// Keeps the result of a tool. Returns its task.
    pub(super) fn keep(&self, status: TaskStatus, result: ByteString) -> Result<Task, McpError> {
        let id = crate::bridge::handshake_server::random_state()?;
        let now = duplexer_server::tasks::UnixMillis::from(SystemTime::now()).rfc3339();
        let retention = u64::try_from(RETENTION.as_millis()).ok();
        let task = Task::new(id.as_str(), status, now.as_str(), now.as_str(), retention);
        let mut finished = lock(&self.0);
        finished.retain(|_, (since, ..)| since.elapsed() < RETENTION);
        if finished.len() >= MAX_ANSWERS
            && let Some(oldest) = finished.iter().min_by_key(|(_, (since, ..))| *since)
        {
            let oldest = oldest.0.clone();
            finished.remove(&oldest);
        }
        finished.insert(id, (Instant::now(), task.clone(), result));
        Ok(task)
    }

    /// Returns the task with this id, and its result.
    pub(super) fn get(&self, id: &str) -> Option<(Task, ByteString)> {
        let finished = lock(&self.0);
        let (since, task, result) = finished.get(id)?;
        (since.elapsed() < RETENTION).then(|| (task.clone(), result.clone()))
    }
}
