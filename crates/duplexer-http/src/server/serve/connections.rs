//! The open connections of a listener, and which of them is closed at the limit.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{AbortHandle, Id, JoinSet};

use super::connection_state::ConnectionState;

/// The open connections, each with the task that serves it.
pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (AbortHandle, Arc<ConnectionState>)>,
    limit: usize,
    eviction: Eviction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Eviction {
    None,
    /// A connection has been closed, and its task has not ended yet.
    Pending,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Self {
        Self { tasks: JoinSet::new(), open: HashMap::new(), limit, eviction: Eviction::None }
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= self.limit
    }

    /// Serves a connection.
    pub(super) fn spawn(
        &mut self,
        state: Arc<ConnectionState>,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.tasks.spawn(connection);
        self.open.insert(task.id(), (task, state));
    }

    /// Waits until a connection has ended. `None` if there is none.
    pub(super) async fn next_end(&mut self) -> Option<()> {
        let id = match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => id,
            Err(error) => error.id(),
        };
        self.open.remove(&id);
        self.eviction = Eviction::None;
        Some(())
    }

    /// Closes the connection that has waited longest for its own peer: idle, or slow in sending a head or a body. Does
    /// nothing while the server works on a request of every connection.
    pub(super) fn evict(&mut self) {
        if self.eviction == Eviction::Pending {
            return;
        }
        let waiting = self.open.values().filter_map(|(task, state)| Some((state.waiting_since()?, task)));
        if let Some((_, task)) = waiting.min_by_key(|(since, _)| *since) {
            tracing::debug!("a connection that waits for its peer is closed in favour of a new one");
            task.abort();
            self.eviction = Eviction::Pending;
        }
    }
}
