//! The records of one process with what is needed to find them: by owner, by run and by time. Knows no files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;

use super::{Taker, TaskCreation, TaskReplacement};
use crate::features::tasks::limits::TaskLimits;
use crate::features::tasks::record::{TaskId, TaskOwner, TaskRecord};
use crate::features::tasks::time::UnixMillis;

/// Owner as a key: client, issuer and subject.
type OwnerKey = Option<(String, Option<String>, Option<String>)>;

#[derive(Default)]
pub(super) struct Index {
    records: BTreeMap<TaskId, Arc<TaskRecord>>,
    /// Number of unfinished tasks.
    live: HashMap<OwnerKey, usize>,
    /// Unfinished tasks of each run, and the end of its leases.
    runs: HashMap<RunId, Run>,
    /// Times at which a task without a run is due: the end of its retention, or of what it was handed over for.
    due: BTreeSet<(UnixMillis, TaskId)>,
    bytes: usize,
    /// Maximum number of bytes, once a task was created.
    most_bytes: Option<usize>,
}

#[derive(Default)]
struct Run {
    until: UnixMillis,
    tasks: HashSet<TaskId>,
    lost: Vec<TaskId>,
}

fn owner_key(owner: Option<&TaskOwner>) -> OwnerKey {
    owner.map(|owner| {
        let (client, issuer, subject) = owner.identity();
        (client.to_owned(), issuer.map(Into::into), subject.map(Into::into))
    })
}

impl Index {
    pub(super) fn get(&self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        self.records.get(id).map(Arc::clone)
    }

    /// Checks whether another task can be stored. One that is stored already can be stored again.
    pub(super) fn admits(&mut self, record: &TaskRecord, limits: &TaskLimits) -> TaskCreation {
        self.most_bytes = Some(limits.total_bytes);
        if let Some(stored) = self.records.get(&record.id) {
            return if **stored == *record { TaskCreation::Stored } else { TaskCreation::TooMany };
        }
        let live = self.live.get(&owner_key(record.owner.as_ref())).copied().unwrap_or(0);
        let full = self.records.len() >= limits.total
            || self.bytes.saturating_add(record.size()) > limits.total_bytes
            || live >= limits.per_owner;
        if full { TaskCreation::TooMany } else { TaskCreation::Stored }
    }

    /// Checks whether a record can replace the stored one. One that grows must fit.
    pub(super) fn accepts(&self, record: &TaskRecord) -> Result<TaskReplacement, StoreError> {
        match self.records.get(&record.id) {
            None => Ok(TaskReplacement::Gone),
            Some(stored) if **stored == *record => Ok(TaskReplacement::Stored),
            Some(stored) if stored.revision + 1 == record.revision => {
                let growth = record.size().saturating_sub(stored.size());
                let is_full = self.most_bytes.is_some_and(|most| self.bytes.saturating_add(growth) > most);
                if growth > 0 && is_full { Err(StoreError::Full) } else { Ok(TaskReplacement::Stored) }
            }
            Some(_) => Ok(TaskReplacement::Superseded),
        }
    }

    /// Stores a record, in place of an earlier revision.
    pub(super) fn insert(&mut self, record: Arc<TaskRecord>) {
        self.remove(&record.id);
        self.bytes += record.size();
        if !record.is_final() {
            *self.live.entry(owner_key(record.owner.as_ref())).or_default() += 1;
        }
        if let Some(run) = record.lease.run.filter(|_| !record.is_final()) {
            let run = self.runs.entry(run).or_default();
            run.until = run.until.max(record.lease.until);
            run.tasks.insert(record.id.clone());
        } else {
            let due = record.times.forgotten().unwrap_or(record.lease.until);
            self.due.insert((due, record.id.clone()));
        }
        self.records.insert(record.id.clone(), record);
    }

    pub(super) fn remove(&mut self, id: &TaskId) -> Option<Arc<TaskRecord>> {
        let record = self.records.remove(id)?;
        self.bytes = self.bytes.saturating_sub(record.size());
        if !record.is_final() {
            let owner = owner_key(record.owner.as_ref());
            if let Some(live) = self.live.get_mut(&owner) {
                *live -= 1;
                if *live == 0 {
                    self.live.remove(&owner);
                }
            }
        }
        if let Some(run) = record.lease.run.and_then(|run| self.runs.get_mut(&run)) {
            run.tasks.remove(id);
        }
        let due = record.times.forgotten().unwrap_or(record.lease.until);
        self.due.remove(&(due, id.clone()));
        Some(record)
    }

    pub(super) fn list(
        &self,
        owner: Option<&TaskOwner>,
        after: Option<&TaskId>,
        most: usize,
    ) -> Vec<Arc<TaskRecord>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let owner = owner.map(TaskOwner::identity);
        let from = after.map_or(Unbounded, Excluded);
        let all = self.records.range::<TaskId, _>((from, Unbounded)).map(|(_, record)| record);
        all.filter(|it| it.owner.as_ref().map(TaskOwner::identity) == owner)
            .take(most)
            .map(Arc::clone)
            .collect()
    }

    pub(super) fn renew(&mut self, taker: Taker) -> Vec<TaskId> {
        let run = self.runs.entry(taker.run).or_default();
        run.until = run.until.max(taker.until);
        std::mem::take(&mut run.lost)
    }

    /// Returns unfinished tasks whose lease has ended.
    pub(super) fn expired(&self, now: UnixMillis, most: usize) -> Vec<Arc<TaskRecord>> {
        let handed_over = self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| id);
        let leased = self.runs.values().filter(|run| run.until <= now).flat_map(|run| &run.tasks);
        let expired = handed_over.chain(leased).filter_map(|id| self.records.get(id));
        expired.filter(|record| !record.is_final()).take(most).map(Arc::clone).collect()
    }

    /// Notes that a run has lost a task to another one.
    pub(super) fn taken_over(&mut self, record: Arc<TaskRecord>, taker: Taker) {
        let earlier = self.records.get(&record.id).and_then(|earlier| earlier.lease.run);
        if let Some(run) = earlier.filter(|run| *run != taker.run).and_then(|run| self.runs.get_mut(&run)) {
            run.lost.push(record.id.clone());
        }
        self.insert(record);
    }

    /// Returns tasks that are past their retention.
    pub(super) fn forgotten(&self, now: UnixMillis, most: usize) -> Vec<TaskId> {
        let due = self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| id);
        let ended = due.filter(|id| self.records.get(*id).is_some_and(|record| record.is_final()));
        ended.take(most).cloned().collect()
    }

    /// Deletes runs without tasks whose leases have ended, and returns the next time at which something is due.
    pub(super) fn next_due(&mut self, now: UnixMillis) -> Option<UnixMillis> {
        self.runs.retain(|_, run| run.until > now || !run.tasks.is_empty());
        let leases = self.runs.values().filter(|run| !run.tasks.is_empty()).map(|run| run.until);
        leases.chain(self.due.first().map(|(due, _)| *due)).min()
    }

    /// Ends the leases of all runs: none of them is alive.
    pub(super) fn end_leases(&mut self) {
        self.runs.values_mut().for_each(|run| run.until = UnixMillis(0));
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }
}
