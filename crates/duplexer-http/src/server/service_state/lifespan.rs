//! Lifespan of a mounted server. The first request starts it in a task that survives the request.

use std::sync::OnceLock;
use std::time::Duration;

use duplexer_core::error::Chain;
use duplexer_core::stderr_log;
use duplexer_core::tasks::TaskTracker;
use duplexer_server::{RunningServer, Server};
use tokio::sync::watch;

use crate::sync::{Mutex, lock};

/// Error of a server that could not start. The cause is in the log, and the next request tries again.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct StartFailed;

pub(super) struct Lifespan {
    server: Server,
    running: std::sync::Arc<OnceLock<RunningServer>>,
    /// Requests that arrive during the start wait here.
    starting: Mutex<Option<watch::Receiver<Start>>>,
    tasks: TaskTracker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Pending,
    Done,
    Failed,
}

impl Lifespan {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            running: std::sync::Arc::default(),
            starting: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) async fn running(&self) -> Result<&RunningServer, StartFailed> {
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        Box::pin(self.started()).await
    }

    /// Waits for the start. Separate and boxed, because only the first requests wait.
    async fn started(&self) -> Result<&RunningServer, StartFailed> {
        let mut start = self.start();
        // The sender is dropped without a value only if the runtime ends.
        let _ = start.wait_for(|start| *start != Start::Pending).await;
        self.running.get().ok_or(StartFailed)
    }

    /// Starts the server, unless a start is pending.
    fn start(&self) -> watch::Receiver<Start> {
        let mut starting = lock(&self.starting);
        if let Some(start) = &*starting
            && *start.borrow() != Start::Failed
        {
            return start.clone();
        }
        let (sender, start) = watch::channel(Start::Pending);
        *starting = Some(start.clone());
        let (server, running) = (self.server.clone(), std::sync::Arc::clone(&self.running));
        self.tasks.spawn(async move {
            let outcome = match server.start().await {
                Ok(started) => {
                    let _ = running.set(started);
                    Start::Done
                }
                Err(error) => {
                    tracing::error!(error = %Chain(&error), "a mounted server did not start");
                    stderr_log::error(format_args!("the server did not start: {}", Chain(&error)));
                    Start::Failed
                }
            };
            sender.send_replace(outcome);
        });
        start
    }

    /// Waits for a pending start, then runs the teardown.
    pub(super) async fn end(&self, budget: Duration) {
        self.tasks.close();
        let begun = tokio::time::Instant::now();
        let _ = tokio::time::timeout(budget, self.tasks.wait()).await;
        if let Some(running) = self.running.get() {
            running.shutdown_within(budget.saturating_sub(begun.elapsed())).await;
        }
    }
}
