//! Tasks of principals, and stores that fail, through the kernel and without a transport.

mod endings;
mod flood;
mod lies;
mod nodes;
mod questions;
mod running;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{McpError, StoreError};
use duplexer_types::capabilities::ClientCapabilities;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::Method;
use duplexer_types::task::{CreateTaskResult, EXTENSION, GetTaskResult, TaskStatus};
use duplexer_types::version::ProtocolVersion;

use super::*;
use crate::kernel::connection::{Caller, ClientProfile, Connection};
use crate::kernel::outcome::Outcome;
use crate::kernel::principal::Principal;
use crate::kernel::testing;
use crate::registry::{RunningServer, Server};
use crate::tasks::Tasks;
use crate::tool::Tool;

/// A connection of a client that has tasks, on behalf of a principal.
fn client(principal: Option<&str>) -> Arc<Connection> {
    let extensions: JsonObject = JsonObject::new().with(EXTENSION, Json::object());
    let profile = ClientProfile::new(None, Some(ClientCapabilities::new().extensions(extensions)));
    let principal = principal.map(|name| Arc::new(Principal::new(name)));
    let caller = Caller { principal, ..Caller::default() };
    Arc::new(Connection::ready(ProtocolVersion::LATEST_ENVELOPE, profile).with_caller(caller))
}

async fn running(tasks: Tasks) -> RunningServer {
    let wait = Tool::new("wait", || async { std::future::pending::<()>().await }).task(TaskPolicy::new());
    let yields = Tool::new("yield", || async { tokio::task::yield_now().await }).task(TaskPolicy::new());
    let server = Server::builder("jobs", "0").extend(tasks).tool(wait).tool(yields);
    server.build().unwrap().start().await.unwrap()
}

