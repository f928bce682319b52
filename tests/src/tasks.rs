//! A server whose tools run as tasks, for tests over transports and processes.

use std::sync::Arc;
use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use duplexer::tasks::{TaskLimits, Tasks};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

/// Lets waiting tools continue.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Creates a gate that is closed.
    pub fn closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Creates a gate that is open.
    pub fn open() -> Self {
        let gate = Self::closed();
        gate.let_through(Semaphore::MAX_PERMITS);
        gate
    }

    /// Lets this many waiting calls continue.
    pub fn let_through(&self, calls: usize) {
        self.0.add_permits(calls);
    }

    async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// Returns the lease of a node, and of a process: 2 s, unless `TASK_LEASE` has another number of seconds.
pub fn lease() -> Duration {
    let seconds = std::env::var("TASK_LEASE").ok().map(|text| text.parse().expect("a number of seconds"));
    Duration::from_secs(seconds.unwrap_or(2))
}

/// Returns limits that a test with many tasks needs.
pub fn many() -> TaskLimits {
    let mut limits = TaskLimits::default();
    limits.per_owner = 20_000;
    limits.total = 20_000;
    limits
}

/// Returns the server.
pub fn server(tasks: Tasks, gate: Gate) -> Server {
    Server::builder("jobs", "0")
        .extend(tasks.poll_interval(Duration::from_millis(50)))
        .state(gate)
        .tool(render)
        .tool(publish)
        .tool(migrate)
        .tool(number)
        .build()
        .expect("the fixture is well-formed")
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    sure: bool,
}

/// Waits for the gate, and cannot be repeated.
#[tool(task)]
async fn render(cx: Context<Gate>, page: u32) -> String {
    cx.progress(page).message("drawing").await;
    cx.state().pass().await;
    format!("page {page}")
}

/// Asks in the middle.
#[tool(task)]
async fn publish(cx: Context<Gate>) -> Result<String, ToolError> {
    cx.progress(1).total(2).await;
    let Confirmation { sure } = cx.elicit("sure", "Publish it?").await?.accepted()?;
    Ok(format!("published: {sure}"))
}

/// Waits for the gate, and can be repeated by another process.
#[tool(task(required, resumable))]
async fn migrate(cx: Context<Gate>, table: u32) -> String {
    cx.state().pass().await;
    format!("table {table}")
}

/// Waits once.
#[tool(task)]
async fn number(number: u32) -> u32 {
    tokio::task::yield_now().await;
    number
}
