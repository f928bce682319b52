//! The task that serves a connection, and its owner.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use duplexer_core::dispatch::{Cancellation, RunError, lock};
use duplexer_core::error::McpError;

/// A running dispatcher. Dropped, it is stopped where it stands.
pub(super) struct ConnectionTask {
    task: Mutex<JoinSet<Result<(), RunError>>>,
    stop: Box<dyn Fn() + Send + Sync>,
    ended: Arc<Cancellation>,
}

/// Raised when the run ends, however it does.
struct Ending(Arc<Cancellation>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.raise();
    }
}

impl ConnectionTask {
    /// Runs a dispatcher until it ends or `stop` ends it. When this returns, requests can be made.
    pub(super) async fn start(
        run: impl Future<Output = Result<(), RunError>> + Send + 'static,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (running, started) = oneshot::channel();
        let mut task = JoinSet::new();
        let ended = Arc::new(Cancellation::new());
        let ending = Ending(Arc::clone(&ended));
        task.spawn(async move {
            let _ending = ending;
            let mut run = pin!(run);
            // A dispatcher takes requests from its first poll on.
            let first = std::future::poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))).await;
            let _ = running.send(());
            match first {
                Poll::Ready(ended) => ended,
                Poll::Pending => run.await,
            }
        });
        // If the task is gone without having said so, the first request will tell.
        let _ = started.await;
        Self { task: Mutex::new(task), stop: Box::new(stop), ended }
    }

    /// Until the run has ended.
    pub(super) async fn ended(&self) {
        self.ended.raised().await;
    }

    /// Ends the run and waits for its end. Whoever comes second does not wait.
    pub(super) async fn end(&self) -> Result<(), RunError> {
        (self.stop)();
        let mut task = std::mem::take(&mut *lock(&self.task));
        match task.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(error)) if error.is_panic() => {
                Err(RunError::Handler(McpError::panicked(&*error.into_panic())))
            }
            // Somebody else has ended it, or the runtime is shutting down.
            None | Some(Err(_)) => Ok(()),
        }
    }
}
