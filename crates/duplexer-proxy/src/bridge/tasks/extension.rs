//! Tasks of an envelope server, for clients of the handshake era: those of 2025-11-25 follow them, for those without tasks
//! the proxy waits.

use std::collections::HashSet;
use std::time::Duration;

use duplexer_client::ClientError;
use duplexer_core::dispatch::{Message, OutboundRequest};
use duplexer_core::error::{CallError, McpError};
use duplexer_server::{Context, Outcome};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::meta;
use duplexer_types::methods::Method;
use duplexer_types::task::{CreateTaskResult, DetailedTask, EXTENSION, GetTaskResult, Task, TaskStatus};
use duplexer_types::tool::{CallToolResult, ListToolsResult, TaskSupport, ToolExecution};
use duplexer_types::version::feature;
use duplexer_types::wire::{ForRevision, Shape};
use tokio::time::{Instant, sleep};

use super::{are_offered, id_of, interval, marked, naming, read};
use crate::bridge::envelope_server::ask;
use crate::failure;
use crate::forward::options;
use crate::link::Link;
use crate::upstream::Upstream;

/// Maximum time for which the answer to a cancellation waits for the end of the task.
const CANCEL_TIME: Duration = Duration::from_secs(2);

/// The tasks of an envelope server, for one request of a client.
pub(crate) struct Tasked<'a> {
    cx: &'a Context,
    link: &'a Link,
    upstream: &'a Upstream,
}

/// Serves a request about a task.
pub(crate) async fn request(
    link: &Link,
    upstream: &Upstream,
    cx: &Context,
    message: &Message,
) -> Result<Outcome, McpError> {
    let tasks = Tasked::new(cx, link, upstream);
    if !tasks.are_offered() || !cx.protocol_version().has(feature::TASK_EXPERIMENT) {
        return Err(failure::inexpressible("tasks that a client of this revision can follow"));
    }
    match message.known() {
        Some(Method::TasksGet) => tasks.get(&id_of(message)?).await,
        Some(Method::TasksResult) => tasks.result(&id_of(message)?).await,
        Some(Method::TasksCancel) => tasks.cancel(&id_of(message)?).await,
        Some(Method::TasksList) => Err(failure::inexpressible("list of tasks")),
        _ => Err(ErrorObject::method_not_found(message.method()).into()),
    }
}

impl<'a> Tasked<'a> {
    pub(crate) fn new(cx: &'a Context, link: &'a Link, upstream: &'a Upstream) -> Self {
        Self { cx, link, upstream }
    }

    pub(crate) fn are_offered(&self) -> bool {
        let client = &self.upstream.client;
        are_offered(client.server_capabilities(), client.protocol_version())
    }

    /// Returns whether a call asks for a task.
    pub(crate) fn is_requested(&self, message: &Message) -> Result<bool, McpError> {
        Ok(message.known() == Some(Method::ToolsCall)
            && self.cx.protocol_version().has(feature::TASK_EXPERIMENT)
            && self.are_offered()
            && crate::translate::members(message)?.get("task").is_some_and(|task| !task.is_null()))
    }

    /// Returns whether a call failed only because it did not declare that its client has tasks.
    pub(crate) fn is_required(&self, error: &ErrorObject) -> bool {
        error.code == ErrorCode::MISSING_CLIENT_CAPABILITY
            && self.are_offered()
            && error.data.as_ref().is_some_and(|data| data.as_str().contains(EXTENSION))
    }

    /// Sends a request that declares tasks.
    pub(crate) async fn send(&self, mut request: OutboundRequest) -> Result<Json, ClientError> {
        let envelope = self.envelope().map_err(CallError::Encode)?;
        for (name, value) in envelope.iter() {
            request.meta.insert(name, value.clone());
        }
        let text = self.upstream.client.forward(request).await?;
        Json::parse(&text).map_err(|error| CallError::Unexpected(error).into())
    }

