//! Limits of tasks.

use std::time::Duration;

/// Limits of the tasks of a server. Every one has a default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    /// Unfinished tasks of one owner: 100.
    pub per_owner: usize,
    /// Tasks in all, finished ones that are kept included: 10 000.
    pub total: usize,
    /// Bytes of all tasks together: 256 MiB.
    pub total_bytes: usize,
    /// Open questions of one task: 16.
    pub open_questions: usize,
    /// Questions of one task in its life: 256.
    pub questions: usize,
    /// Bytes of one answer: 256 KiB.
    pub answer_bytes: usize,
    /// Bytes of one result: 1 MiB. A larger one is replaced by a tool error that says so.
    pub result_bytes: usize,
    /// Bytes of a status text: 4 KiB. A longer one is cut.
    pub message_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            per_owner: 100,
            total: 10_000,
            total_bytes: 256 * 1024 * 1024,
            open_questions: 16,
            questions: 256,
            answer_bytes: 256 * 1024,
            result_bytes: 1024 * 1024,
            message_bytes: 4096,
        }
    }
}

/// How tasks are run, kept and watched.
#[derive(Clone, Debug)]
pub(crate) struct TaskSettings {
    pub(crate) limits: TaskLimits,
    /// Tasks that run at once on this node. Those that wait for input do not count.
    pub(crate) running: usize,
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) input_timeout: Duration,
    pub(crate) poll_interval: Duration,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            limits: TaskLimits::default(),
            running: 64,
            retention: Duration::from_secs(600),
            lease: Duration::from_secs(30),
            input_timeout: Duration::from_secs(3600),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// Longest retention that a client of 2025-11-25 can ask for.
pub(crate) const MAX_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Time of a task without a timeout of its own.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(3600);
/// Runs of a resumable task.
pub(crate) const MAX_ATTEMPTS: u32 = 3;
/// Shortest time between two stored status texts of a task.
pub(crate) const MESSAGE_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time of one operation of a store.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(10);