async fn start(
    running: &RunningServer,
    connection: &Arc<Connection>,
    tool: &str,
) -> Result<String, McpError> {
    let params = format!(r#"{{"name":"{tool}"}}"#);
    let outcome = testing::call(running, connection, Method::ToolsCall, &params).await?;
    Ok(outcome.into_typed::<CreateTaskResult>().unwrap().task.task_id)
}

async fn about(
    running: &RunningServer,
    connection: &Arc<Connection>,
    method: Method,
    id: &str,
) -> Result<Outcome, McpError> {
    let params = format!(r#"{{"taskId":"{id}","inputResponses":{{}}}}"#);
    testing::call(running, connection, method, &params).await
}

async fn status(running: &RunningServer, connection: &Arc<Connection>, id: &str) -> TaskStatus {
    let outcome = about(running, connection, Method::TasksGet, id).await.unwrap();
    outcome.into_typed::<GetTaskResult>().unwrap().task.task.status
}

/// Waits until the status of a task is final.
async fn end(running: &RunningServer, connection: &Arc<Connection>, id: &str) -> TaskStatus {
    let watch = running.tasks().unwrap().watch(&TaskId::from(id));
    loop {
        let mut changed = std::pin::pin!(watch.notified());
        changed.as_mut().enable();
        let now = status(running, connection, id).await;
        if now.is_final() {
            return now;
        }
        changed.await;
    }
}

/// TSK-08, P-TASK-9, TSK-69, P-LTASK-6, TSK-80, P-TASK-18, TSK-81, TSK-85: a task is seen by equal principals only, on any connection; for everybody else it does not exist,
/// and the error does not say why.
#[tokio::test]
async fn a_task_belongs_to_the_principal_that_created_it() {
    let running = running(Tasks::new()).await;
    for (owner, others) in [(Some("ada"), [Some("eve"), None]), (None, [Some("ada"), Some("eve")])] {
        let id = start(&running, &client(owner), "wait").await.unwrap();
        assert_eq!(status(&running, &client(owner), &id).await, TaskStatus::Working, "another connection");
        for other in others {
            for method in [Method::TasksGet, Method::TasksUpdate, Method::TasksCancel] {
                let foreign = about(&running, &client(other), method, &id).await.unwrap_err().to_wire("");
                let guessed =
                    about(&running, &client(other), method, "guessed").await.unwrap_err().to_wire("");
                assert_eq!(foreign, guessed);
                assert_eq!(foreign.code, ErrorCode::INVALID_PARAMS);
            }
        }
        assert_eq!(status(&running, &client(owner), &id).await, TaskStatus::Working, "it is not cancelled");
    }
}

/// TSK-D16, TSK-70, TSK-84: more tasks of one owner than the limit are refused, and others are not affected.
#[tokio::test]
async fn an_owner_has_a_limited_number_of_tasks() {
    let limits = TaskLimits { per_owner: 2, ..TaskLimits::default() };
    let running = running(Tasks::new().limits(limits)).await;
    let ada = client(Some("ada"));
    for _ in 0..2 {
        start(&running, &ada, "wait").await.unwrap();
    }
    let refused = start(&running, &ada, "wait").await.unwrap_err().to_wire("");
    assert_eq!(
        (refused.code, &*refused.message),
        (ErrorCode::INTERNAL_ERROR, "Too many tasks are in flight")
    );
    start(&running, &client(Some("eve")), "wait").await.unwrap();
}

/// What a [`Faulty`] store does.
const WORK: u8 = 0;
const FAIL: u8 = 1;
const HANG: u8 = 2;
const LIE: u8 = 3;

/// A store that fails, hangs, or says that others are always first.
#[derive(Clone, Default)]
struct Faulty {
    inner: MemoryTasks,
    fault: Arc<AtomicU8>,
}

impl Faulty {
    fn set(&self, fault: u8) {
        self.fault.store(fault, Ordering::SeqCst);
    }

    fn faulty<'a, T: Send + 'a>(
        &self,
        good: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        match self.fault.load(Ordering::SeqCst) {
            FAIL => Box::pin(std::future::ready(Err(StoreError::Unavailable("secret address".into())))),
            HANG => Box::pin(std::future::pending()),
            _ => good,
        }
    }
}

impl TaskStore for Faulty {
    fn create(
        &self,
        record: Arc<TaskRecord>,
        limits: TaskLimits,
    ) -> BoxFuture<'_, Result<TaskCreation, StoreError>> {
        self.faulty(self.inner.create(record, limits))
    }

    fn get<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>> {
        self.faulty(self.inner.get(id))
    }

    fn put(&self, record: Arc<TaskRecord>) -> BoxFuture<'_, Result<TaskReplacement, StoreError>> {
        if self.fault.load(Ordering::SeqCst) == LIE {
            return Box::pin(std::future::ready(Ok(TaskReplacement::Superseded)));
        }
        self.faulty(self.inner.put(record))
    }

    fn list(
        &self,
        owner: Option<TaskOwner>,
        after: Option<TaskId>,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        self.faulty(self.inner.list(owner, after, most))
    }

    fn renew(&self, taker: Taker, now: UnixMillis) -> BoxFuture<'_, Result<Vec<TaskId>, StoreError>> {
        self.faulty(self.inner.renew(taker, now))
    }

    fn take_over(
        &self,
        taker: Taker,
        now: UnixMillis,
        most: usize,
    ) -> BoxFuture<'_, Result<Vec<Arc<TaskRecord>>, StoreError>> {
        self.faulty(self.inner.take_over(taker, now, most))
    }

    fn sweep(&self, now: UnixMillis, most: usize) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>> {
        self.faulty(self.inner.sweep(now, most))
    }
}

