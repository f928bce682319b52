//! Ends open streams that the client does not read.
//!
//! A stream is polled by its connection, and a connection whose peer does not read polls nothing, so the stream cannot
//! detect it. One task per service, which runs only while streams are open, watches all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::tasks::TaskTracker;
use tokio::time::{Instant, sleep};

use crate::sync::{Mutex, lock};

/// Checks per timeout: a stream ends at most a quarter of the timeout late.
const SWEEPS_PER_TIMEOUT: u32 = 4;

/// A stream that another task can end.
pub(in crate::server) trait WatchedStream: Send + Sync {
    /// Returns when the connection last polled the stream.
    fn last_read(&self) -> &LastRead;

    /// Ends the stream, unless it is being read at this moment.
    fn time_out(&self);

    /// Ends the stream at the end of the shutdown.
    fn shut_down(&self) {
        self.time_out();
    }
}

/// Time of the last poll of a stream, in milliseconds since it was created.
pub(in crate::server) struct LastRead {
    seen: AtomicU64,
    born: Instant,
}

impl LastRead {
    pub(in crate::server) fn now() -> Self {
        Self { seen: AtomicU64::new(0), born: Instant::now() }
    }

    /// Records a poll by the connection.
    pub(in crate::server) fn touch(&self, now: Instant) {
        let since = now.saturating_duration_since(self.born).as_millis();
        self.seen.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn unread_for(&self, now: Instant) -> Duration {
        let seen = Duration::from_millis(self.seen.load(Ordering::Relaxed));
        now.saturating_duration_since(self.born).saturating_sub(seen)
    }
}

/// The open streams, and the task that ends unread ones.
pub(in crate::server) struct StreamWatch {
    open: Arc<Mutex<Open>>,
    limit: Duration,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Open {
    streams: HashMap<u64, Weak<dyn WatchedStream>>,
    next: u64,
    watch: Watch,
}

#[derive(Default, PartialEq, Eq)]
enum Watch {
    #[default]
    Off,
    On,
}

/// Registration of a stream. Dropping it ends the watch.
pub(in crate::server) struct WatchGuard {
    open: Arc<Mutex<Open>>,
    key: u64,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        lock(&self.open).streams.remove(&self.key);
    }
}

impl StreamWatch {
    pub(super) fn new(limit: Duration) -> Self {
        Self { open: Arc::default(), limit, tasks: TaskTracker::new() }
    }

    /// Watches a stream until the returned guard is dropped.
    pub(in crate::server) fn watch(&self, stream: Weak<dyn WatchedStream>) -> WatchGuard {
        let mut open = lock(&self.open);
        let key = open.next;
        open.next += 1;
        open.streams.insert(key, stream);
        if open.watch == Watch::Off {
            open.watch = Watch::On;
            self.tasks.spawn(watch(Arc::downgrade(&self.open), self.limit));
        }
        WatchGuard { open: Arc::clone(&self.open), key }
    }

    /// Returns the number of open streams.
    pub(in crate::server) fn len(&self) -> usize {
        lock(&self.open).streams.len()
    }

    /// Ends all streams that are open at the end of the shutdown.
    pub(super) fn shut_down(&self) {
        for stream in listed(&self.open) {
            stream.shut_down();
        }
    }
}

fn listed(open: &Mutex<Open>) -> Vec<Arc<dyn WatchedStream>> {
    lock(open).streams.values().filter_map(Weak::upgrade).collect()
}

async fn watch(open: Weak<Mutex<Open>>, limit: Duration) {
    loop {
        sleep(limit / SWEEPS_PER_TIMEOUT).await;
        let Some(open) = open.upgrade() else { return };
        let now = Instant::now();
        for stream in listed(&open).into_iter().filter(|stream| stream.last_read().unread_for(now) >= limit) {
            tracing::warn!("a stream that the client does not read is closed");
            stream.time_out();
        }
        let mut open = lock(&open);
        if open.streams.is_empty() {
            open.watch = Watch::Off;
            return;
        }
    }
}
