//! Counts the polls of handlers, and wakes a sleeping watchdog when there is one to count.

use crate::dispatch::sync::{AtomicBool, AtomicU64, OnceLock, Ordering, Thread, thread};

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    started: AtomicU64,
    ended: AtomicU64,
    asleep: AtomicBool,
    watchdog: OnceLock<Thread>,
}

impl Pulse {
    /// Runs one poll of a handler, counted.
    pub(crate) fn beat<R>(&self, poll: impl FnOnce() -> R) -> R {
        // Both sides use one total order: either this thread sees the other asleep, or that one sees the poll.
        self.started.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst)
            && let Some(watchdog) = self.watchdog.get()
        {
            watchdog.unpark();
        }
        let result = poll();
        self.ended.fetch_add(1, Ordering::Release);
        result
    }

    /// How many polls were started and how many have ended; never more ended than started.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let ended = self.ended.load(Ordering::Acquire);
        (self.started.load(Ordering::SeqCst), ended)
    }

    /// Makes this thread the one to wake.
    pub(crate) fn watched_by_this_thread(&self) {
        // Taken already only if a second watchdog was started, which nobody does.
        let _ = self.watchdog.set(thread::current());
    }

    /// Sleeps until a poll starts, or somebody unparks the thread.
    pub(crate) fn sleep_until_there_is_a_poll(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        let (started, ended) = self.counts();
        if started == ended {
            thread::park();
        }
        self.asleep.store(false, Ordering::SeqCst);
    }
}
