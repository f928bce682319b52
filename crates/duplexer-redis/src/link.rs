//! What all stores of one node share: the connection, the names, the run, and the tasks that keep the node alive.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{EventLimits, StreamKey};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::keys::{Keys, WakeName};
use crate::lease::Lease;
use crate::seal::Seal;
use crate::stats::Counters;
use crate::wakes::Wakes;

/// Maximum number of tasks of a node. Beyond it wake-ups of other nodes are dropped: their readers look at intervals.
const MAX_TASKS: usize = 1024;

/// Pauses between the attempts of one operation, at least and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Bounds and times of what is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Expiry of an unused session.
    pub(crate) session_expiry: Duration,
    /// How long the id of a deleted session stays unusable.
    pub(crate) deleted: Duration,
    /// Expiry of a stream that has ended and was not read to its end.
    pub(crate) unread_stream: Duration,
    /// Expiry of a stream that has ended and was read to its end.
    pub(crate) read_stream: Duration,
    /// Interval of reading the inbox and the log of changes without a wake-up.
    pub(crate) poll: Duration,
    /// Expiry of a lease.
    pub(crate) lease: Duration,
    /// How long an operation is repeated while the store is unavailable.
    pub(crate) patience: Duration,
    /// Number of changes in the log.
    pub(crate) change_log: usize,
    pub(crate) events: EventLimits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session_expiry: Duration::from_secs(30 * 60),
            deleted: Duration::from_secs(10 * 60),
            unread_stream: Duration::from_secs(5 * 60),
            read_stream: Duration::from_secs(60),
            poll: Duration::from_secs(1),
            lease: Duration::from_secs(10),
            patience: Duration::from_secs(5),
            change_log: 100_000,
            events: EventLimits::default(),
        }
    }
}

/// The link of one node to the store.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    pub(crate) settings: Settings,
    pub(crate) counters: Arc<Counters>,
    pub(crate) wakes: Wakes,
    pub(crate) lease: Lease,
    /// Encrypts what is stored, if the author has set secrets.
    pub(crate) seal: Option<Seal>,
}

impl Link {
    /// Runs an operation that can be repeated, and repeats it while the store is unavailable and the patience lasts.
    pub(crate) async fn patiently<T, F>(&self, operation: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match operation().await {
                Err(StoreError::Unavailable(_)) if start.elapsed() + pause < self.settings.patience => {}
                outcome => return outcome,
            }
            self.counters.retries.increment();
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns what is stored for a content, at its place: a scope and a context within it.
    pub(crate) fn sealed(&self, scope: &str, context: &str, plain: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        match &self.seal {
            Some(seal) => seal.seal(scope, context, &plain),
            None => Ok(plain),
        }
    }

    /// Returns the content of what is stored at a place.
    pub(crate) fn opened(&self, scope: &str, context: &str, stored: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        match &self.seal {
            Some(seal) => seal.open(scope, context, &stored),
            None => Ok(stored),
        }
    }

    /// Returns whether a run has a lease.
    pub(crate) async fn is_alive(&self, run: RunId) -> Result<bool, StoreError> {
        if run == self.lease.run() {
            return Ok(true);
        }
        self.connection.query(redis::cmd("EXISTS").arg(self.keys.lease(run))).await
    }
}

/// A node: its link, and its tasks, which end with it.
pub(crate) struct Node {
    link: Arc<Link>,
    tasks: Mutex<JoinSet<()>>,
}

impl Node {
    pub(crate) fn new(link: Arc<Link>, tasks: JoinSet<()>) -> Self {
        Self { link, tasks: Mutex::new(tasks) }
    }

    /// Wakes the reader of a stream, at this node or at another. A wake-up that is lost costs time, and no event.
    pub(crate) fn wake_reader(&self, reader: Option<RunId>, stream: &StreamKey) {
        let Some(reader) = reader else { return };
        let stream = WakeName::of(stream);
        if reader == self.lease.run() {
            self.wakes.wake(stream);
            return;
        }
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        if tasks.len() >= MAX_TASKS {
            return;
        }
        let link = Arc::clone(&self.link);
        tasks.spawn(async move {
            let channel = link.keys.run_channel(reader);
            let wake = stream.to_string();
            let sent = link.connection.query::<()>(redis::cmd("PUBLISH").arg(channel).arg(wake)).await;
            if let Err(error) = sent {
                tracing::debug!(%error, "a wake-up was lost");
            }
        });
    }
}

impl std::ops::Deref for Node {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("run", &self.lease.run()).finish_non_exhaustive()
    }
}
