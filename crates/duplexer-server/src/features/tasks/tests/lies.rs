//! Stores that lie: what they return is checked, so that no client sees a foreign task, and nothing runs without end or twice.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::features::tasks::change::tests::record;

/// A store that keeps tasks well, and returns what it should not.
#[derive(Clone, Default)]
struct Liar {
    inner: MemoryTasks,
    /// Returned for every id.
    same: Option<Arc<TaskRecord>>,
    /// Returned as tasks of every owner.
    listed: Vec<Arc<TaskRecord>>,
    /// Given away with every take-over, in the lease of the taker or as they are.
    given: Vec<Arc<TaskRecord>>,
    leased: bool,
    asked: Arc<AtomicUsize>,
}

impl TaskStore for Liar {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        self.inner.create(record, limits)
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        match &self.same {
            Some(same) => Box::pin(std::future::ready(Ok(Some(Arc::clone(same))))),
            None => self.inner.get(id),
        }
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        self.inner.put(record)
    }

    fn list(
        &self,
        _: Option<TaskOwner>,
        _: Option<TaskId>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.listed.clone())))
    }

    fn renew(&self, taker: Taker, now: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        self.inner.renew(taker, now)
    }

    fn take_over(
        &self,
        taker: Taker,
        _: UnixMillis,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let lease = |record: &Arc<TaskRecord>| {
            if self.leased { Arc::new(record.taken_over(taker)) } else { Arc::clone(record) }
        };
        Box::pin(std::future::ready(Ok(self.given.iter().map(lease).collect())))
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        self.inner.sweep(now, most)
    }

    fn spans_processes(&self) -> bool {
        false
    }
}

/// TSK-80: a store that returns one task for every id has failed. The task is not seen under ids that are not its own.
#[tokio::test]
async fn another_task_than_the_requested_one_is_a_failure_of_the_store() {
    let store = Liar { same: Some(Arc::new(record("one"))), ..Liar::default() };
    let running = running(Tasks::on(store)).await;
    let ada = client(None);
    assert_eq!(status(&running, &ada, "one").await, TaskStatus::Working);
    for method in [Method::TasksGet, Method::TasksUpdate, Method::TasksCancel] {
        let error = about(&running, &ada, method, "other").await.unwrap_err().to_wire("");
        assert_eq!((error.code, &*error.message), (ErrorCode::INTERNAL_ERROR, "Internal server error"));
    }
}

/// TSK-62, TSK-69: a page has tasks of its owner only, and no more than a page.
#[tokio::test]
async fn a_page_of_tasks_is_bounded_and_has_those_of_its_owner() {
    let mut foreign = record("foreign");
    foreign.owner = Some(TaskOwner::of(&Principal::new("eve")));
    let mut own = record("own");
    own.owner = Some(TaskOwner::of(&Principal::new("ada")));
    let mut listed = vec![Arc::new(foreign)];
    listed.extend(std::iter::repeat_n(Arc::new(own), 1000));
    let running = running(Tasks::on(Liar { listed, ..Liar::default() })).await;
    let caller = Caller { principal: Some(Arc::new(Principal::new("ada"))), ..Caller::default() };
    let connection = Connection::ready(ProtocolVersion::LATEST_HANDSHAKE, ClientProfile::UNKNOWN);
    let connection = Arc::new(connection.with_caller(caller));
    let page = testing::call(&running, &connection, Method::TasksList, "{}").await.unwrap();
    let page = page.into_typed::<duplexer_types::task::ListTasksResult>().unwrap();
    assert_eq!(page.tasks.len(), 50);
    assert!(page.tasks.iter().all(|task| task.task_id == "own"));
}

/// TSK-84, TSK-D13: a store that gives away tasks without end, or such that have ended or belong to another run, cannot have
/// their functions run.
#[tokio::test(start_paused = true)]
async fn tasks_that_cannot_be_taken_over_are_not_run() {
    let mut lost = record("lost");
    lost.call.tool = "count".into();
    lost.lease.resumable = true;
    let mut ended = lost.clone();
    ended.state.outcome = Some(TaskOutcome::Cancelled);
    let many = |record: &TaskRecord| std::iter::repeat_n(Arc::new(record.clone()), 300).collect();
    for (given, leased, most) in [(many(&lost), false, 0), (many(&ended), true, 0), (many(&lost), true, 1100)]
    {
        let store = Liar { given, leased, ..Liar::default() };
        let asked = Arc::clone(&store.asked);
        let ran = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ran);
        let count = Tool::new("count", move || {
            counted.fetch_add(1, Ordering::SeqCst);
            async {}
        });
        let limits = TaskLimits { total: 1000, ..TaskLimits::default() };
        let server = Server::builder("jobs", "0").extend(Tasks::on(store).limits(limits));
        let server = server.tool(count.task(TaskPolicy::new().resumable())).build().unwrap();
        let running = server.start().await.unwrap();
        while asked.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
        running.shutdown().await;
        assert!(ran.load(Ordering::SeqCst) <= most, "{}", ran.load(Ordering::SeqCst));
    }
}