/// TSK-09, TSK-D5: a store that fails or hangs is an internal error without detail, never an unknown task; no task is
/// created then, and none that exists is lost.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_an_internal_error() {
    let store = Faulty::default();
    let running = running(Tasks::on(store.clone())).await;
    let ada = client(Some("ada"));
    let id = start(&running, &ada, "wait").await.unwrap();
    for fault in [FAIL, HANG] {
        store.set(fault);
        for method in [Method::TasksGet, Method::TasksUpdate, Method::TasksCancel] {
            let error = about(&running, &ada, method, &id).await.unwrap_err().to_wire("");
            assert_eq!((error.code, &*error.message), (ErrorCode::INTERNAL_ERROR, "Internal server error"));
        }
        assert_eq!(
            start(&running, &ada, "wait").await.unwrap_err().to_wire("").code,
            ErrorCode::INTERNAL_ERROR
        );
    }
    store.set(LIE);
    let error = about(&running, &ada, Method::TasksCancel, &id).await.unwrap_err().to_wire("");
    assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
    store.set(WORK);
    assert_eq!(status(&running, &ada, &id).await, TaskStatus::Working);
    about(&running, &ada, Method::TasksCancel, &id).await.unwrap();
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Cancelled);
}

/// TSK-D15: a final write that fails is tried again, and the result is not lost.
#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_stored_is_tried_again() {
    let store = Faulty::default();
    let running = running(Tasks::on(store.clone())).await;
    let ada = client(None);
    let id = start(&running, &ada, "yield").await.unwrap();
    store.set(FAIL);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    store.set(WORK);
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Completed);
}

/// TSK-06, TSK-D9: the time to live only grows while a task runs; it is forgotten after its retention, and looks unknown then.
#[tokio::test(start_paused = true)]
async fn a_task_expires_after_its_end_and_not_before() {
    let minute = Duration::from_secs(60);
    let running = running(Tasks::new().retention(minute)).await;
    let ada = client(None);
    let (long, short) =
        (start(&running, &ada, "wait").await.unwrap(), start(&running, &ada, "yield").await.unwrap());
    assert_eq!(end(&running, &ada, &short).await, TaskStatus::Completed);
    let ttl = async |id: &str| {
        let got = about(&running, &ada, Method::TasksGet, id).await.unwrap();
        got.into_typed::<GetTaskResult>().unwrap().task.task.ttl_ms.unwrap()
    };
    let (before, kept) = (ttl(&long).await, ttl(&short).await);
    tokio::time::advance(minute / 2).await;
    assert!(ttl(&long).await >= before + 29_000);
    assert_eq!(ttl(&short).await, kept);
    tokio::time::advance(minute).await;
    let gone = about(&running, &ada, Method::TasksGet, &short).await.unwrap_err().to_wire("");
    assert_eq!(&*gone.message, "Unknown task");
    assert_eq!(status(&running, &ada, &long).await, TaskStatus::Working);
}

/// TSK-82, TSK-83, TSK-D13: work that is run again has the identity of its creator, and the answers so far; the record has
/// neither a claim nor a header.
#[tokio::test(start_paused = true)]
async fn work_is_run_again_as_its_owner() {
    let store = MemoryTasks::new();
    let mut ada = Principal::new("ada");
    ada.scopes = vec!["write".into()];
    ada.claims = JsonObject::new().with("secret", Json::from("claim"));
    let mut lost = change::tests::record("lost");
    lost.owner = Some(TaskOwner::of(&ada));
    lost.call.tool = "who".into();
    lost.lease.resumable = true;
    assert!(!serde_json::to_string(&lost).unwrap().contains("claim"));
    let _ = store.create(Arc::new(lost), TaskLimits::default()).await.unwrap();
    let who = |cx: crate::Context| async move {
        cx.principal().map(|it| format!("{} {:?}", it.client_id, it.scopes)).unwrap_or_default()
    };
    let who = Tool::new("who", who).task(TaskPolicy::new().resumable());
    let server = Server::builder("jobs", "0").extend(Tasks::on(store)).tool(who).build().unwrap();
    let running = server.start().await.unwrap();
    let ada = client(Some("ada"));
    assert_eq!(end(&running, &ada, "lost").await, TaskStatus::Completed);
    let got = about(&running, &ada, Method::TasksGet, "lost").await.unwrap();
    let result = got.into_typed::<GetTaskResult>().unwrap().task.result.unwrap();
    assert!(result.as_str().contains(r#"ada [\"write\"]"#), "{result}");
}
