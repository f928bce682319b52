//! Counters of the traffic with the store.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the process. They never contain the id of a session or of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Exchanges with the store, each of one or several commands.
    pub trips: u64,
    /// Exchanges that failed.
    pub failures: u64,
    /// Messages admitted to sessions.
    pub sessions_admitted: u64,
    /// Events stored.
    pub events_appended: u64,
    /// Batches of events stored.
    pub batches_appended: u64,
    /// Readings that found events evicted.
    pub events_gaps: u64,
    /// Streams whose node has died, ended by this node.
    pub nodes_lost: u64,
    /// Readers that replaced another one.
    pub readers_replaced: u64,
    /// Messages sent to other nodes.
    pub messages_sent: u64,
    /// Messages received from other nodes.
    pub messages_received: u64,
    /// Changes published.
    pub changes_published: u64,
    /// Times that the log of changes did not reach back to the last one read.
    pub changes_missed: u64,
    /// Runs of this node, one more for each lease that was lost.
    pub runs: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The counters of one [`Shared`](crate::Shared).
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)* }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters!(
    trips,
    failures,
    sessions_admitted,
    events_appended,
    batches_appended,
    events_gaps,
    nodes_lost,
    readers_replaced,
    messages_sent,
    messages_received,
    changes_published,
    changes_missed,
    runs,
);

/// One counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
