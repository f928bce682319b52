//! Tasks of a handshake server (2025-11-25), for clients of the envelope era.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::{CallOptions, Message, OutboundRequest};
use duplexer_core::error::{CallError, McpError};
use duplexer_server::{ClientCapability, ClientProfile, Outcome};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::Method;
use duplexer_types::page::PaginatedParams;
use duplexer_types::task::{
    CreateTaskResult, DetailedTask, EXTENSION, GetTaskResult, TaskStatus, UpdateTaskParams,
};
use duplexer_types::tool::TaskSupport;
use duplexer_types::wire::result_type;

use super::followed::End;
use super::{are_offered, id_of, is_declared, marked, naming, read};
use crate::failure;
use crate::forward::options;
use crate::link::Link;
use crate::upstream::Upstream;

/// Maximum number of pages of the list of tools.
const MAX_PAGES: usize = 100;
/// Maximum time of a page.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// What is asked of the server with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Result,
    Task,
}

/// Decides whether a call asks for a task: where the client has tasks, and the tool runs as one.
pub(crate) async fn wish(upstream: &Upstream, message: &Message) -> Result<Wish, McpError> {
    let client = &upstream.client;
    if message.known() != Some(Method::ToolsCall)
        || !are_offered(client.server_capabilities(), client.protocol_version())
    {
        return Ok(Wish::Result);
    }
    let name = crate::translate::members(message)?.get("name").and_then(|name| name.decode().ok());
    let name: String = name.unwrap_or_default();
    let followed = upstream.messages.followed();
    let is_declared = is_declared(message);
    if is_declared && followed.support(&name).is_none() && followed.begin_listing() {
        list_tools(upstream).await;
    }
    match followed.support(&name) {
        Some(_) if is_declared => Ok(Wish::Task),
        Some(TaskSupport::Required) => Err(undeclared()),
        _ => Ok(Wish::Result),
    }
}

fn undeclared() -> McpError {
    let requirement = ClientCapability::Extension(EXTENSION.to_owned());
    let text = format!("Client did not declare required extension '{EXTENSION}'");
    McpError::Rpc(requirement.missing(text))
}

/// Requests the list of tools, to learn which of them run as tasks.
async fn list_tools(upstream: &Upstream) {
    let mut params = PaginatedParams::new();
    for _ in 0..MAX_PAGES {
        let Ok(text) = Json::encode(&params) else { return };
        let mut request = OutboundRequest::new(Method::ToolsList.name()).params(text);
        request.options = CallOptions::new().timeout(PAGE_TIMEOUT);
        let page = match upstream.client.forward(request).await {
            Ok(page) => page,
            Err(error) => return tracing::debug!(%error, "the tools of a server could not be listed"),
        };
        upstream.messages.followed().learn(&page);
        let next = Json::parse(&page).ok().and_then(|page| page.member("nextCursor").map(str::to_owned));
        params.cursor = next.and_then(|cursor| serde_json::from_str(&cursor).ok()).flatten();
        if params.cursor.is_none() {
            return;
        }
    }
}

/// Returns the answer to a call that has created a task, and follows the task.
pub(crate) fn created(upstream: &Arc<Upstream>, link: &Link, text: &str) -> Result<Outcome, McpError> {
    let created: CreateTaskResult = read(text)?;
    follow(upstream, link, &created.task.task_id);
    Ok(Outcome::of(CreateTaskResult::new(created.task)))
}

/// Keeps a request for the result open: its stream carries the questions of the task.
fn follow(upstream: &Arc<Upstream>, link: &Link, id: &str) {
    let client = ClientProfile::new(None, Some(link.caller().capabilities.clone()));
    let mut request = OutboundRequest::new(Method::TasksResult.name()).params(naming(id));
    request.options = CallOptions::new().timeout(link.call_timeout());
    let session = upstream.client.clone();
    upstream.messages.followed().follow(id, client, async move {
        // The result itself is requested again when the client reads the task.
        match session.forward(request).await {
            Ok(_) | Err(CallError::Rpc(_) | CallError::Timeout(_)) => End::OfTask,
            Err(_) => End::OfSession,
        }
    });
}

