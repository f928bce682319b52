//! The methods of tasks: `tasks/get`, `tasks/update`, `tasks/cancel`, and of 2025-11-25 `tasks/result` and `tasks/list`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_core::transport::Trust;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::only_text;
use duplexer_types::methods::Method;
use duplexer_types::page::PaginatedParams;
use duplexer_types::task::{
    CancelTaskParams, DetailedTask, EXTENSION, GetTaskParams, GetTaskResult, ListTasksResult,
    UpdateTaskParams,
};
use duplexer_types::version::Era;
use tokio::time::timeout;

use super::change::{Author, Change, Refused};
use super::engine::{Engine, Unchanged, unknown, within};
use super::record::{TaskId, TaskOutcome, TaskOwner, TaskRecord};
use super::view;
use crate::kernel::context::Context;
use crate::kernel::handler::{Entry, RawEntry};
use crate::kernel::outcome::Outcome;
use crate::registry::Handlers;

/// Tasks on one page of a list.
const PAGE: usize = 50;
/// Time after which a request for a result reads the record again, in case a change was not published.
const RECHECK: Duration = Duration::from_secs(10);

type Answer = Result<Outcome, McpError>;

/// Registers the handlers. A handler that is there already stays, and is a fault that the caller reports.
pub(crate) fn register(handlers: &mut Handlers) -> Option<Method> {
    let all: [(Method, Arc<dyn Entry>); 5] = [
        (Method::TasksGet, entry(|cx| Box::pin(get(cx)))),
        (Method::TasksUpdate, entry(|cx| Box::pin(update(cx)))),
        (Method::TasksCancel, entry(|cx| Box::pin(cancel(cx)))),
        (Method::TasksResult, entry(|cx| Box::pin(result(cx)))),
        (Method::TasksList, entry(|cx| Box::pin(list(cx)))),
    ];
    let taken = all.iter().map(|(method, _)| *method).find(|method| handlers.spec(*method).is_some());
    for (method, entry) in all {
        handlers.set_default(method, entry);
    }
    taken
}

fn entry(handler: fn(Context) -> BoxFuture<'static, Answer>) -> Arc<dyn Entry> {
    Arc::new(RawEntry(handler))
}

/// Returns the capability of 2025-11-25. Whether tasks can be listed depends on the connection.
pub(crate) fn capability() -> JsonObject {
    let empty = Json::object;
    let tools: JsonObject = JsonObject::new().with("call", empty());
    let requests: JsonObject = JsonObject::new().with("tools", Json::from(tools));
    JsonObject::new().with("list", empty()).with("cancel", empty()).with("requests", Json::from(requests))
}

/// Returns whether tasks can be listed: only where callers can be distinguished, by their principal or because the caller is a
/// process of the same user.
pub(crate) fn can_list(cx: &Context) -> bool {
    cx.principal().is_some() || cx.transport().trust() == Trust::LocalProcess
}

/// Returns the engine for a request that may use it: in the envelope era, one that declares the extension.
fn engine(cx: &Context) -> Result<&Arc<Engine>, McpError> {
    if cx.protocol_version().era() == Era::Envelope {
        cx.require_extension(EXTENSION)?;
    }
    cx.server().tasks().ok_or_else(|| ErrorObject::method_not_found(cx.method()).into())
}

async fn find(engine: &Engine, cx: &Context, id: &TaskId) -> Result<Arc<TaskRecord>, McpError> {
    match engine.find(id, cx.principal()).await {
        Ok(Some(record)) => Ok(record),
        Ok(None) => {
            engine.note_unknown();
            Err(unknown())
        }
        Err(error) => Err(McpError::internal(error)),
    }
}

async fn get(cx: Context) -> Answer {
    let engine = engine(&cx)?;
    // Clients poll with this method, and most write its params in the same way.
    let params = cx.raw_params().and_then(|params| only_text(params, cx.message().meta(), "taskId"));
    let id = match params {
        Some(id) => TaskId::from(id),
        None => TaskId::from(cx.params::<GetTaskParams>()?.task_id),
    };
    let record = find(engine, &cx, &id).await?;
    Ok(state(engine, &cx, &record, id))
}

