//! Tasks: requests whose results are retrieved later. The messages of the tasks extension (envelope era), and those of the
//! experiment of 2025-11-25, which has the same content under other names.

use serde::ser::SerializeMap;

use crate::error::ErrorObject;
use crate::input::{InputRequest, InputResponse};
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum, read_from_json};
use crate::version::feature;
use crate::wire::envelope::plain_result;
use crate::wire::{ForRevision, ResultBody, Shape, Wire, WireObject, object, result_type};

/// Identifier of the tasks extension.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

open_enum! {
    /// [Status](https://modelcontextprotocol.io/extensions/tasks/overview) of a task.
    pub enum TaskStatus {
        /// The request is being processed.
        Working = "working",
        /// The task waits for input.
        InputRequired = "input_required",
        /// The request completed; the result may be a tool execution error.
        Completed = "completed",
        /// The request failed with a JSON-RPC error.
        Failed = "failed",
        /// The task was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether the status is terminal.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// State of a [task](https://modelcontextprotocol.io/extensions/tasks/overview). In 2025-11-25 it is also the parameters of a `notifications/tasks/status` notification,
/// and `ttlMs` and `pollIntervalMs` are called `ttl` and `pollInterval`.
#[doc(alias = "notifications/tasks/status")]
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[serde(rename_all = "camelCase", remote = "Self")]
#[non_exhaustive]
pub struct Task {
    /// Identifier of the task. It must be hard to guess.
    pub task_id: String,
    /// Status of the task.
    pub status: TaskStatus,
    /// Time of creation, in ISO 8601.
    pub created_at: String,
    /// Time of the last update, in ISO 8601.
    pub last_updated_at: String,
    /// Retention time from creation, in milliseconds; `null` for unlimited.
    #[serde(alias = "ttl", deserialize_with = "required_or_null")]
    pub ttl_ms: Option<u64>,
    /// Description of the status, for the user.
    #[serde(default)]
    pub status_message: Option<String>,
    /// Suggested polling interval, in milliseconds.
    #[serde(alias = "pollInterval", default)]
    pub poll_interval_ms: Option<u64>,
}

impl Task {
    /// Creates a `Task` from its required members.
    pub fn new(
        task_id: impl Into<String>,
        status: TaskStatus,
        created_at: impl Into<String>,
        last_updated_at: impl Into<String>,
        ttl_ms: impl Into<Option<u64>>,
    ) -> Self {
        Self {
            task_id: task_id.into(),
            status,
            created_at: created_at.into(),
            last_updated_at: last_updated_at.into(),
            ttl_ms: ttl_ms.into(),
            status_message: None,
            poll_interval_ms: None,
        }
    }

    /// Sets `statusMessage`.
    #[must_use]
    pub fn status_message(mut self, message: impl Into<String>) -> Self {
        self.status_message = Some(message.into());
        self
    }

    /// Sets `pollIntervalMs`.
    #[must_use]
    pub fn poll_interval_ms(mut self, interval: impl Into<u64>) -> Self {
        self.poll_interval_ms = Some(interval.into());
        self
    }
}

impl WireObject for Task {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        let [ttl, poll_interval] =
            if shape.has(feature::ENVELOPE) { ["ttlMs", "pollIntervalMs"] } else { ["ttl", "pollInterval"] };
        map.serialize_entry("taskId", &self.task_id)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("createdAt", &self.created_at)?;
        map.serialize_entry("lastUpdatedAt", &self.last_updated_at)?;
        map.serialize_entry(ttl, &self.ttl_ms)?;
        self.status_message.as_ref().map_or(Ok(()), |it| map.serialize_entry("statusMessage", it))?;
        self.poll_interval_ms.map_or(Ok(()), |it| map.serialize_entry(poll_interval, &it))
    }
}

impl Wire for Task {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        object(self, shape, serializer)
    }
}

impl serde::Serialize for Task {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

// The derived implementation also accepts arrays. With `remote` it stays private and gets objects only.
impl<'de> serde::Deserialize<'de> for Task {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(crate::json::ObjectsOnly(deserializer))
    }
}