/// Serves a request about a task.
pub(crate) async fn request(
    link: &Link,
    upstream: &Arc<Upstream>,
    message: &Message,
) -> Result<Outcome, McpError> {
    if !is_declared(message) {
        return Err(undeclared());
    }
    let client = &upstream.client;
    if !are_offered(client.server_capabilities(), client.protocol_version()) {
        return Err(failure::inexpressible("tasks"));
    }
    let tasks = Tasks { link, upstream };
    match message.known() {
        Some(Method::TasksGet) => tasks.get(&id_of(message)?).await,
        Some(Method::TasksUpdate) => {
            let params: UpdateTaskParams =
                message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
            tasks.task(&params.task_id).await?;
            upstream.messages.followed().answer(&params.task_id, &params.input_responses)?;
            Ok(Outcome::empty())
        }
        Some(Method::TasksCancel) => tasks.cancel(&id_of(message)?).await,
        _ => Err(duplexer_types::error::ErrorObject::method_not_found(message.method()).into()),
    }
}

struct Tasks<'a> {
    link: &'a Link,
    upstream: &'a Arc<Upstream>,
}

impl Tasks<'_> {
    async fn forward(&self, method: Method, id: &str) -> Result<bytestring::ByteString, CallError> {
        let mut request = OutboundRequest::new(method.name()).params(naming(id));
        request.options = options(self.link, self.upstream, None);
        self.upstream.client.forward(request).await
    }

    async fn task(&self, id: &str) -> Result<duplexer_types::task::Task, McpError> {
        let text = self.forward(Method::TasksGet, id).await.map_err(failure::of_call)?;
        Ok(read::<GetTaskResult>(&text)?.task.task)
    }

    async fn get(&self, id: &str) -> Result<Outcome, McpError> {
        let task = self.task(id).await?;
        let detailed = match &task.status {
            TaskStatus::Completed | TaskStatus::Failed => match self.forward(Method::TasksResult, id).await {
                Ok(text) => DetailedTask::completed(task, ended(&text)?),
                Err(CallError::Rpc(error)) => DetailedTask::failed(task, error),
                Err(error) => return Err(failure::of_call(error)),
            },
            TaskStatus::Cancelled => DetailedTask::new(task),
            _ => self.running(task),
        };
        Ok(Outcome::of(GetTaskResult::new(detailed)))
    }

    /// Returns the state of a running task. It requires input once the questions have arrived.
    fn running(&self, mut task: duplexer_types::task::Task) -> DetailedTask {
        if task.status == TaskStatus::InputRequired {
            // A task of an earlier session is followed from here on.
            follow(self.upstream, self.link, &task.task_id);
        }
        let open = self.upstream.messages.followed().open(&task.task_id);
        if open.is_empty() {
            task.status = TaskStatus::Working;
            return DetailedTask::new(task);
        }
        DetailedTask::input_required(task, open)
    }

    /// Acknowledges the cancellation of a task that has ended too.
    async fn cancel(&self, id: &str) -> Result<Outcome, McpError> {
        match self.forward(Method::TasksCancel, id).await {
            Ok(_) => Ok(Outcome::empty()),
            Err(CallError::Rpc(error)) if error.code == ErrorCode::INVALID_PARAMS => {
                self.task(id).await.map(|_| Outcome::empty())
            }
            Err(error) => Err(failure::of_call(error)),
        }
    }
}

/// Returns the result of a tool as the envelope era has it.
fn ended(text: &str) -> Result<Json, McpError> {
    let members: JsonObject = marked(text, None)?;
    Ok(Json::from(members.with("resultType", Json::from(result_type::COMPLETE))))
}
