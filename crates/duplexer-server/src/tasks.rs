//! Tasks: calls of tools that outlive their request.
//!
//! A tool becomes task-capable with `#[tool(task)]` or [`Tool::task`](crate::tool::Tool::task), and its server gets [`Tasks`].
//! The same function then answers directly where tasks are not to be had.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::json::Json;
use duplexer_types::task::EXTENSION;
use duplexer_types::version::Window;

use crate::builder::ServerBuilder;
use crate::builder::extension::Extension;
use crate::features::tasks::{Hub, Plan, TaskSettings};

pub use crate::features::tasks::{
    FileTasks, MemoryTasks, OpenTasksError, Taker, TaskCreation, TaskId, TaskLease, TaskLimits, TaskOutcome,
    TaskOwner, TaskPolicy, TaskQuestion, TaskRecord, TaskRemote, TaskReplacement, TaskState, TaskStore,
    TaskTimes, TaskedCall, UnixMillis,
};

/// Extension that runs calls of tools as tasks, in the extension of 2026-07-28 and in the experiment of 2025-11-25. Clones
/// share their tasks.
///
/// ```
/// # use duplexer_server::{Server, tasks::{TaskPolicy, Tasks}};
/// # use duplexer_server::tool::Tool;
/// let render = Tool::new("render", || async { "done" }).task(TaskPolicy::new());
/// let server = Server::builder("jobs", "1.0.0").extend(Tasks::new()).tool(render).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tasks {
    plan: Plan,
}

impl Tasks {
    /// Creates the extension with tasks in the memory of this process.
    pub fn new() -> Self {
        Self::on(MemoryTasks::new())
    }

    /// Creates the extension with tasks in a store, such as [`FileTasks`].
    pub fn on(store: impl TaskStore) -> Self {
        let settings = TaskSettings::default();
        Self { plan: Plan { store: Arc::new(store), settings, hub: Arc::new(Hub::default()), bus: None } }
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: TaskLimits) -> Self {
        self.plan.settings.limits = limits;
        self
    }

    /// Sets how many tasks run at once on this node: 64 by default. Others wait in order. Tasks that wait for input do not count.
    #[must_use]
    pub fn running(mut self, tasks: usize) -> Self {
        self.plan.settings.running = tasks;
        self
    }

    /// Sets how long a task is kept after its end: ten minutes by default.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.plan.settings.retention = retention;
        self
    }

    /// Sets how long a node that is gone keeps its tasks: 30 seconds by default. Then another node takes them over.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.plan.settings.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// Sets how long a question of a task waits for its answer: an hour by default. Then the function gets an error.
    #[must_use]
    pub fn input_timeout(mut self, timeout: Duration) -> Self {
        self.plan.settings.input_timeout = timeout;
        self
    }

    /// Sets the polling interval that clients are told: one second by default.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.plan.settings.poll_interval = interval;
        self
    }

    /// Returns a task that was handed over, for whoever does its work ([`Context::hand_over`](crate::Context::hand_over)).
    pub fn of(&self, id: impl Into<TaskId>) -> TaskRemote {
        TaskRemote::new(self.plan.clone(), id.into())
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Any + Send + Sync> Extension<S> for Tasks {
    fn id(&self) -> &str {
        EXTENSION
    }

    fn settings(&self) -> Json {
        Json::object()
    }

    /// The experiment of 2025-11-25 has a capability of its own.
    fn window(&self) -> Window {
        Window::ENVELOPE
    }

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        builder.tasks(self.plan)
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("settings", &self.plan.settings).finish_non_exhaustive()
    }
}
