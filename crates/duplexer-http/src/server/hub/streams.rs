//! The streams that are open, so that those nobody reads can be cut.
//!
//! A stream is polled by its connection, and a connection whose peer does not read polls nothing: the stream cannot
//! see for itself. One task per service, only while streams are open, looks after all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::lock;

/// Looks per limit: a stream is cut at most a quarter of the limit late.
const LOOKS: u32 = 4;

/// Something that is read, and can be cut from elsewhere.
pub(in crate::server) trait Watched: Send + Sync {
    /// When it was last asked for more.
    fn touched(&self) -> &Touched;

    /// Nobody reads it: ends it, unless it is being read at this moment.
    fn cut(&self);
}

/// When something was last asked for more, in milliseconds since it began.
pub(in crate::server) struct Touched {
    seen: AtomicU64,
    born: Instant,
}

impl Touched {
    pub(in crate::server) fn now() -> Self {
        Self { seen: AtomicU64::new(0), born: Instant::now() }
    }

    /// The connection has asked for more.
    pub(in crate::server) fn touch(&self, now: Instant) {
        let since = now.saturating_duration_since(self.born).as_millis();
        self.seen.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn unread_for(&self, now: Instant) -> Duration {
        let seen = Duration::from_millis(self.seen.load(Ordering::Relaxed));
        now.saturating_duration_since(self.born).saturating_sub(seen)
    }
}

pub(in crate::server) struct Streams {
    open: Arc<Mutex<Open>>,
    limit: Duration,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Open {
    streams: HashMap<u64, Weak<dyn Watched>>,
    next: u64,
    watch: Watch,
}

#[derive(Default, PartialEq, Eq)]
enum Watch {
    #[default]
    Off,
    On,
}

/// A place in the list; dropped, the stream leaves the list.
pub(in crate::server) struct Listed {
    open: Arc<Mutex<Open>>,
    key: u64,
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.open).streams.remove(&self.key);
    }
}

impl Streams {
    pub(super) fn new(limit: Duration) -> Self {
        Self { open: Arc::default(), limit, tasks: TaskTracker::new() }
    }

    /// Looks after a stream from now on.
    pub(in crate::server) fn watch(&self, stream: Weak<dyn Watched>) -> Listed {
        let mut open = lock(&self.open);
        let key = open.next;
        open.next += 1;
        open.streams.insert(key, stream);
        if open.watch == Watch::Off {
            open.watch = Watch::On;
            self.tasks.spawn(watch(Arc::downgrade(&self.open), self.limit));
        }
        Listed { open: Arc::clone(&self.open), key }
    }

    /// Cuts whatever is left when the service has ended.
    pub(super) fn cut_all(&self) {
        for stream in listed(&self.open) {
            stream.cut();
        }
    }
}

fn listed(open: &Mutex<Open>) -> Vec<Arc<dyn Watched>> {
    lock(open).streams.values().filter_map(Weak::upgrade).collect()
}

async fn watch(open: Weak<Mutex<Open>>, limit: Duration) {
    loop {
        sleep(limit / LOOKS).await;
        let Some(open) = open.upgrade() else { return };
        let now = Instant::now();
        for stream in listed(&open).into_iter().filter(|stream| stream.touched().unread_for(now) >= limit) {
            tracing::warn!("a stream that nobody reads is cut");
            stream.cut();
        }
        let mut open = lock(&open);
        if open.streams.is_empty() {
            open.watch = Watch::Off;
            return;
        }
    }
}
