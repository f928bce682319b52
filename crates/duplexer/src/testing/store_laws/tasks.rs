//! Laws of tasks: documents that are replaced by their next revision, leases, limits and retention.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::run::RunId;
use tokio::time::{Instant, sleep};

use super::fresh::random;
use super::{NodeStores, Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::tasks::{
    Taker, TaskCreation, TaskId, TaskLimits, TaskOutcome, TaskOwner, TaskRecord, TaskReplacement, UnixMillis,
};

/// More tasks than laws leave behind.
const MANY: usize = 10_000;

/// Two nodes with a run each, an owner whom no other law uses, and a clock.
struct Scene {
    a: NodeStores,
    b: NodeStores,
    runs: [RunId; 2],
    owner: TaskOwner,
    start: Instant,
    lease: Duration,
}

impl Scene {
    async fn new(stores: &dyn StoresUnderTest) -> Result<Self, Reason> {
        let (a, b) = (stores.node().await?, stores.node().await?);
        let owner = format!(
            r#"{{"client_id":"law-{:016x}","issuer":"https://issuer.example","subject":null,"scopes":[]}}"#,
            random()
        );
        let owner = read(&owner)?;
        let runs = [RunId(random()), RunId(random())];
        Ok(Self { a, b, runs, owner, start: Instant::now(), lease: stores.limits().lease })
    }

    fn now(&self) -> UnixMillis {
        UnixMillis(1_700_000_000_000).after(self.start.elapsed())
    }

    fn taker(&self, run: RunId) -> Taker {
        Taker { run, until: self.now().after(self.lease) }
    }

    /// Returns a task of the first run.
    fn task(&self) -> Result<TaskRecord, Reason> {
        let (id, now, run) = (random(), self.now(), self.runs[0]);
        let mut record: TaskRecord = read(&format!(
            r#"{{"id":"law-{id:016x}","revision":0,"owner":null,
                "call":{{"tool":"t","arguments":{{"n":1}},"version":"2026-07-28","client_info":null,
                    "capabilities":null,"progress_token":null}},
                "times":{{"created":{now},"updated":{now},"ended":null,"retention":600000}},
                "state":{{"message":null,"questions":[],"cancel_requested":false,"outcome":null}},
                "lease":{{"run":"{run}","epoch":1,"until":{until},"attempt":1,"resumable":true,
                    "handed_over":false}}}}"#,
            now = now.0,
            until = now.after(self.lease).0,
        ))?;
        record.owner = Some(self.owner.clone());
        Ok(record)
    }

    /// Creates a task of the first run at the first node.
    async fn created(&self) -> Result<TaskRecord, Reason> {
        let task = self.task()?;
        ensure_created(&self.a, &task, TaskCreation::Stored, "a new task").await?;
        Ok(task)
    }

    /// Returns the next revision, with a status text.
    fn changed(&self, record: &TaskRecord, text: &str) -> TaskRecord {
        let mut next = record.clone();
        next.revision += 1;
        next.times.updated = self.now();
        next.state.message = Some(text.to_owned());
        next
    }

    /// Returns the next revision, which is the last one.
    fn ended(&self, record: &TaskRecord, retention: Duration) -> TaskRecord {
        let mut next = self.changed(record, "ended");
        next.state.outcome = Some(TaskOutcome::Cancelled);
        next.times.ended = Some(next.times.updated);
        next.times.retention = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        next.lease.run = None;
        next
    }

    /// Has a run take over what it can, and returns whether that includes a task.
    async fn take_over(
        &self,
        node: &NodeStores,
        run: RunId,
        id: &TaskId,
    ) -> Result<Option<Arc<TaskRecord>>, Reason> {
        let taken = node.tasks.take_over(self.taker(run), self.now(), MANY).await?;
        Ok(taken.into_iter().find(|record| record.id == *id))
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Reason> {
    serde_json::from_str(text).map_err(|error| Reason(format!("a record cannot be read: {error}")))
}

async fn ensure_created(node: &NodeStores, task: &TaskRecord, expected: TaskCreation, what: &str) -> Outcome {
    let limits = TaskLimits::default();
    ensure_eq!(node.tasks.create(Arc::new(task.clone()), limits).await?, expected, "{what}");
    Ok(())
}

async fn ensure_put(node: &NodeStores, task: &TaskRecord, expected: TaskReplacement, what: &str) -> Outcome {
    ensure_eq!(node.tasks.put(Arc::new(task.clone())).await?, expected, "{what}");
    Ok(())
}

async fn ensure_stored(node: &NodeStores, expected: &TaskRecord) -> Outcome {
    let stored = node.tasks.get(&expected.id).await?;
    ensure_eq!(stored.as_deref(), Some(expected), "the stored task");
    Ok(())
}

pub(super) async fn a_task_is_stored_once(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.task()?;
    ensure_eq!(scene.a.tasks.get(&task.id).await?, None, "a task that was not created");
    ensure_created(&scene.a, &task, TaskCreation::Stored, "a new task").await?;
    ensure_created(&scene.a, &task, TaskCreation::Stored, "a repetition").await?;
    ensure_stored(&scene.b, &task).await?;
    let mut other = task.clone();
    other.owner = None;
    ensure_created(&scene.b, &other, TaskCreation::TooMany, "another task with the same id").await?;
    ensure_stored(&scene.b, &task).await
}

pub(super) async fn a_task_is_replaced_by_its_next_revision_only(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.created().await?;
    let (second, other) = (scene.changed(&task, "one"), scene.changed(&task, "two"));
    ensure_put(&scene.b, &second, TaskReplacement::Stored, "the next revision").await?;
    ensure_put(&scene.b, &second, TaskReplacement::Stored, "a repetition").await?;
    ensure_put(&scene.a, &other, TaskReplacement::Superseded, "the same revision again").await?;
    let skipped = scene.changed(&scene.changed(&second, "three"), "four");
    ensure_put(&scene.a, &skipped, TaskReplacement::Superseded, "a revision too far").await?;
    ensure_stored(&scene.a, &second).await?;
    ensure_put(&scene.a, &scene.changed(&scene.task()?, "x"), TaskReplacement::Gone, "an unknown task").await
}

pub(super) async fn of_two_concurrent_replacements_one_is_stored(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let mut task = scene.created().await?;
    for round in 0..8 {
        let ours = scene.changed(&task, &format!("a{round}"));
        let theirs = scene.changed(&task, &format!("b{round}"));
        let put =
            async |node: &NodeStores, record: &TaskRecord| node.tasks.put(Arc::new(record.clone())).await;
        let (one, two) = tokio::join!(put(&scene.a, &ours), put(&scene.b, &theirs));
        let kept = scene.a.tasks.get(&task.id).await?.map(|stored| (*stored).clone());
        let expected = match (one?, two?) {
            (TaskReplacement::Stored, TaskReplacement::Superseded) => ours,
            (TaskReplacement::Superseded, TaskReplacement::Stored) => theirs,
            other => return Err(Reason(format!("one of two must be stored, and the outcome is {other:?}"))),
        };
        ensure_eq!(kept.as_ref(), Some(&expected), "the stored task");
        task = expected;
    }
    Ok(())
}

pub(super) async fn tasks_are_bounded_per_owner_and_in_all(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let create = async |task: &TaskRecord, change: fn(&mut TaskLimits)| {
        let mut limits = TaskLimits::default();
        change(&mut limits);
        Ok::<_, Reason>(scene.a.tasks.create(Arc::new(task.clone()), limits).await?)
    };
    let first = scene.created().await?;
    let two: fn(&mut TaskLimits) = |limits| limits.per_owner = 2;
    ensure_eq!(create(&scene.task()?, two).await?, TaskCreation::Stored, "the second of two");
    ensure_eq!(create(&scene.task()?, two).await?, TaskCreation::TooMany, "the third of two");
    let total = create(&scene.task()?, |limits| limits.total = 2).await?;
    ensure_eq!(total, TaskCreation::TooMany, "more tasks than in all");
    let ended = scene.ended(&first, Duration::from_secs(600));
    ensure_put(&scene.b, &ended, TaskReplacement::Stored, "the end of a task").await?;
    ensure_eq!(create(&scene.task()?, two).await?, TaskCreation::Stored, "an ended task does not count");
    let bytes = create(&scene.task()?, |limits| limits.total_bytes = 1024).await?;
    ensure_eq!(bytes, TaskCreation::TooMany, "more bytes than in all");
    Ok(())
}

pub(super) async fn a_list_has_the_tasks_of_one_owner(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let mut expected = BTreeSet::new();
    for _ in 0..5 {
        expected.insert(scene.created().await?.id);
    }
    let mut foreign = scene.task()?;
    let mut owner = scene.owner.clone();
    owner.subject = Some("another".to_owned());
    foreign.owner = Some(owner);
    ensure_created(&scene.a, &foreign, TaskCreation::Stored, "a task of another owner").await?;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = scene.b.tasks.list(Some(scene.owner.clone()), after.clone(), 2).await?;
        ensure!(page.len() <= 2, "a page of two has {} tasks", page.len());
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        found.extend(page.iter().map(|record| record.id.clone()));
        ensure!(found.len() <= 5, "a list must end: {found:?}");
    }
    ensure_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected, "the tasks of an owner");
    ensure_eq!(found.len(), 5, "each task is listed once");
    Ok(())
}

