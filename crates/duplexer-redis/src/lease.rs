//! The lease of a run: it ends soon after the process, and other nodes then conclude what the run has left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::Health;
use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::link::Link;

/// State of the lease of this node.
#[derive(Debug)]
pub(crate) struct Lease {
    run: watch::Sender<RunId>,
    /// Name of the node and version, for people who look into the store.
    value: String,
    length: Duration,
    start: Instant,
    /// When the lease was last renewed, in milliseconds after `start`.
    renewed: AtomicU64,
}

impl Lease {
    pub(crate) fn new(node: &str, length: Duration) -> Self {
        let run = watch::Sender::new(RunId::random());
        let value = format!("{node} {}", env!("CARGO_PKG_VERSION"));
        Self { run, value, length, start: Instant::now(), renewed: AtomicU64::new(0) }
    }

    pub(crate) fn run(&self) -> RunId {
        *self.run.borrow()
    }

    /// Returns a receiver of every new run.
    pub(crate) fn runs(&self) -> watch::Receiver<RunId> {
        self.run.subscribe()
    }

    /// Returns the time since it was last renewed.
    pub(crate) fn age(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.renewed.load(Ordering::Relaxed)))
    }

    pub(crate) fn health(&self) -> Health {
        let age = self.age();
        if age >= self.length {
            Health::Disconnected
        } else if age > self.length * 3 / 4 {
            Health::Degraded
        } else {
            Health::Healthy
        }
    }

    fn renewed(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.renewed.store(now, Ordering::Relaxed);
    }
}

/// Takes the lease of the current run.
pub(crate) async fn take(link: &Link) -> Result<(), StoreError> {
    let lease = &link.lease;
    let mut command = redis::cmd("SET");
    command.arg(link.keys.lease(lease.run())).arg(&lease.value).arg("NX");
    command.arg("PX").arg(crate::value::millis(lease.length));
    link.connection.query::<Value>(&command).await?;
    link.counters.runs.increment();
    link.lease.renewed();
    Ok(())
}

/// Renews the lease, for ever. A lease that was lost is replaced by that of another run.
pub(crate) async fn renew(link: Arc<Link>) {
    let interval = link.lease.length / 4;
    let mut state = RunState::Begun;
    loop {
        let _ = timeout(interval, link.wakes.lease.notified()).await;
        match extend(&link).await {
            Ok(true) => {
                state = RunState::Begun;
                link.lease.renewed();
            }
            Ok(false) => state = begin_run(&link, state).await,
            Err(error) => tracing::debug!(%error, "the lease was not renewed"),
        }
    }
}

/// Whether the store has had the lease of the current run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunState {
    /// Not confirmed. Requests may already have been admitted under the name of the run, so it stays the same.
    Beginning,
    Begun,
}

async fn begin_run(link: &Link, state: RunState) -> RunState {
    if state == RunState::Begun {
        link.lease.run.send_replace(RunId::random());
    }
    match take(link).await {
        Ok(()) => {
            tracing::warn!("the lease of this node was lost; it goes on as another run");
            RunState::Begun
        }
        Err(error) => {
            tracing::debug!(%error, "no new run");
            RunState::Beginning
        }
    }
}

/// Ends the lease of this node.
pub(crate) async fn end(link: &Link) -> Result<(), StoreError> {
    let run = link.lease.run();
    let mut command = redis::cmd("DEL");
    command.arg(link.keys.lease(run)).arg(link.keys.inbox(run)).arg(link.keys.inbox_bytes(run));
    link.connection.query(&command).await
}

/// Extends the lease, also in a store that is out of memory. Returns whether there is one.
async fn extend(link: &Link) -> Result<bool, StoreError> {
    let mut command = redis::cmd("PEXPIRE");
    command.arg(link.keys.lease(link.lease.run())).arg(crate::value::millis(link.lease.length));
    link.connection.query(&command).await
}
