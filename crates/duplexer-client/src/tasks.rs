//! Tasks: calls of tools whose results come later. Awaited calls wait for them; a [`TaskHandle`] is held by the caller.
//!
//! The extension of the envelope era and the experiment of 2025-11-25 have the same handle. `poll` waits for the end of a task.

mod known_tools;
mod poll;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::json::{Json, find_members};
use duplexer_types::methods::{Method, TasksCancel, TasksGet, TasksList, ToolsCall};
use duplexer_types::page::PaginatedParams;
use duplexer_types::task::{
    CancelTaskParams, CreateTaskResult, DetailedTask, EXTENSION, GetTaskParams, Task, TaskStatus,
};
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::{Era, Window};
use duplexer_types::wire::result_type;

use self::poll::{CancelOnDrop, Polling};
use super::extension::{ClaimedResult, ClientExtension};
use super::session::decode_result;
use super::{Call, Client, ClientBuilder, ClientError};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::CallError;

pub(super) use known_tools::{KnownTools, Wish};

type OnStatus = Arc<dyn Fn(&Task) + Send + Sync>;

/// How a client waits for tasks. Given to [`ClientBuilder::tasks`].
#[derive(Clone, Default)]
pub struct TaskOptions {
    deadline: Option<Duration>,
    on_status: Option<OnStatus>,
}

impl TaskOptions {
    /// Creates the default options: tasks are waited for without a limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long an awaited call waits for the end of its task. The task is cancelled then.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets a callback for every state of a task that is waited for. It must not block.
    #[must_use]
    pub fn on_status(mut self, callback: impl Fn(&Task) + Send + Sync + 'static) -> Self {
        self.on_status = Some(Arc::new(callback));
        self
    }
}

impl fmt::Debug for TaskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskOptions").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Declares tasks. Awaited calls of tools then wait for the end of their tasks and answer their questions, and
    /// [`Call::started`] returns a handle.
    #[doc(alias("tasks/get", "background", "long-running"))]
    pub fn tasks(mut self, options: TaskOptions) -> Self {
        self.callbacks.tasks = Some(options.clone());
        self.extend(TasksExtension(options))
    }
}

/// The extension of the envelope era.
struct TasksExtension(TaskOptions);

impl ClientExtension for TasksExtension {
    fn id(&self) -> &'static str {
        EXTENSION
    }

    fn window(&self) -> Window {
        Window::ENVELOPE
    }

    fn claims(&self, method: Method, result_type: &str) -> bool {
        method == Method::ToolsCall && result_type == result_type::TASK
    }

    fn finish<'a>(&'a self, claimed: ClaimedResult<'a>) -> BoxFuture<'a, Result<Json, ClientError>> {
        Box::pin(async move {
            let created: CreateTaskResult = claimed.result.decode().map_err(CallError::Unexpected)?;
            finish(claimed.client, created.task, &self.0).await
        })
    }
}

/// Returns the task that a result of 2025-11-25 creates, if it does.
pub(super) fn created(text: &str) -> Result<Option<Task>, CallError> {
    let [task] = find_members(text, ["task"]).map_err(CallError::Unexpected)?;
    task.one().map(serde_json::from_str).transpose().map_err(CallError::Unexpected)
}

/// Waits for the end of a task on behalf of an awaited call: dropping the call cancels the task.
pub(super) async fn finish(client: &Client, task: Task, options: &TaskOptions) -> Result<Json, ClientError> {
    let mut cancel = CancelOnDrop::new(client, &task.task_id);
    let polling = Polling::new(client, &task.task_id, options).started(&task);
    let ended = match options.deadline {
        None => polling.finish().await,
        Some(deadline) => match tokio::time::timeout(deadline, polling.finish()).await {
            Ok(ended) => ended,
            Err(_) => return Err(CallError::Timeout("the task did not end in time".into()).into()),
        },
    };
    cancel.disarm();
    ended
}

/// What became of a call that was started with [`Call::started`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Started {
    /// The server has answered directly.
    Done(CallToolResult),
    /// The server has created a task.
    Task(TaskHandle),
}

