//! What the function of a task-capable tool says to its context.

use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;

use super::record::TaskId;
use crate::kernel::context::Context;

/// Work that is handed over ends within this time, or its task fails.
const HAND_OVER_TIME: Duration = Duration::from_secs(24 * 3600);

impl<S> Context<S> {
    /// Continues the call as a task: the client gets its answer now, and fetches the result later. Returns when the task is
    /// stored. What the function asks before this is asked in rounds of the call; what it asks after is asked by the task.
    ///
    /// Returns at once if the client has no tasks, or if the call is a task already.
    ///
    /// For tools with [`TaskPolicy::explicit`](crate::tasks::TaskPolicy::explicit), or `#[tool(task(explicit))]`.
    ///
    /// ```
    /// # use duplexer_server::{Context, tool::ToolError};
    /// async fn migrate(cx: Context, name: String) -> Result<String, ToolError> {
    ///     if name.is_empty() {
    ///         return Err(ToolError::new("Name the database."));
    ///     }
    ///     cx.background().await;
    ///     Ok(format!("{name} is migrated"))
    /// }
    /// ```
    pub async fn background(&self) {
        if let Some(task) = self.scope().task() {
            task.enter_background().await;
        }
    }

    /// Leaves the rest of the task to somebody else: a queue, a webhook, another process with the same store. What the function
    /// returns afterwards is ignored. Whoever has the returned id ends the task with
    /// [`Tasks::of`](crate::tasks::Tasks::of), within a day.
    ///
    /// # Errors
    ///
    /// Fails if the call is not a task, because the client has none: use it in a tool that requires tasks. Fails if the store does.
    pub async fn hand_over(&self) -> Result<TaskId, McpError> {
        let Some(task) = self.scope().task() else {
            let text = "Only a task can be handed over, and this call is none";
            return Err(McpError::new(ErrorCode::INTERNAL_ERROR, text));
        };
        task.hand_over(HAND_OVER_TIME).await
    }

    /// Returns the id of the task that this call is, once it is one.
    pub fn task_id(&self) -> Option<TaskId> {
        self.scope().task().and_then(|task| task.id())
    }
}