/// TSK-D13: of two runs one gets the task, in a new epoch; the run before learns that it has lost it, and is refused.
pub(super) async fn a_task_is_taken_over_once_its_lease_has_ended(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.created().await?;
    let [first, second] = scene.runs;
    let early = scene.take_over(&scene.b, second, &task.id).await?;
    ensure_eq!(early, None, "a task whose lease holds");
    sleep(scene.lease + scene.lease / 10).await;
    let third = RunId(random());
    let (one, two) =
        tokio::join!(scene.take_over(&scene.a, third, &task.id), scene.take_over(&scene.b, second, &task.id));
    let (winner, taken) = match (one?, two?) {
        (Some(taken), None) => (third, taken),
        (None, Some(taken)) => (second, taken),
        other => return Err(Reason(format!("one of two runs must get the task: {other:?}"))),
    };
    let lease = &taken.lease;
    ensure_eq!((lease.run, lease.epoch, lease.attempt), (Some(winner), 2, 2), "the lease after a take-over");
    ensure_stored(&scene.a, &taken).await?;
    let again = scene.take_over(&scene.a, RunId(random()), &task.id).await?;
    ensure_eq!(again, None, "a task that was taken over");
    let late = scene.changed(&task, "late");
    ensure_put(&scene.a, &late, TaskReplacement::Superseded, "a change of the run before").await?;
    let renew = async || scene.a.tasks.renew(scene.taker(first), scene.now()).await;
    ensure_eq!(renew().await?, [task.id.clone()], "what the run before has lost");
    ensure_eq!(renew().await?, [], "what it has lost since");
    Ok(())
}

