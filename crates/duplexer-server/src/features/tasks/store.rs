//! Where tasks are kept.

mod file;
mod index;
mod memory;

use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;

use super::limits::TaskLimits;
use super::record::{TaskId, TaskOwner, TaskRecord};
use super::time::UnixMillis;

pub use file::{FileTasks, OpenTasksError};
pub use memory::MemoryTasks;

/// Keeps the records of tasks, for one node or for many.
///
/// A record is a document that is replaced as a whole, and only by its next revision. A store compares revisions and
/// leases; it knows no states. What it has confirmed must survive what the store promises to survive. Times are given by the
/// caller, whose clock need not agree with those of other callers: only the time from the caller's present to a time counts.
/// Every operation can be repeated by a caller that does not know its outcome.
pub trait TaskStore: Send + Sync + 'static {
    /// Stores a new task. It is durable when this resolves. The creation of an equal record that is stored already succeeds.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot keep it, or if that is not known. The caller then ends the task, in case it is there.
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>>;

    /// Returns a task.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>>;

    /// Replaces a record by its next revision: only if the stored one has the revision before it, or is equal to it.
    ///
    /// # Errors
    ///
    /// Fails if it is not known whether the record was replaced. Fails with [`StoreError::Full`], and replaces nothing, if the
    /// record has grown beyond what the limits of the last created task permit in all: a shorter one is tried then.
    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>>;

    /// Returns up to `most` tasks of an owner, from the one after `after` on. Their order is the store's, and does not change.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>>;

    /// Prolongs every lease of a run. Returns the tasks that the run has lost since the last call.
    ///
    /// # Errors
    ///
    /// Fails if the leases may not have been prolonged.
    fn renew(&self, taker: Taker, now: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>>;

    /// Takes over up to `most` unfinished tasks whose lease has ended: gives them to a run, in a new epoch, with one more
    /// attempt and the next revision.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written. Tasks that it has taken over then come up again when their lease ends.
    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>>;

    /// Deletes up to `most` tasks that are past their retention. Returns when to come again: at the end of a retention or
    /// of a lease, if there is any.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be written.
    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>>;

    /// Returns whether other processes change tasks in this store. What they changed is then read again with every renewal.
    fn spans_processes(&self) -> bool {
        true
    }
}

/// The run that holds tasks or takes them over, and the end of its leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taker {
    /// The run.
    pub run: RunId,
    /// End of its leases.
    pub until: UnixMillis,
}

/// Result of [`TaskStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum TaskCreation {
    /// The task is stored.
    Stored,
    /// The owner has too many unfinished tasks, or the store too many tasks in all.
    TooMany,
}

/// Result of [`TaskStore::put`].
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum TaskReplacement {
    /// The record is stored.
    Stored,
    /// The stored record has changed since it was read.
    Superseded,
    /// The task has been deleted.
    Gone,
}

impl TaskRecord {
    /// Returns the record after a run has taken it over. For stores.
    #[must_use]
    pub fn taken_over(&self, taker: Taker) -> Self {
        let mut next = self.clone();
        next.revision += 1;
        next.lease.run = Some(taker.run);
        next.lease.until = taker.until;
        next.lease.epoch += 1;
        next.lease.attempt += 1;
        next
    }
}

#[cfg(test)]
mod tests;
