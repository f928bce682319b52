//! Tasks: documents that are replaced by their next revision, with indexes by owner, by run and by time. All of them are in one
//! slot of a cluster, so that limits and take-overs are exact; the limits of a server bound what that slot holds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{Chain, StoreError};
use duplexer_http::SessionDigest;
use duplexer_server::tasks::{
    Taker, TaskCreation, TaskId, TaskLimits, TaskOwner, TaskRecord, TaskReplacement, TaskStore, UnixMillis,
};

use crate::keys::LAYOUT;
use crate::link::Node;
use crate::scripts::{self, NamedScript, ScriptCall};
use crate::value::{self, later_layout, millis, unreadable};

/// What is sealed.
const TASK: &str = "task";
/// Longest time that the store measures.
const MAX_TIME: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Names of tasks, and their documents.
type Documents = Vec<(String, Vec<u8>)>;

/// [`TaskStore`] for all nodes of a server. Returned by [`Shared::tasks`](crate::Shared::tasks).
///
/// The store measures leases, deadlines and retention by its own clock, so those of the nodes need not agree.
#[derive(Clone, Debug)]
pub struct RedisTasks {
    node: Arc<Node>,
    pending: Arc<Mutex<Pending>>,
}

/// What a run has to settle with the store.
#[derive(Debug, Default)]
struct Pending {
    /// Take-overs that were begun and are not returned yet. Where the store or the caller fails, they stay here until the next
    /// call: the lease of the run covers them, so no other run would take them over.
    taken_over: Vec<TakeOver>,
    /// Lost tasks that were returned, by run. The store forgets them with the next renewal.
    lost: Vec<(String, String)>,
}

/// A take-over: the record as it is afterwards.
#[derive(Debug)]
struct TakeOver {
    record: Arc<TaskRecord>,
    /// Whether the store has confirmed it.
    is_confirmed: bool,
}

impl TaskStore for RedisTasks {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        Box::pin(async move {
            let mut call = self.writing(&scripts::TASK_CREATE, &record, record.times.updated)?;
            call.arg(limits.per_owner).arg(limits.total).arg(limits.total_bytes);
            let outcome: String = self.node.patiently(|| self.node.connection.run(&call)).await?;
            Ok(if outcome == "stored" { TaskCreation::Stored } else { TaskCreation::TooMany })
        })
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        Box::pin(async move {
            let [documents, ..] = self.node.keys.tasks();
            let mut command = redis::cmd("HGET");
            command.arg(documents).arg(name(id));
            let found: Option<Vec<u8>> = self.node.patiently(|| self.node.connection.query(&command)).await?;
            found.map(|document| self.read(&name(id), &document)).transpose()
        })
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        Box::pin(async move { self.replace(&record, record.times.updated, "").await })
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&scripts::TASK_LIST);
            call.arg(owner_digest(owner.as_ref())?)
                .arg(after.as_ref().map(name).unwrap_or_default())
                .arg(most);
            let found: Documents = self.node.patiently(|| self.node.connection.run(&call)).await?;
            found.iter().map(|(task, document)| self.read(task, document)).collect()
        })
    }

    fn renew(&self, taker: Taker, now: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        Box::pin(async move {
            let run = taker.run.to_string();
            let known = self.known_lost(&run);
            let mut call = self.call(&scripts::TASK_RENEW);
            call.arg(&run).arg(millis(taker.until.since(now)));
            for task in &known {
                call.arg(task);
            }
            let lost: Documents = self.node.patiently(|| self.node.connection.run(&call)).await?;
            let mut ids = Vec::with_capacity(lost.len());
            let mut pending = self.pending();
            pending.lost.retain(|(of, task)| *of != run || !known.contains(task));
            for (task, document) in lost {
                if let Ok(record) = self.read(&task, &document) {
                    ids.push(record.id.clone());
                }
                pending.lost.push((run.clone(), task));
            }
            Ok(ids)
        })
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        Box::pin(async move {
            let failed = self.begin(taker, now, most).await.err();
            let is_ours =
                |begun: &mut TakeOver| begun.is_confirmed && begun.record.lease.run == Some(taker.run);
            let ours: Vec<_> = self.pending().taken_over.extract_if(.., is_ours).collect();
            match failed {
                // The rest is for the next call.
                Some(error) if ours.is_empty() => Err(error),
                _ => Ok(ours.into_iter().map(|begun| begun.record).collect()),
            }
        })
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        Box::pin(async move {
            let mut call = self.call(&scripts::TASK_SWEEP);
            call.arg(most);
            let left: i64 = self.node.patiently(|| self.node.connection.run(&call)).await?;
            Ok(u64::try_from(left).ok().map(|left| now.after(Duration::from_millis(left))))
        })
    }
}