/// Requires the member, unlike serde's `Option`. Its value may be `null`.
fn required_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    serde::Deserialize::deserialize(deserializer)
}

/// State of a [task](https://modelcontextprotocol.io/extensions/tasks/overview) with its input requests, result or error: the parameters of a `notifications/tasks`
/// notification and the body of a `tasks/get` result.
#[doc(alias = "notifications/tasks")]
#[doc(alias = "tasks/get")]
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct DetailedTask {
    /// State of the task.
    pub task: Task,
    /// Pending input requests, if the task waits for input.
    pub input_requests: Option<JsonObject<InputRequest>>,
    /// Result of the request, if the task completed.
    pub result: Option<Json>,
    /// Error of the request, if the task failed.
    pub error: Option<ErrorObject>,
}

impl DetailedTask {
    /// Creates the state of a task that is working or cancelled.
    pub fn new(task: Task) -> Self {
        Self { task, input_requests: None, result: None, error: None }
    }

    /// Creates the state of a task that waits for input.
    #[must_use]
    pub fn input_required(mut task: Task, requests: JsonObject<InputRequest>) -> Self {
        task.status = TaskStatus::InputRequired;
        Self { input_requests: Some(requests), ..Self::new(task) }
    }

    /// Creates the state of a completed task.
    #[must_use]
    pub fn completed(mut task: Task, result: impl Into<Json>) -> Self {
        task.status = TaskStatus::Completed;
        Self { result: Some(result.into()), ..Self::new(task) }
    }

    /// Creates the state of a failed task.
    #[must_use]
    pub fn failed(mut task: Task, error: ErrorObject) -> Self {
        task.status = TaskStatus::Failed;
        Self { error: Some(error), ..Self::new(task) }
    }
}

impl WireObject for DetailedTask {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        self.task.members(shape, map)?;
        // In 2025-11-25 the result has a request of its own, and questions are requests.
        if shape.has(feature::ENVELOPE) { Detail::members_of(self, shape, map) } else { Ok(()) }
    }
}

impl Wire for DetailedTask {
    fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        object(self, shape, serializer)
    }
}

impl serde::Serialize for DetailedTask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

/// The members of a [`DetailedTask`] besides those of its task.
#[derive(serde::Deserialize)]
struct Detail {
    #[serde(rename = "inputRequests")]
    input_requests: Option<JsonObject<InputRequest>>,
    #[serde(default, deserialize_with = "crate::json::present")]
    result: Option<Json>,
    error: Option<ErrorObject>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
}

impl Detail {
    fn members_of<M: SerializeMap>(task: &DetailedTask, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        let DetailedTask { input_requests, result, error, .. } = task;
        input_requests
            .as_ref()
            .map_or(Ok(()), |it| map.serialize_entry("inputRequests", &ForRevision(it, shape)))?;
        result.as_ref().map_or(Ok(()), |it| map.serialize_entry("result", it))?;
        error.as_ref().map_or(Ok(()), |it| map.serialize_entry("error", it))
    }

    /// Reads a task and its details from the same text. In 2025-11-25 a created task is a member.
    fn read(json: &Json) -> Result<(Task, Self), serde_json::Error> {
        let task = match json.member("task") {
            Some(nested) => serde_json::from_str(nested)?,
            None => json.decode()?,
        };
        Ok((task, json.decode()?))
    }

    fn task(self, task: Task) -> DetailedTask {
        DetailedTask { task, input_requests: self.input_requests, result: self.result, error: self.error }
    }
}

impl DetailedTask {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        Detail::read(json).map(|(task, detail)| detail.task(task))
    }
}

read_from_json!(object DetailedTask);

