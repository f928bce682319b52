//! Calls that outlive their request: the messages of the tasks extension (envelope era).

use serde::de::Error as _;
use serde::ser::SerializeMap;

use crate::error::ErrorObject;
use crate::input::{InputRequest, InputResponse};
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum};
use crate::version::feature;
use crate::wire::envelope::plain_result;
use crate::wire::{ResultBody, Shape, Wire, WireObject, object, result_type};

/// The id under which the extension is declared.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

open_enum! {
    /// How a task stands.
    pub enum TaskStatus {
        /// Under way.
        Working = "working",
        /// It waits for input.
        InputRequired = "input_required",
        /// Done, well or with a tool's own failure.
        Completed = "completed",
        /// The request failed.
        Failed = "failed",
        /// Given up.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether the status will never change again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

model! {
    /// A task.
    pub struct Task {
        /// Its name; nobody can guess it.
        task_id: String = "taskId",
        /// How it stands.
        status: TaskStatus = "status",
        /// When it began, in ISO 8601.
        created_at: String = "createdAt",
        /// When it last changed, in ISO 8601.
        last_updated_at: String = "lastUpdatedAt",
        /// For how many milliseconds from its beginning it is kept; `null`: for ever.
        #[serde(deserialize_with = "required_or_null")]
        ttl_ms: Option<u64> = "ttlMs",
    } optional {
        /// For people.
        status_message: String = "statusMessage",
        /// How many milliseconds to wait between two looks at it.
        poll_interval_ms: u64 = "pollIntervalMs",
    }
}

/// Unlike serde's `Option`, it must be there.
fn required_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    serde::Deserialize::deserialize(deserializer)
}

/// A task with all that is known of it: what `tasks/get` answers and `notifications/tasks` says.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task.
    pub task: Task,
    /// What it waits for.
    pub input_requests: Option<JsonObject<InputRequest>>,
    /// What came of it.
    pub result: Option<Json>,
    /// Why it failed.
    pub error: Option<ErrorObject>,
}

impl DetailedTask {
    /// A task of which no more is known: under way, or cancelled.
    pub fn new(task: Task) -> Self {
        Self { task, input_requests: None, result: None, error: None }
    }

    /// The task waits for input.
    #[must_use]
    pub fn input_required(mut task: Task, requests: JsonObject<InputRequest>) -> Self {
        task.status = TaskStatus::InputRequired;
        Self { input_requests: Some(requests), ..Self::new(task) }
    }

    /// The task is done.
    #[must_use]
    pub fn completed(mut task: Task, result: Json) -> Self {
        task.status = TaskStatus::Completed;
        Self { result: Some(result), ..Self::new(task) }
    }

    /// The request failed.
    #[must_use]
    pub fn failed(mut task: Task, error: ErrorObject) -> Self {
        task.status = TaskStatus::Failed;
        Self { error: Some(error), ..Self::new(task) }
    }
}

impl WireObject for DetailedTask {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        self.task.members(shape, map)?;
        Detail::members_of(self, shape, map)
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

/// What stands beside a task's own members.
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
        use crate::wire::ForRevision;
        let DetailedTask { input_requests, result, error, .. } = task;
        input_requests
            .as_ref()
            .map_or(Ok(()), |it| map.serialize_entry("inputRequests", &ForRevision(it, shape)))?;
        result.as_ref().map_or(Ok(()), |it| map.serialize_entry("result", it))?;
        error.as_ref().map_or(Ok(()), |it| map.serialize_entry("error", it))
    }

    /// A task and what stands beside it, both from the same text.
    fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(Task, Self), D::Error> {
        let json = Json::object_of(deserializer)?;
        Ok((json.decode().map_err(D::Error::custom)?, json.decode().map_err(D::Error::custom)?))
    }

    fn task(self, task: Task) -> DetailedTask {
        DetailedTask { task, input_requests: self.input_requests, result: self.result, error: self.error }
    }
}

impl<'de> serde::Deserialize<'de> for DetailedTask {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Detail::read(deserializer).map(|(task, detail)| detail.task(task))
    }
}

/// A result that is a task and nothing else around it.
macro_rules! flat_result {
    ($(#[$doc:meta])* $name:ident($task:ty) = $kind:ident, $read:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[non_exhaustive]
        pub struct $name {
            /// The task.
            pub task: $task,
            /// What the protocol does not describe.
            pub meta: Option<JsonObject>,
        }

        impl $name {
            /// The result that says how `task` stands.
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
                if !shape.has(feature::ENVELOPE) {
                    return Err(serde::ser::Error::custom("this revision does not have the tasks extension"));
                }
                self.task.members(shape, map)
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

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (task, mut detail) = Detail::read(deserializer)?;
                let meta = detail.meta.take();
                Ok(Self { task: $read(task, detail), meta })
            }
        }
    };
}

flat_result! {
    /// In place of a result: the call has become a task.
    CreateTaskResult(Task) = TASK, |task, _| task
}

flat_result! {
    /// How a task stands.
    GetTaskResult(DetailedTask) = COMPLETE, |task, detail: Detail| detail.task(task)
}

model! {
    /// Asks how a task stands.
    pub struct GetTaskParams {
        /// Which one.
        task_id: String = "taskId",
    }
}

model! {
    /// Gives a task what it waits for, or a part of it.
    pub struct UpdateTaskParams {
        /// Which one.
        task_id: String = "taskId",
        /// Under the names of the task's requests.
        input_responses: JsonObject<InputResponse> = "inputResponses",
    }
}

model! {
    /// Asks that a task be given up.
    pub struct CancelTaskParams {
        /// Which one.
        task_id: String = "taskId",
    }
}