fn state(engine: &Engine, cx: &Context, record: &TaskRecord, id: TaskId) -> Outcome {
    let era = cx.protocol_version().era();
    let detailed = match era {
        Era::Envelope => engine.detailed(record, id, era),
        Era::Handshake => DetailedTask::new(engine.task(record, cx.protocol_version())),
    };
    Outcome::of(GetTaskResult::new(detailed))
}

async fn update(cx: Context) -> Answer {
    let engine = engine(&cx)?;
    let params: UpdateTaskParams = cx.params()?;
    let id = TaskId::from(params.task_id);
    find(engine, &cx, &id).await?;
    engine.update(&id, Author::Anyone, &Change::Answer(params.input_responses)).await?;
    Ok(Outcome::empty())
}

/// In the envelope era the work is asked to end, and a finished task stays what it is. In 2025-11-25 the task is cancelled
/// before the answer, and a finished one is refused.
async fn cancel(cx: Context) -> Answer {
    let engine = engine(&cx)?;
    let id = TaskId::from(cx.params::<CancelTaskParams>()?.task_id);
    find(engine, &cx, &id).await?;
    match cx.protocol_version().era() {
        Era::Envelope => match engine.update(&id, Author::Anyone, &Change::RequestCancel).await {
            Ok(_) | Err(Unchanged::Refused(Refused::Final)) => Ok(Outcome::empty()),
            Err(error) => Err(error.into()),
        },
        Era::Handshake => {
            let change = Change::End { outcome: TaskOutcome::Cancelled, message: None };
            let record = engine.update(&id, Author::Anyone, &change).await?;
            Ok(state(engine, &cx, &record, id))
        }
    }
}

/// Waits for the end of a task. Meanwhile its questions can use the stream of this request.
async fn result(cx: Context) -> Answer {
    let engine = engine(&cx)?;
    let id = TaskId::from(cx.params::<GetTaskParams>()?.task_id);
    // First, because nothing is kept for an id that is unknown.
    find(engine, &cx, &id).await?;
    let watch = engine.watch(&id);
    let mut stream = None;
    loop {
        let mut changed = std::pin::pin!(watch.notified());
        changed.as_mut().enable();
        let record = find(engine, &cx, &id).await?;
        if let Some(payload) = view::payload(&record) {
            return payload;
        }
        stream.get_or_insert_with(|| engine.open_stream(&id, Arc::clone(&cx.scope().call.channel)));
        let _ = timeout(RECHECK, changed).await;
    }
}

async fn list(cx: Context) -> Answer {
    let engine = engine(&cx)?;
    if !can_list(&cx) {
        return Err(ErrorObject::method_not_found(cx.method()).into());
    }
    let after = match cx.params::<PaginatedParams>()?.cursor {
        Some(cursor) => Some(read_cursor(&cursor)?),
        None => None,
    };
    let owner = cx.principal().map(TaskOwner::of);
    let page = within(engine.plan.store.list(owner, after, PAGE)).await.map_err(McpError::internal)?;
    let page: Vec<_> =
        page.into_iter().filter(|record| record.belongs_to(cx.principal())).take(PAGE).collect();
    let next =
        page.last().filter(|_| page.len() == PAGE).map(|last| URL_SAFE_NO_PAD.encode(last.id.as_str()));
    let tasks: Vec<_> = page.iter().map(|record| engine.task(record, cx.protocol_version())).collect();
    let mut listed = ListTasksResult::new(tasks);
    listed.next_cursor = next;
    Ok(Outcome::of(listed))
}

fn read_cursor(cursor: &str) -> Result<TaskId, McpError> {
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(TaskId::from).ok_or_else(|| McpError::new(ErrorCode::INVALID_PARAMS, "Invalid cursor"))
}
