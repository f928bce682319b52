//! How calls of one tool become tasks.

use std::time::Duration;

/// Makes a tool task-capable, and says how. Given to [`Tool::task`](crate::tool::Tool::task).
///
/// ```
/// # use std::time::Duration;
/// use duplexer_server::tasks::TaskPolicy;
///
/// let policy = TaskPolicy::new().resumable().answer_within(Duration::from_millis(200));
/// # let _ = policy;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPolicy {
    pub(crate) need: Need,
    pub(crate) start: Start,
    pub(crate) resumable: bool,
    pub(crate) cancel_grace: Option<Duration>,
}

/// Whether a call can run without a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Need {
    #[default]
    Optional,
    Required,
}

/// When a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// When it has not ended after this time; with zero, when it first waits.
    After(Duration),
    /// When the function says so.
    Explicit,
}

impl Default for Start {
    fn default() -> Self {
        Self::After(Duration::ZERO)
    }
}

impl TaskPolicy {
    /// Creates the default policy: a call becomes a task when it first waits, and runs directly for clients without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses clients without tasks. A call is a task from the start; the function runs when its record is stored.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }

    /// Lets the function say when it becomes a task: at [`Context::background`](crate::Context::background). What it asks
    /// before is asked in rounds of the call, and what it asks after is asked by the task.
    #[must_use]
    pub fn explicit(mut self) -> Self {
        self.start = Start::Explicit;
        self
    }

    /// Lets another run repeat the function from the start, with the answers so far, after the node that ran it is gone.
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.resumable = true;
        self
    }

    /// Answers a call directly if it ends within this time, and makes it a task otherwise.
    #[must_use]
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.start = Start::After(limit);
        self
    }

    /// Gives a cancelled function this time to end by itself ([`Context::cancellation`](crate::Context::cancellation)). Without
    /// it the function is dropped at its next wait.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = Some(grace);
        self
    }
}
