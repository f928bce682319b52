//! The task that runs the dispatcher of a connection, and its owner.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use duplexer_core::dispatch::{Cancellation, RunError, lock};
use duplexer_core::error::McpError;

/// Running dispatcher. Dropping it aborts the task.
pub(super) struct ConnectionTask {
    task: Mutex<JoinSet<Result<(), RunError>>>,
    stop: Box<dyn Fn() + Send + Sync>,
    ended: Arc<Cancellation>,
}

/// Signals the end of the task on drop, so that an abort and a panic signal it too.
struct EndSignal(Arc<Cancellation>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ConnectionTask {
    /// Spawns `run`, which ends by itself or through `stop`. Returns when the dispatcher accepts requests.
    pub(super) async fn start(
        run: impl Future<Output = Result<(), RunError>> + Send + 'static,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (running, started) = oneshot::channel();
        let mut task = JoinSet::new();
        let ended = Arc::new(Cancellation::new());
        let signal = EndSignal(Arc::clone(&ended));
        task.spawn(async move {
            let _signal = signal;
            let mut run = pin!(run);
            // A dispatcher accepts requests from its first poll on.
            let first = std::future::poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))).await;
            let _ = running.send(());
            match first {
                Poll::Ready(ended) => ended,
                Poll::Pending => run.await,
            }
        });
        // If the task ended before its first poll was done, the first request reports it.
        let _ = started.await;
        Self { task: Mutex::new(task), stop: Box::new(stop), ended }
    }

    /// Waits until the task has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Returns what signals the end of the task.
    pub(super) fn end_signal(&self) -> Arc<Cancellation> {
        Arc::clone(&self.ended)
    }

    /// Whether the task has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Stops the dispatcher and waits for the task. A second caller does not wait.
    pub(super) async fn end(&self) -> Result<(), RunError> {
        (self.stop)();
        let mut task = std::mem::take(&mut *lock(&self.task));
        match task.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) if error.is_panic() => {
                Err(RunError::Handler(McpError::panicked(&*error.into_panic())))
            }
            // Another caller has taken the task, or the runtime is shutting down.
            None | Some(Err(_)) => Ok(()),
        }
    }
}
