//! Tasks: calls of tools that outlive their request. The extension of the envelope era and the experiment of 2025-11-25 are two
//! views of one record.
//!
//! A call runs in its request until it becomes a task; then its pending future moves, as it is, to an owned task of the
//! `engine`. `record` is what a store keeps, `change` the state machine, `view` what clients see, `call` what the context of
//! the function uses in place of the request.

mod call;
mod change;
mod context;
mod engine;
mod handlers;
mod hub;
mod limits;
mod policy;
mod record;
mod remote;
mod rerun;
mod start;
mod store;
mod time;
mod view;

use std::sync::Arc;
use std::time::Duration;

use crate::features::subscriptions::SubscriptionBus;

pub(crate) use call::TaskCall;
pub(crate) use engine::Engine;
pub(crate) use handlers::{can_list, capability, register};
pub(crate) use hub::Hub;
pub use limits::TaskLimits;
pub(crate) use limits::TaskSettings;
pub(crate) use policy::Need;
pub use policy::TaskPolicy;
pub use record::{
    TaskId, TaskLease, TaskOutcome, TaskOwner, TaskQuestion, TaskRecord, TaskState, TaskTimes, TaskedCall,
};
pub use remote::TaskRemote;
pub(crate) use start::{Limit, TaskStart, start};
pub use store::{FileTasks, MemoryTasks, OpenTasksError, Taker, TaskCreation, TaskReplacement, TaskStore};
pub use time::UnixMillis;

/// What the tasks of a server are made of.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) settings: TaskSettings,
    pub(crate) hub: Arc<Hub>,
    /// The bus of the server, over which nodes hear of changes.
    pub(crate) bus: Option<Arc<dyn SubscriptionBus>>,
}

/// The text of a tool that exceeds its time limit.
pub(crate) fn too_long(limit: Duration) -> String {
    format!("This took longer than the {limit:?} it is allowed to, and was stopped.")
}

#[cfg(test)]
mod tests;