    /// Returns the metadata of a request that declares tasks beside what its client has declared.
    fn envelope(&self) -> Result<JsonObject, serde_json::Error> {
        let version = self.upstream.client.protocol_version();
        let shape = Shape::new(version);
        let caller = self.link.caller();
        let mut capabilities = caller.capabilities.clone();
        capabilities.extensions.get_or_insert_default().insert(EXTENSION, Json::object());
        let proxy = || Implementation::new("duplexer-proxy", env!("CARGO_PKG_VERSION"));
        let info = caller.info.clone().unwrap_or_else(proxy);
        let info = Json::encode(&ForRevision(&info, shape))?;
        let capabilities = Json::encode(&ForRevision(&capabilities, shape))?;
        Ok(meta::envelope(version.as_str(), &info, &capabilities))
    }

    /// Says in a list of tools that each of them can be called as a task: the server decides with each call.
    pub(crate) fn listed(&self, text: &str) -> Result<Outcome, McpError> {
        let mut page: ListToolsResult = read(text)?;
        if self.are_offered() {
            for tool in &mut page.tools {
                let mut execution = ToolExecution::new();
                execution.task_support = Some(TaskSupport::Optional);
                tool.execution = Some(execution);
            }
        }
        Ok(Outcome::of(page))
    }

    /// Returns the answer to a call that has created a task.
    pub(crate) fn created(text: &str) -> Result<Outcome, McpError> {
        let mut created: CreateTaskResult = read(text)?;
        created.task.status = TaskStatus::Working;
        Ok(Outcome::of(CreateTaskResult::new(created.task)))
    }

    /// Returns the answer to a call that asked for a task and got its result at once.
    pub(crate) fn finished(&self, text: &str) -> Result<Outcome, McpError> {
        let status = if is_error(text)? { TaskStatus::Failed } else { TaskStatus::Completed };
        let mut task = self.link.finished.keep(status, text.into())?;
        task.status = TaskStatus::Working;
        Ok(Outcome::of(CreateTaskResult::new(task)))
    }

    /// Waits for the end of a task on behalf of a client that has no tasks. Dropping it cancels the task.
    pub(crate) async fn waited(&self, text: &str) -> Result<String, McpError> {
        let id = read::<CreateTaskResult>(text)?.task.task_id;
        let mut cancel = CancelOnDrop { tasks: self, id: Some(id.clone()) };
        let ended = self.ended(&id).await;
        cancel.id = None;
        ended
    }

    async fn forward(&self, method: Method, params: Json) -> Result<Json, McpError> {
        let mut request = OutboundRequest::new(method.name()).params(params);
        request.options = options(self.link, self.upstream, None);
        self.send(request).await.map_err(failure::of_client)
    }

    async fn task(&self, id: &str) -> Result<DetailedTask, McpError> {
        let text = self.forward(Method::TasksGet, naming(id)).await?;
        Ok(read::<GetTaskResult>(text.as_str())?.task)
    }

    async fn get(&self, id: &str) -> Result<Outcome, McpError> {
        let task = match self.link.finished.get(id) {
            Some(ended) => ended.task,
            None => seen(self.task(id).await?)?,
        };
        Ok(Outcome::of(GetTaskResult::new(DetailedTask::new(task))))
    }

    async fn result(&self, id: &str) -> Result<Outcome, McpError> {
        let text = match self.link.finished.get(id) {
            Some(ended) => ended.result.ok_or_else(cancelled)?.to_string(),
            None => self.ended(id).await?,
        };
        let members = Json::from(marked(&text, Some(id))?);
        Ok(Outcome::of(read::<CallToolResult>(members.as_str())?))
    }

