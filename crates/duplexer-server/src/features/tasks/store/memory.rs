//! Tasks in the memory of this process.

use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{BoxFuture, lock};
use duplexer_core::error::StoreError;

use super::index::Index;
use super::{Taker, TaskCreation, TaskReplacement, TaskStore};
use crate::features::tasks::limits::TaskLimits;
use crate::features::tasks::record::{TaskId, TaskOwner, TaskRecord};
use crate::features::tasks::time::UnixMillis;

/// Keeps tasks in the memory of this process. Clones share them. They end with the process.
#[derive(Clone, Default)]
pub struct MemoryTasks(Arc<Mutex<Index>>);

impl MemoryTasks {
    /// Creates a store without tasks.
    pub fn new() -> Self {
        Self::default()
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl TaskStore for MemoryTasks {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        let mut index = lock(&self.0);
        let created = index.admits(&record, &limits);
        // Inserting an equal record again makes no difference.
        if created == TaskCreation::Stored {
            index.insert(record);
        }
        ready(created)
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        ready(lock(&self.0).get(id))
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        let mut index = lock(&self.0);
        let replaced = index.accepts(&record);
        if matches!(replaced, Ok(TaskReplacement::Stored)) {
            index.insert(record);
        }
        Box::pin(std::future::ready(replaced))
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        ready(lock(&self.0).list(owner.as_ref(), after.as_ref(), most))
    }

    fn renew(&self, taker: Taker, _: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        ready(lock(&self.0).renew(taker))
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        let mut index = lock(&self.0);
        let expired = index.expired(now, most);
        let continued: Vec<_> =
            expired.into_iter().map(|record| Arc::new(record.taken_over(taker))).collect();
        for record in &continued {
            index.taken_over(Arc::clone(record), taker);
        }
        ready(continued)
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        let mut index = lock(&self.0);
        for id in index.forgotten(now, most) {
            index.remove(&id);
        }
        ready(index.next_due(now))
    }

    fn spans_processes(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryTasks").field("tasks", &lock(&self.0).len()).finish()
    }
}