impl RedisTasks {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, pending: Arc::default() }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lost tasks that a run has heard of.
    fn known_lost(&self, run: &str) -> Vec<String> {
        self.pending().lost.iter().filter(|(of, _)| of == run).map(|(_, task)| task.clone()).collect()
    }

    /// Finds out which of the earlier take-overs of a run have happened.
    async fn settle(&self, taker: Taker) -> Result<(), StoreError> {
        let in_doubt = |begun: &&TakeOver| !begun.is_confirmed && begun.record.lease.run == Some(taker.run);
        let records: Vec<_> = self
            .pending()
            .taken_over
            .iter()
            .filter(in_doubt)
            .map(|begun| Arc::clone(&begun.record))
            .collect();
        for record in records {
            let stored = self.get(&record.id).await?;
            let lease = |record: &TaskRecord| (record.lease.run, record.lease.epoch);
            self.conclude(&record, stored.filter(|stored| lease(stored) == lease(&record)));
        }
        Ok(())
    }

    /// Notes the outcome of a take-over: the record, if the run has it.
    fn conclude(&self, begun: &Arc<TaskRecord>, stored: Option<Arc<TaskRecord>>) {
        let mut pending = self.pending();
        let found = pending.taken_over.iter().position(|pending| Arc::ptr_eq(&pending.record, begun));
        match (found, stored) {
            (Some(index), Some(record)) => {
                pending.taken_over[index] = TakeOver { record, is_confirmed: true }
            }
            (Some(index), None) => {
                pending.taken_over.swap_remove(index);
            }
            (None, _) => {}
        }
    }

    /// Takes over tasks whose lease has ended. Those that this run gets are pending afterwards.
    async fn begin(&self, taker: Taker, now: UnixMillis, most: usize) -> Result<(), StoreError> {
        self.settle(taker).await?;
        let mut call = self.call(&scripts::TASK_EXPIRED);
        call.arg(most.saturating_sub(self.pending().taken_over.len()));
        let found: Documents = self.node.patiently(|| self.node.connection.run(&call)).await?;
        for (task, document) in &found {
            let record = match self.read(task, document) {
                Ok(record) => record,
                Err(error) => {
                    tracing::warn!(error = %Chain(&error), "a task cannot be taken over");
                    continue;
                }
            };
            let next = Arc::new(record.taken_over(taker));
            let begun = TakeOver { record: Arc::clone(&next), is_confirmed: false };
            self.pending().taken_over.push(begun);
            let outcome = self.replace(&next, now, "1").await?;
            self.conclude(&next, (outcome == TaskReplacement::Stored).then(|| Arc::clone(&next)));
        }
        Ok(())
    }

    /// Replaces a record, at a time of its author. `taken_over` is `1` if the run of the stored one loses it.
    async fn replace(
        &self,
        record: &TaskRecord,
        now: UnixMillis,
        taken_over: &str,
    ) -> Result<TaskReplacement, StoreError> {
        let mut call = self.writing(&scripts::TASK_PUT, record, now)?;
        call.arg(taken_over);
        let outcome: String = self.node.patiently(|| self.node.connection.run(&call)).await?;
        match outcome.as_str() {
            "stored" => Ok(TaskReplacement::Stored),
            "superseded" => Ok(TaskReplacement::Superseded),
            "gone" => Ok(TaskReplacement::Gone),
            other => Err(later_layout(other.trim_start_matches("layout "))),
        }
    }

    fn call(&self, script: &'static NamedScript) -> ScriptCall {
        script.call(self.node.keys.tasks())
    }

    /// Returns the call of a script that stores a record.
    fn writing(
        &self,
        script: &'static NamedScript,
        record: &TaskRecord,
        now: UnixMillis,
    ) -> Result<ScriptCall, StoreError> {
        let text = value::json(record)?;
        let task = name(&record.id);
        let time = match (record.times.ended, record.times.forgotten()) {
            (Some(ended), Some(forgotten)) => forgotten.since(ended),
            _ => record.lease.until.since(now),
        };
        let mut call = self.call(script);
        call.arg(&task).arg(record.revision).arg(u8::from(record.is_final()));
        call.arg(
            record.lease.run.filter(|_| !record.is_final()).map_or("-".to_owned(), |run| run.to_string()),
        );
        call.arg(owner_digest(record.owner.as_ref())?).arg(record.size()).arg(digest(&text));
        let mut document = format!("{LAYOUT} ").into_bytes();
        document.extend(self.node.sealed(&task, TASK, text.into_bytes())?);
        call.arg(document).arg(millis(time.min(MAX_TIME)));
        Ok(call)
    }

    fn read(&self, task: &str, document: &[u8]) -> Result<Arc<TaskRecord>, StoreError> {
        let space = document.iter().position(|byte| *byte == b' ');
        let (layout, rest) = document.split_at(space.ok_or_else(|| unreadable("a task has no layout"))?);
        if layout != LAYOUT.as_bytes() {
            return Err(later_layout(&String::from_utf8_lossy(layout)));
        }
        let text = self.node.opened(task, TASK, rest[1..].to_vec())?;
        serde_json::from_slice(&text).map(Arc::new).map_err(unreadable)
    }
}

/// Returns the name of a task in the store. Its id is a secret where the task has no owner.
fn name(id: &TaskId) -> String {
    digest(id.as_str())
}

fn owner_digest(owner: Option<&TaskOwner>) -> Result<String, StoreError> {
    Ok(digest(&value::json(&owner.map(TaskOwner::identity))?))
}

/// Returns a digest, made like that of a session id.
fn digest(text: &str) -> String {
    SessionDigest::of(text).to_string()
}
