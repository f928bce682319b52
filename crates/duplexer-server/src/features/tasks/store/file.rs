//! Tasks in a directory: one file per task. A file is written beside its final place, synchronised and renamed, so that a
//! record is either the old or the new one, whatever ends the process. One process at a time owns the directory.

mod directory;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{BoxFuture, lock};
use duplexer_core::error::{BoxError, StoreError};

use self::directory::Directory;
use super::index::Index;
use super::{Taker, TaskCreation, TaskReplacement, TaskStore};
use crate::features::tasks::limits::TaskLimits;
use crate::features::tasks::record::{TaskId, TaskOwner, TaskRecord};
use crate::features::tasks::time::UnixMillis;

/// Keeps tasks in the files of a directory, so that they survive the end of the process. Clones share them.
///
/// The records contain arguments and results of tools: protect the directory accordingly. It belongs to one process at a time.
///
/// ```no_run
/// # use duplexer_server::{Server, tasks::{FileTasks, Tasks}};
/// let server = Server::builder("jobs", "1.0.0").extend(Tasks::on(FileTasks::open("tasks")?)).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FileTasks(Arc<Inner>);

struct Inner {
    directory: Directory,
    index: Mutex<Index>,
    /// Held while a file is written, so that files and index agree. One of several, by id.
    writing: [Mutex<()>; 16],
}

/// Error of [`FileTasks::open`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenTasksError {
    /// Another process uses the directory.
    #[error("the directory of tasks '{}' is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The directory cannot be created, locked or read.
    #[error("the directory of tasks '{}' cannot be used", .path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl FileTasks {
    /// Opens a directory, which is created if it does not exist, and reads its tasks. Files that cannot be read are renamed and
    /// named in the log. Unfinished tasks are those of a process that has ended: the next server that starts takes them over.
    ///
    /// # Errors
    ///
    /// Fails if another process uses the directory, or if it cannot be created, locked or read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenTasksError> {
        let (directory, records) = Directory::open(path.as_ref())?;
        let mut index = Index::default();
        for record in records {
            index.insert(Arc::new(record));
        }
        index.end_leases();
        Ok(Self(Arc::new(Inner { directory, index: Mutex::new(index), writing: Default::default() })))
    }
}

impl Inner {
    fn writing(&self, id: &TaskId) -> &Mutex<()> {
        let hash =
            id.as_str().bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        &self.writing[hash % self.writing.len()]
    }

    fn create(&self, record: &Arc<TaskRecord>, limits: &TaskLimits) -> Result<TaskCreation, StoreError> {
        let _writing = lock(self.writing(&record.id));
        {
            // Counted before it is written, so that tasks that are created at once respect the limits too.
            let mut index = lock(&self.index);
            let admitted = index.admits(record, limits);
            if admitted == TaskCreation::TooMany || index.get(&record.id).is_some() {
                return Ok(admitted);
            }
            index.insert(Arc::clone(record));
        }
        if let Err(error) = self.directory.write(record) {
            lock(&self.index).remove(&record.id);
            return Err(error);
        }
        Ok(TaskCreation::Stored)
    }

    fn put(&self, record: Arc<TaskRecord>) -> Result<TaskReplacement, StoreError> {
        let _writing = lock(self.writing(&record.id));
        let replaced = lock(&self.index).accepts(&record)?;
        if replaced == TaskReplacement::Stored {
            self.directory.write(&record)?;
            lock(&self.index).insert(record);
        }
        Ok(replaced)
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> Result<Vec<Arc<TaskRecord>>, StoreError> {
        let expired = lock(&self.index).expired(now, most);
        let mut continued = Vec::with_capacity(expired.len());
        for record in expired {
            let next = Arc::new(record.taken_over(taker));
            let _writing = lock(self.writing(&next.id));
            if lock(&self.index).accepts(&next)? == TaskReplacement::Stored {
                self.directory.write(&next)?;
                lock(&self.index).taken_over(Arc::clone(&next), taker);
                continued.push(next);
            }
        }
        Ok(continued)
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> Result<Option<UnixMillis>, StoreError> {
        let forgotten = lock(&self.index).forgotten(now, most);
        for id in forgotten {
            let _writing = lock(self.writing(&id));
            self.directory.delete(&id)?;
            lock(&self.index).remove(&id);
        }
        Ok(lock(&self.index).next_due(now))
    }
}

impl FileTasks {
    /// Runs work with files on a thread where it may block. It finishes even if the caller does not wait for it.
    fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StoreError>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&inner)).await;
            done.unwrap_or_else(|error| Err(StoreError::Failed(BoxError::from(error))))
        })
    }
}

impl TaskStore for FileTasks {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        self.blocking(move |inner| inner.create(&record, &limits))
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        let found = lock(&self.0.index).get(id);
        Box::pin(std::future::ready(Ok(found)))
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        self.blocking(move |inner| inner.put(record))
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        let page = lock(&self.0.index).list(owner.as_ref(), after.as_ref(), most);
        Box::pin(std::future::ready(Ok(page)))
    }

    /// The leases of a process end with the process, so they are not written.
    fn renew(&self, taker: Taker, _: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        let lost = lock(&self.0.index).renew(taker);
        Box::pin(std::future::ready(Ok(lost)))
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        if lock(&self.0.index).expired(now, 1).is_empty() {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.blocking(move |inner| inner.take_over(taker, now, most))
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        self.blocking(move |inner| inner.sweep(now, most))
    }

    fn spans_processes(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for FileTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileTasks").field("directory", &self.0.directory.path()).finish_non_exhaustive()
    }
}
