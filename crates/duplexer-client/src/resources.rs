//! What a session owns beside its connection: a cache, background tasks, and hooks that run when it is closed.

use std::sync::Mutex;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::Client;
use super::cache::SessionCache;
use duplexer_core::dispatch::{BoxFuture, lock};

type CloseHook = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Resources of a session. Dropping them aborts the tasks and drops the hooks without running them.
pub(super) struct Resources {
    pub(super) cache: SessionCache,
    tasks: Mutex<JoinSet<()>>,
    hooks: Mutex<Vec<CloseHook>>,
}

impl Resources {
    pub(super) fn new(cache: SessionCache) -> Self {
        Self { cache, tasks: Mutex::default(), hooks: Mutex::default() }
    }

    /// Runs a task until it ends or the session does. Without a runtime it is dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &runtime);
    }

    /// Aborts the tasks.
    pub(super) fn stop_tasks(&self) {
        drop(std::mem::take(&mut *lock(&self.tasks)));
    }

    /// Runs the hooks, the last one first.
    pub(super) async fn close(&self) {
        let hooks = std::mem::take(&mut *lock(&self.hooks));
        for hook in hooks.into_iter().rev() {
            hook().await;
        }
    }
}

impl Client {
    /// Adds a hook that [`Client::close`] runs after the connection has ended; the last one runs first.
    ///
    /// With it a session owns what it needs, such as a process. If the last clone of the client is dropped instead, the
    /// hook is dropped without running.
    pub fn on_close<F: Future<Output = ()> + Send + 'static>(
        &self,
        hook: impl FnOnce() -> F + Send + 'static,
    ) {
        lock(&self.0.resources.hooks).push(Box::new(move || Box::pin(hook())));
    }

    /// Removes all results of the session from its [cache](super::Cache), for example after another user has logged in.
    pub fn clear_cache(&self) {
        self.0.resources.cache.clear();
    }
}