pub(super) async fn a_renewed_lease_is_not_taken_over(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.created().await?;
    for _ in 0..3 {
        sleep(scene.lease * 6 / 10).await;
        let lost = scene.a.tasks.renew(scene.taker(scene.runs[0]), scene.now()).await?;
        ensure_eq!(lost, [], "what a run has lost that renews its leases");
        let taken = scene.take_over(&scene.b, scene.runs[1], &task.id).await?;
        ensure_eq!(taken, None, "a task whose lease is renewed");
    }
    sleep(scene.lease + scene.lease / 10).await;
    let taken = scene.take_over(&scene.b, scene.runs[1], &task.id).await?;
    ensure!(taken.is_some(), "a task whose lease has ended must be taken over");
    Ok(())
}

/// A task without a run is taken over at its deadline; changes meanwhile do not move the deadline.
pub(super) async fn work_that_was_handed_over_ends_at_its_deadline(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.created().await?;
    let mut handed_over = scene.changed(&task, "handed over");
    handed_over.lease.run = None;
    handed_over.lease.handed_over = true;
    handed_over.lease.until = scene.now().after(scene.lease * 2);
    ensure_put(&scene.a, &handed_over, TaskReplacement::Stored, "a hand-over").await?;
    sleep(scene.lease * 12 / 10).await;
    let taken = scene.take_over(&scene.b, scene.runs[1], &task.id).await?;
    ensure_eq!(taken, None, "a task before its deadline");
    let changed = scene.changed(&handed_over, "half");
    ensure_put(&scene.b, &changed, TaskReplacement::Stored, "a change by another program").await?;
    sleep(scene.lease).await;
    let taken = scene.take_over(&scene.b, scene.runs[1], &task.id).await?;
    ensure!(taken.is_some(), "a task must be taken over at its deadline");
    Ok(())
}

/// TSK-06: the store deletes an ended task after its retention, and says when to come again.
pub(super) async fn an_ended_task_is_deleted_after_its_retention(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let task = scene.created().await?;
    let due = scene.b.tasks.sweep(scene.now(), MANY).await?;
    let latest = scene.now().after(scene.lease);
    ensure!(due.is_some_and(|due| due <= latest), "a lease ends at {latest:?}, and a sweep is due {due:?}");
    let ended = scene.ended(&task, scene.lease);
    ensure_put(&scene.a, &ended, TaskReplacement::Stored, "the end of a task").await?;
    sleep(scene.lease / 2).await;
    scene.b.tasks.sweep(scene.now(), MANY).await?;
    ensure_stored(&scene.b, &ended).await?;
    sleep(scene.lease * 6 / 10).await;
    scene.b.tasks.sweep(scene.now(), MANY).await?;
    ensure_eq!(scene.a.tasks.get(&task.id).await?, None, "a task that is past its retention");
    let again = scene.changed(&ended, "late");
    ensure_put(&scene.a, &again, TaskReplacement::Gone, "a change of a deleted task").await
}
