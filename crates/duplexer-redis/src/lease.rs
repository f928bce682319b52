//! The lease of a run: it ends soon after the process, and other nodes then conclude what the run has left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::Health;
use redis::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::link::Link;

/// State of the lease of this node.
#[derive(Debug)]
pub(crate) struct Lease {
    run: watch::Sender<RunId>,
    /// Name of the node, for people who look into the store.
    node: String,
    length: Duration,
    start: Instant,
    /// When the lease was last renewed, in milliseconds after `start`.
    renewed: AtomicU64,
}

impl Lease {
    pub(crate) fn new(node: String, length: Duration) -> Self {
        let run = watch::Sender::new(RunId::random());
        Self { run, node, length, start: Instant::now(), renewed: AtomicU64::new(0) }
    }

    pub(crate) fn run(&self) -> RunId {
        *self.run.borrow()
    }

    /// Returns a receiver of every new run.
    pub(crate) fn runs(&self) -> watch::Receiver<RunId> {
        self.run.subscribe()
    }

    pub(crate) fn health(&self) -> Health {
        let age =
            self.start.elapsed().saturating_sub(Duration::from_millis(self.renewed.load(Ordering::Relaxed)));
        if age >= self.length {
            Health::Disconnected
        } else if age > self.length / 2 {
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
    set(link, "NX").await?;
    link.counters.runs.increment();
    link.lease.renewed();
    Ok(())
}

/// Renews the lease, for ever. A lease that was lost is replaced by that of another run.
pub(crate) async fn renew(link: Arc<Link>) {
    let interval = link.lease.length / 4;
    loop {
        sleep(interval).await;
        match set(&link, "XX").await {
            Ok(true) => link.lease.renewed(),
            Ok(false) => match begin_run(&link).await {
                Ok(()) => tracing::warn!("the lease of this node was lost; it goes on as another run"),
                Err(error) => tracing::debug!(%error, "no new run"),
            },
            Err(error) => tracing::debug!(%error, "the lease was not renewed"),
        }
    }
}

async fn begin_run(link: &Link) -> Result<(), StoreError> {
    link.lease.run.send_replace(RunId::random());
    take(link).await
}

/// Ends the lease of this node.
pub(crate) async fn end(link: &Link) -> Result<(), StoreError> {
    let run = link.lease.run();
    let mut command = redis::cmd("DEL");
    command.arg(link.keys.lease(run)).arg(link.keys.inbox(run)).arg(link.keys.inbox_bytes(run));
    link.connection.query(&command).await
}

/// Writes the lease. Returns whether the condition (`NX`, `XX`) allowed it.
async fn set(link: &Link, condition: &str) -> Result<bool, StoreError> {
    let lease = &link.lease;
    let mut command = redis::cmd("SET");
    command.arg(link.keys.lease(lease.run())).arg(&lease.node).arg(condition);
    command.arg("PX").arg(crate::value::millis(lease.length));
    Ok(!matches!(link.connection.query::<Value>(&command).await?, Value::Nil))
}