impl Call<ToolsCall> {
    /// Starts the call: returns its result, or a handle if the server makes it a task ([`ClientBuilder::tasks`]).
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError, Started};
    /// # async fn example(client: Client) -> Result<(), ClientError> {
    /// match client.call_tool("render", ()).started().await? {
    ///     Started::Task(task) => println!("{} is under way", task.id()),
    ///     Started::Done(result) => println!("{}", result.to_text()),
    ///     _ => {}
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like awaiting the call.
    pub async fn started(mut self) -> Result<Started, ClientError> {
        let as_task = self.ask_for_task(Wish::Handle);
        let client = self.client().clone();
        let options = client.0.callbacks.tasks.clone();
        match self.finish().await {
            Ok(text) => match created(&text)?.filter(|_| as_task) {
                Some(created) => Ok(Started::Task(TaskHandle::new(&client, created.task_id))),
                None => Ok(Started::Done(decode_result(&text, client.0.session.result_revision)?)),
            },
            Err(ClientError::ResultType { method, result_type, result })
                if options.is_some() && result_type == result_type::TASK && method == Method::ToolsCall =>
            {
                let created: CreateTaskResult = result.decode().map_err(CallError::Unexpected)?;
                Ok(Started::Task(TaskHandle::new(&client, created.task.task_id)))
            }
            Err(error) => Err(error),
        }
    }
}

/// A task of the server. Dropping it leaves the task alone; another process can take it up by its id
/// ([`Client::task`]).
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    id: String,
}

impl Client {
    /// Returns the task with this id, for example one that another process has started.
    pub fn task(&self, id: impl Into<String>) -> TaskHandle {
        TaskHandle::new(self, id.into())
    }

    /// Requests one page of the caller's tasks (`tasks/list`). Only revision 2025-11-25 has the method.
    pub fn list_tasks(&self) -> Call<TasksList> {
        self.request(PaginatedParams::new())
    }
}

impl TaskHandle {
    fn new(client: &Client, id: String) -> Self {
        Self { client: client.clone(), id }
    }

    /// Returns the id of the task.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Requests the state of the task (`tasks/get`), with its open questions, result or error in the envelope era.
    ///
    /// # Errors
    ///
    /// Fails with [`ClientError::UnknownTask`] if the server does not know the task, and like every request.
    pub async fn status(&self) -> Result<DetailedTask, ClientError> {
        let answer = self.client.request::<TasksGet>(GetTaskParams::new(self.id.as_str())).await;
        answer.map(|result| result.task).map_err(|error| poll::known(&self.id, error))
    }

    /// Cancels the task (`tasks/cancel`). In the envelope era the server may still end it otherwise.
    ///
    /// # Errors
    ///
    /// Fails with [`ClientError::UnknownTask`] if the server does not know the task, and like every request.
    pub async fn cancel(&self) -> Result<(), ClientError> {
        let answer = self.client.request::<TasksCancel>(CancelTaskParams::new(self.id.as_str())).await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) if self.client.era() == Era::Envelope => Err(poll::known(&self.id, error)),
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of the task, answers its questions with the callbacks of the client, and returns the result.
    /// Dropping the future leaves the task alone.
    ///
    /// # Errors
    ///
    /// Fails with the error that the task ended with, with [`ClientError::TaskCancelled`] or [`ClientError::UnknownTask`], if a
    /// question cannot be answered (the task is cancelled then), and like every request.
    pub async fn result(&self) -> Result<CallToolResult, ClientError> {
        let text = self.raw_result().await?;
        Ok(decode_result(text.as_str(), self.client.0.session.result_revision)?)
    }

    /// Waits like [`TaskHandle::result`] and returns the result verbatim.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskHandle::result`].
    pub async fn raw_result(&self) -> Result<Json, ClientError> {
        let options = self.client.0.callbacks.tasks.clone().unwrap_or_default();
        Polling::new(&self.client, &self.id, &options).finish().await
    }

    /// Waits until the state of the task differs from `earlier`, and returns it. Polls at the interval of the server.
    ///
    /// # Errors
    ///
    /// Fails like [`TaskHandle::status`].
    pub async fn changed(&self, earlier: &Task) -> Result<DetailedTask, ClientError> {
        loop {
            let now = self.status().await?;
            let same =
                now.task.status == earlier.status && now.task.last_updated_at == earlier.last_updated_at;
            if !same || now.task.status.is_final() && earlier.status == TaskStatus::Working {
                return Ok(now);
            }
            tokio::time::sleep(poll::interval(&now.task)).await;
        }
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
