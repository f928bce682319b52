//! Upkeep beside requests: prolongs leases, takes over tasks of nodes that are gone, deletes what is past its retention. It
//! sleeps until the next of these is due; a server without tasks has no timer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use duplexer_core::error::StoreError;
use tokio::time::{sleep, timeout};

use super::create::Created;
use super::{Engine, within};
use crate::features::tasks::change::{Author, Change, lost};
use crate::features::tasks::limits::MAX_ATTEMPTS;
use crate::features::tasks::record::{TaskOutcome, TaskRecord};
use crate::features::tasks::rerun;
use crate::features::tasks::store::Taker;
use crate::features::tasks::time::UnixMillis;

/// Records of one step.
const BATCH: usize = 256;
/// Wait after a failure of the store.
const RETRY: Duration = Duration::from_secs(1);
/// Time at shutdown in which tasks that were stopped store their end.
const STOP_TIME: Duration = Duration::from_millis(800);

impl Engine {
    /// Starts the upkeep. It ends with the engine.
    pub(crate) fn start_upkeep(self: &Arc<Self>) {
        self.plan.hub.join(self);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.work.tracker.spawn_on(upkeep(Arc::downgrade(self)), &runtime);
        } else {
            tracing::warn!("outside of a runtime tasks of other nodes are not taken over");
        }
    }

    /// Has the upkeep run at this time, if it would run later.
    pub(in crate::features::tasks) fn upkeep_at(&self, time: UnixMillis) {
        let earlier = self.work.next_upkeep.fetch_min(time.0, Ordering::AcqRel);
        if time.0 < earlier {
            self.work.upkeep.notify_one();
        }
    }

    /// Does what is due, and returns when something is due next.
    async fn round(self: &Arc<Self>) -> Result<Option<UnixMillis>, StoreError> {
        let (run, lease) = (self.run, self.plan.settings.lease);
        let until = |now: UnixMillis| now.after(lease);
        let store = &self.plan.store;
        let held = self.work.held.load(Ordering::Acquire) > 0;
        if held {
            let now = self.clock.now();
            for id in within(store.renew(Taker { run, until: until(now) }, now)).await? {
                self.plan.hub.notify(&id);
            }
            if store.spans_processes() {
                // The bus between processes may have lost an answer or a cancellation.
                self.plan.hub.notify_all();
            }
        }
        self.plan.hub.tidy();
        if self.work.closing.is_cancelled() {
            // A server that stops releases its tasks, and must not take them over again.
            return Ok(Some(self.clock.now().after(self.renewal())));
        }
        // Not without end: a store that has more does not keep the limits.
        for _ in 0..=self.plan.settings.limits.total / BATCH {
            let now = self.clock.now();
            let taken = within(store.take_over(Taker { run, until: until(now) }, now, BATCH)).await?;
            let is_last = taken.len() < BATCH;
            for record in taken.into_iter().take(BATCH) {
                if record.is_final() || record.lease.run != Some(run) {
                    // Nothing runs twice, whatever the store says.
                    tracing::warn!(task = %record.id, "the store gives away a task that cannot be taken over");
                } else {
                    self.continue_task(&record);
                }
            }
            if is_last {
                break;
            }
        }
        let now = self.clock.now();
        let due = within(store.sweep(now, BATCH)).await?;
        let held = self.work.held.load(Ordering::Acquire) > 0;
        let renewal = held.then(|| now.after(self.renewal()));
        // Tasks that other processes create are not announced.
        let others = store.spans_processes().then(|| now.after(lease));
        Ok([due, renewal, others]
            .into_iter()
            .flatten()
            .min()
            .map(|due| due.max(now.after(Duration::from_millis(10)))))
    }

    /// Continues a task of a run that is gone: runs it again, or ends it with the reason.
    fn continue_task(self: &Arc<Self>, record: &Arc<TaskRecord>) {
        let lease = &record.lease;
        let created = Created::new(self, Arc::clone(record));
        let outcome = if record.state.cancel_requested {
            TaskOutcome::Cancelled
        } else if lease.handed_over {
            lost("The work of this task was handed over, and not finished in time")
        } else if !lease.resumable {
            lost("The server that ran this task went away")
        } else if lease.attempt > MAX_ATTEMPTS {
            lost("The servers that ran this task went away")
        } else {
            let server = lock(&self.server).upgrade();
            let Some(server) = server else { return self.conclude(created, Change::Release) };
            tracing::info!(task = %record.id, attempt = lease.attempt, "a task is run again");
            let (call, work) = rerun::start(self, &server, record);
            return self.spawn(created, call, work);
        };
        tracing::info!(task = %record.id, "a task of a node that is gone is ended");
        self.conclude(created, Change::End { outcome, message: None });
    }

    /// Stores the last change of a task that this run does not work on.
    fn conclude(self: &Arc<Self>, created: Created, change: Change) {
        let (engine, record) = (Arc::clone(self), created.start());
        self.work.tracker.spawn(async move {
            engine.finish(&record.id, Author::Run(engine.run, record.lease.epoch), change).await;
            engine.release();
        });
    }

    /// Refuses new tasks, gives running ones the budget to end, and then releases or fails them.
    pub(crate) async fn shut_down(&self, budget: Duration) {
        self.work.closing.cancel();
        self.work.upkeep.notify_one();
        self.work.tracker.close();
        let patience = budget.saturating_sub(STOP_TIME).max(budget / 2);
        if timeout(patience, self.work.tracker.wait()).await.is_err() {
            self.work.stopping.cancel();
            if timeout(STOP_TIME, self.work.tracker.wait()).await.is_err() {
                tracing::warn!("some tasks could not be ended in time; another node will take them over");
            }
        }
    }
}

async fn upkeep(engine: Weak<Engine>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.work.closing.is_cancelled() && engine.work.held.load(Ordering::Acquire) == 0 {
            return;
        }
        engine.work.next_upkeep.store(u64::MAX, Ordering::Release);
        let due = match engine.round().await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "the store of tasks has failed");
                Some(engine.clock.now().after(RETRY))
            }
        };
        if let Some(due) = due {
            engine.work.next_upkeep.fetch_min(due.0, Ordering::AcqRel);
        }
        let next = UnixMillis(engine.work.next_upkeep.load(Ordering::Acquire));
        let (left, notify) = (next.since(engine.clock.now()), Arc::clone(&engine.work.upkeep));
        // An engine that is no longer used ends meanwhile, and notifies.
        drop(engine);
        tokio::select! {
            () = notify.notified() => {}
            () = sleep(left), if next.0 != u64::MAX => {}
        }
    }
}