    /// Reads a task until it has ended, and asks the client what the task asks. Returns the result of the tool.
    async fn ended(&self, id: &str) -> Result<String, McpError> {
        let mut answered = HashSet::new();
        loop {
            let DetailedTask { task, input_requests, result, error, .. } = self.task(id).await?;
            match (&task.status, result, error) {
                (TaskStatus::Completed, Some(result), _) => return Ok(result.as_str().to_owned()),
                (TaskStatus::Failed, _, Some(error)) => return Err(McpError::Rpc(error)),
                (TaskStatus::Cancelled, ..) => {
                    return Err(cancelled());
                }
                (TaskStatus::Completed | TaskStatus::Failed, ..) => {
                    let text = format!("the task is {} without its outcome", task.status);
                    let error = CallError::Unexpected(serde::de::Error::custom(text));
                    return Err(failure::of_call(error));
                }
                _ => {}
            }
            for (key, question) in input_requests.unwrap_or_default() {
                if answered.insert(key.clone()) {
                    self.answer(id, key, &question).await?;
                }
            }
            sleep(interval(&task)).await;
        }
    }

    /// Asks the client one question of a task. A client that refuses it cancels the task.
    async fn answer(
        &self,
        id: &str,
        key: String,
        question: &duplexer_types::input::InputRequest,
    ) -> Result<(), McpError> {
        let answer = match ask(self.cx, question, Some(naming(id))).await {
            Ok(answer) => answer,
            Err(error) => {
                if let Err(error) = self.forward(Method::TasksCancel, naming(id)).await {
                    tracing::debug!(%error, "a task whose question was refused could not be cancelled");
                }
                return Err(error);
            }
        };
        let answers: JsonObject = JsonObject::new().with(key, answer);
        let params: JsonObject =
            JsonObject::new().with("taskId", Json::from(id)).with("inputResponses", Json::from(answers));
        self.forward(Method::TasksUpdate, Json::from(params)).await.map(drop)
    }

    /// Cancels a task. In 2025-11-25 the answer is the cancelled task, and a task that has ended is refused.
    async fn cancel(&self, id: &str) -> Result<Outcome, McpError> {
        let ended = || McpError::new(ErrorCode::INVALID_PARAMS, "The task has ended");
        if self.link.finished.get(id).is_some() || self.task(id).await?.task.status.is_final() {
            return Err(ended());
        }
        self.forward(Method::TasksCancel, naming(id)).await?;
        let deadline = Instant::now() + CANCEL_TIME;
        let mut task = loop {
            let task = self.task(id).await?.task;
            if task.status.is_final() || Instant::now() >= deadline {
                break task;
            }
            sleep(interval(&task).min(CANCEL_TIME / 10)).await;
        };
        match task.status {
            TaskStatus::Completed | TaskStatus::Failed => return Err(ended()),
            _ => task.status = TaskStatus::Cancelled,
        }
        self.link.finished.cancelled(task.clone());
        Ok(Outcome::of(GetTaskResult::new(DetailedTask::new(task))))
    }
}

/// Returns a task as 2025-11-25 has it: a tool that reports a failure has failed.
fn seen(detailed: DetailedTask) -> Result<Task, McpError> {
    let mut task = detailed.task;
    if task.status == TaskStatus::Completed
        && let Some(result) = &detailed.result
        && is_error(result.as_str())?
    {
        task.status = TaskStatus::Failed;
    }
    Ok(task)
}

fn cancelled() -> McpError {
    McpError::new(ErrorCode::INTERNAL_ERROR, "The task was cancelled")
}

fn is_error(result: &str) -> Result<bool, McpError> {
    let members: JsonObject = read(result)?;
    Ok(members.get("isError").is_some_and(|is_error| is_error.as_str() == "true"))
}

/// Cancels a task whose call was dropped.
struct CancelOnDrop<'a> {
    tasks: &'a Tasked<'a>,
    id: Option<String>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(envelope) = self.tasks.envelope() else { return };
        let client = self.tasks.upstream.client.clone();
        let mut request = OutboundRequest::new(Method::TasksCancel.name()).params(naming(&id)).meta(envelope);
        request.options = options(self.tasks.link, self.tasks.upstream, None);
        self.tasks.link.streams.spawn(async move {
            if let Err(error) = client.forward(request).await {
                tracing::debug!(%error, "a task whose call was dropped could not be cancelled");
            }
        });
    }
}
