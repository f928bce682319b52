//! Work that runs while a server runs, beside its requests.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Registry, RunningServer, StateSlot};
use crate::kernel::connection::contained;
use duplexer_core::dispatch::{BoxFuture, lock};

/// Starts work for a run of a server. Returns `None` if the state of its lifespan is of another type.
pub(crate) type WorkFn = Box<dyn Fn(RunningServer) -> Option<BoxFuture<'static, ()>> + Send + Sync>;

/// The context of work that belongs to no message: [`ServerBuilder::while_running`](crate::ServerBuilder::while_running).
pub struct RunContext<S> {
    running: RunningServer,
    state: Arc<S>,
    slot: StateSlot<S>,
}

impl<S: Any + Send + Sync> RunContext<S> {
    pub(crate) fn new(running: RunningServer, slot: StateSlot<S>) -> Option<Self> {
        let (_, state) = running.states().0.iter().find(|(held, _)| *held == slot.id())?;
        let state = Arc::clone(state).downcast().ok()?;
        Some(Self { running, state, slot })
    }
}

impl<S> RunContext<S> {
    /// Returns the server that runs.
    pub fn server(&self) -> &RunningServer {
        &self.running
    }

    /// Returns the state of the lifespan that the work was registered under.
    pub fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn state_slot(&self) -> StateSlot<S> {
        self.slot
    }
}

impl<S> fmt::Debug for RunContext<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RunContext").field(&self.running).finish()
    }
}

/// The tasks of one run. Dropping them ends them.
#[derive(Default)]
pub(crate) struct Background(Mutex<JoinSet<()>>);

impl Background {
    /// Starts the work of all lifespans. The work gets `running`, which must not own the result.
    pub(crate) fn start(registry: &Registry, running: &RunningServer) -> Self {
        let mut tasks = JoinSet::new();
        for work in registry.lifespans.iter().flat_map(|lifespan| &lifespan.work) {
            let Some(work) = work(running.clone()) else {
                tracing::error!("work beside requests has a state of another type");
                continue;
            };
            if let Ok(runtime) = Handle::try_current() {
                tasks.spawn_on(contained(work), &runtime);
            } else {
                tracing::warn!("outside of a runtime no work runs beside requests");
            }
        }
        Self(Mutex::new(tasks))
    }

    /// Drops the work at its next `await`, and waits for that within the budget.
    pub(crate) async fn stop(&self, budget: Duration) {
        let mut tasks = std::mem::take(&mut *lock(&self.0));
        if timeout(budget, tasks.shutdown()).await.is_err() {
            tracing::warn!("work beside requests took too long to end and was left behind");
        }
    }
}
