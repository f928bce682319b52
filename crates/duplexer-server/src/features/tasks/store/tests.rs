//! The contract of a store, held against both stores of this crate, and what only files promise.

use std::path::PathBuf;

use super::*;
use crate::features::tasks::change::tests::record;
use crate::features::tasks::record::TaskOutcome;

const A: RunId = RunId(7);
const B: RunId = RunId(8);

/// A directory that is deleted with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = TaskId::random().unwrap();
        Self(std::env::temp_dir().join(format!("duplexer-tasks-{name}")))
    }

    fn open(&self) -> FileTasks {
        FileTasks::open(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn for_all_stores(test: impl AsyncFn(Arc<dyn TaskStore>)) {
    test(Arc::new(MemoryTasks::new())).await;
    let scratch = Scratch::new();
    test(Arc::new(scratch.open())).await;
}

async fn create(store: &dyn TaskStore, record: TaskRecord) -> TaskCreation {
    store.create(Arc::new(record), TaskLimits::default()).await.unwrap()
}

fn ended(record: &TaskRecord, at: u64) -> Arc<TaskRecord> {
    let mut next = record.clone();
    next.revision += 1;
    next.state.outcome = Some(TaskOutcome::Cancelled);
    next.times.ended = Some(UnixMillis(at));
    next.lease.run = None;
    Arc::new(next)
}

/// A record is replaced by its next revision only, so that of two changes one is first.
#[tokio::test]
async fn a_record_is_replaced_by_its_next_revision_only() {
    for_all_stores(async |store| {
        assert_eq!(create(&*store, record("a")).await, TaskCreation::Stored);
        assert_eq!(create(&*store, record("a")).await, TaskCreation::Stored, "a repetition");
        let next = ended(&record("a"), 2_000);
        assert_eq!(store.put(Arc::clone(&next)).await.unwrap(), TaskReplacement::Stored);
        assert_eq!(store.put(Arc::clone(&next)).await.unwrap(), TaskReplacement::Stored, "a repetition");
        assert_eq!(store.put(ended(&record("a"), 3_000)).await.unwrap(), TaskReplacement::Superseded);
        assert_eq!(*store.get(&next.id).await.unwrap().unwrap(), *next);
        assert_eq!(store.put(ended(&record("other"), 2_000)).await.unwrap(), TaskReplacement::Gone);
        assert_eq!(create(&*store, record("a")).await, TaskCreation::TooMany, "an id is never used twice");
    })
    .await;
}

/// TSK-D16: unfinished tasks are bounded per owner, all tasks in number and in bytes.
#[tokio::test]
async fn a_store_refuses_more_tasks_than_its_limits() {
    for_all_stores(async |store| {
        let limits = TaskLimits { per_owner: 2, total: 4, ..TaskLimits::default() };
        let create = async |id: &str, owner: Option<&str>| {
            let mut record = record(id);
            record.owner = owner.map(|name| TaskOwner::of(&crate::kernel::principal::Principal::new(name)));
            store.create(Arc::new(record), limits.clone()).await.unwrap()
        };
        assert_eq!(create("1", None).await, TaskCreation::Stored);
        assert_eq!(create("2", None).await, TaskCreation::Stored);
        assert_eq!(create("3", None).await, TaskCreation::TooMany);
        assert_eq!(create("4", Some("ada")).await, TaskCreation::Stored);
        let _ = store.put(ended(&record("1"), 2_000)).await.unwrap();
        assert_eq!(
            create("5", None).await,
            TaskCreation::Stored,
            "an ended task no longer counts for its owner"
        );
        let _ = store.put(ended(&record("5"), 2_000)).await.unwrap();
        assert_eq!(create("6", None).await, TaskCreation::TooMany, "it is kept, and counts in all");
    })
    .await;
}

/// TSK-D13: leases are prolonged together; a lease that has ended lets another run take over, and the first one learns of it.
#[tokio::test]
async fn a_task_is_taken_over_when_its_lease_has_ended() {
    for_all_stores(async |store| {
        let _ = create(&*store, record("a")).await;
        let second = Taker { run: B, until: UnixMillis(90_000) };
        let renew = async |until| {
            let first = Taker { run: A, until: UnixMillis(until) };
            store.renew(first, UnixMillis(20_000)).await.unwrap()
        };
        let lost = renew(50_000).await;
        assert!(lost.is_empty());
        assert!(store.take_over(second, UnixMillis(40_000), 9).await.unwrap().is_empty());
        let taken = store.take_over(second, UnixMillis(50_000), 9).await.unwrap();
        assert_eq!(taken.len(), 1);
        let lease = &taken[0].lease;
        assert_eq!((lease.run, lease.epoch, lease.attempt), (Some(B), 2, 2));
        assert!(store.take_over(second, UnixMillis(50_000), 9).await.unwrap().is_empty(), "only once");
        assert_eq!(renew(99_000).await, [TaskId::from("a")]);
        assert!(renew(99_000).await.is_empty());
    })
    .await;
}

/// TSK-06: a task is kept for its retention after its end, and then deleted; the store says when to come again.
#[tokio::test]
async fn an_ended_task_is_deleted_after_its_retention() {
    for_all_stores(async |store| {
        assert_eq!(store.sweep(UnixMillis(0), 9).await.unwrap(), None, "nothing is due");
        let _ = create(&*store, record("a")).await;
        assert_eq!(store.sweep(UnixMillis(0), 9).await.unwrap(), Some(UnixMillis(31_000)), "the lease");
        let _ = store.put(ended(&record("a"), 2_000)).await.unwrap();
        let id = TaskId::from("a");
        assert_eq!(store.sweep(UnixMillis(601_999), 9).await.unwrap(), Some(UnixMillis(602_000)));
        assert!(store.get(&id).await.unwrap().is_some());
        assert_eq!(store.sweep(UnixMillis(602_000), 9).await.unwrap(), None);
        assert!(store.get(&id).await.unwrap().is_none());
    })
    .await;
}

/// TSK-62: a list has the tasks of one owner, in pages.
#[tokio::test]
async fn a_list_has_the_tasks_of_one_owner() {
    for_all_stores(async |store| {
        for id in ["c", "a", "b"] {
            let _ = create(&*store, record(id)).await;
        }
        let mut foreign = record("0");
        foreign.owner = Some(TaskOwner::of(&crate::kernel::principal::Principal::new("ada")));
        let _ = create(&*store, foreign).await;
        let ids = async |after: Option<&str>, most| {
            let page = store.list(None, after.map(TaskId::from), most).await.unwrap();
            page.iter().map(|record| record.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(None, 2).await, ["a", "b"]);
        assert_eq!(ids(Some("b"), 2).await, ["c"]);
    })
    .await;
}

/// TSK-D17: a directory that is opened again has its tasks; unfinished ones can be taken over at once; damaged files are set
/// aside, unfinished ones deleted.
#[tokio::test]
async fn files_are_read_again_and_damaged_ones_set_aside() {
    let scratch = Scratch::new();
    {
        let store = scratch.open();
        let _ = create(&store, record("running")).await;
        let _ = create(&store, record("ended")).await;
        let _ = store.put(ended(&record("ended"), 2_000)).await.unwrap();
    }
    for (name, text) in
        [("damaged.json", "{"), ("later.json", r#"{"format":9,"record":{}}"#), ("half.new", "{")]
    {
        std::fs::write(scratch.0.join(name), text).unwrap();
    }
    let store = scratch.open();
    let found = store.get(&TaskId::from("ended")).await.unwrap().unwrap();
    assert_eq!(found.state.outcome, Some(TaskOutcome::Cancelled));
    let second = Taker { run: B, until: UnixMillis(90_000) };
    let taken = store.take_over(second, UnixMillis(1), 9).await.unwrap();
    assert_eq!(taken.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["running"]);
    assert!(scratch.0.join("damaged.unreadable").exists() && scratch.0.join("later.unreadable").exists());
    assert!(!scratch.0.join("half.new").exists());
}

/// TSK-D17: one process at a time. Within a process the same holds for a directory that is opened twice.
#[test]
fn a_directory_belongs_to_one_opener() {
    let scratch = Scratch::new();
    let first = scratch.open();
    assert!(matches!(FileTasks::open(&scratch.0), Err(OpenTasksError::InUse(_))));
    drop(first);
    assert!(FileTasks::open(&scratch.0).is_ok());
    let file = scratch.0.join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(FileTasks::open(&file), Err(OpenTasksError::Unusable { .. })));
}