/// Declares a result whose members are those of a task.
macro_rules! flat_result {
    ($(#[$doc:meta])* $name:ident($task:ty) = $kind:ident, $read:expr, $experiment:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub struct $name {
            /// State of the task.
            pub task: $task,
            /// Additional metadata.
            pub meta: Option<JsonObject>,
        }

        impl $name {
            /// Creates a result from the state of a task.
            pub fn new(task: $task) -> Self {
                Self { task, meta: None }
            }

            /// Sets `_meta`.
            #[must_use]
            pub fn meta(mut self, meta: impl Into<JsonObject>) -> Self {
                self.meta = Some(meta.into());
                self
            }
        }

        impl WireObject for $name {
            fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
                if shape.has(feature::ENVELOPE) {
                    return self.task.members(shape, map);
                }
                if !shape.has(feature::TASK_EXPERIMENT) {
                    return Err(serde::ser::Error::custom("this revision does not have tasks"));
                }
                $experiment(&self.task, shape, map)
            }
        }

        impl Wire for $name {
            fn write<S: serde::Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
                plain_result(self, self.meta.as_ref(), shape, serializer)
            }
        }

        impl ResultBody for $name {
            fn meta(&self) -> Option<&JsonObject> {
                self.meta.as_ref()
            }

            fn result_type(&self) -> &str {
                result_type::$kind
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.write(Shape::FULL, serializer)
            }
        }

        impl $name {
            fn read(json: &Json) -> Result<Self, serde_json::Error> {
                let (task, mut detail) = Detail::read(json)?;
                let meta = detail.meta.take();
                Ok(Self { task: $read(task, detail), meta })
            }
        }

        read_from_json!(object $name);
    };
}

flat_result! {
    /// Result that creates a [task](https://modelcontextprotocol.io/extensions/tasks/overview), in place of the final result of a request such as `tools/call`. Its
    /// `resultType` is `task`.
    #[doc(alias = "tools/call")]
    CreateTaskResult(Task) = TASK, |task, _| task, nested
}

flat_result! {
    /// Result of a [`tasks/get`](https://modelcontextprotocol.io/extensions/tasks/overview) request.
    #[doc(alias = "tasks/get")]
    GetTaskResult(DetailedTask) = COMPLETE, |task, detail: Detail| detail.task(task), WireObject::members
}

/// Writes a created task as 2025-11-25 does.
fn nested<M: SerializeMap>(task: &Task, shape: Shape, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("task", &ForRevision(task, shape))
}

model! {
    /// Parameters of a [`tasks/get`](https://modelcontextprotocol.io/extensions/tasks/overview) request, and of a
    /// [`tasks/result`](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#retrieving-task-results) request of 2025-11-25.
    #[doc(alias = "tasks/get")]
    #[doc(alias = "tasks/result")]
    pub struct GetTaskParams {
        /// Identifier of the task.
        task_id: String = "taskId",
    }
}

model! {
    /// Parameters of a [`tasks/update`](https://modelcontextprotocol.io/extensions/tasks/overview) request, which responds to input requests of a task.
    #[doc(alias = "tasks/update")]
    pub struct UpdateTaskParams {
        /// Identifier of the task.
        task_id: String = "taskId",
        /// Responses to some or all input requests of the task, by their keys.
        input_responses: JsonObject<InputResponse> = "inputResponses",
    }
}

model! {
    /// Parameters of a [`tasks/cancel`](https://modelcontextprotocol.io/extensions/tasks/overview) request.
    #[doc(alias = "tasks/cancel")]
    pub struct CancelTaskParams {
        /// Identifier of the task.
        task_id: String = "taskId",
    }
}

model! {
    /// Asks for a [task](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#creating-tasks): the member `task` of a request (2025-11-25).
    pub struct TaskMetadata {} optional {
        /// Requested retention time from creation, in milliseconds.
        ttl: u64 = "ttl",
    }
}

/// Reads the request for a task. In other revisions the member has no meaning, so a malformed one counts as absent.
pub(crate) fn metadata<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TaskMetadata>, D::Error> {
    Ok(<Option<Json> as serde::Deserialize>::deserialize(deserializer)?.and_then(|json| json.decode().ok()))
}

model! {
    /// Result of a [`tasks/list`](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#listing-tasks) request: one page of tasks (2025-11-25).
    #[doc(alias = "tasks/list")]
    pub result ListTasksResult {
        /// The tasks of this page.
        tasks: Vec<Task> = "tasks",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}
