//! Counters of the traffic with the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use duplexer_core::metrics::{Distribution, Histogram};

/// Counters since the start of the process. They never contain the id of a session or of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Operations of the store, each one command or script. Those that run at the same time share an exchange.
    pub trips: u64,
    /// Operations that failed.
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
    /// Decisions of a shared rate limit that this node made alone, because the store did not answer.
    pub rate_limits_alone: u64,
    /// Operations that were repeated because the store was unavailable.
    pub retries: u64,
    /// Runs of this node, one more for each lease that was lost.
    pub runs: u64,
}

macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        /// The counters of one [`Shared`](crate::Shared).
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            pub(crate) operations: Operations,
            /// Messages for sessions, by outcome.
            pub(crate) sessions_entered: Tally<&'static str>,
            /// Messages between nodes, by direction, kind and outcome.
            pub(crate) messages: Tally<(&'static str, &'static str, &'static str)>,
            /// Age of the last message and of the last change when they were read, in milliseconds.
            pub(crate) inbox_lag: AtomicU64,
            pub(crate) bus_lag: AtomicU64,
        }

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
    rate_limits_alone,
    retries,
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

/// Counters by the values of labels. The values are from fixed lists, so there are few.
#[derive(Debug, Default)]
pub(crate) struct Tally<K>(Mutex<BTreeMap<K, u64>>);

impl<K: Ord> Tally<K> {
    pub(crate) fn increment(&self, key: K) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default() += 1;
    }

    pub(crate) fn get(&self, key: &K) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied().unwrap_or_default()
    }
}

/// Durations of the operations of the store, by name and outcome. The names are those of scripts, so there are few.
#[derive(Debug, Default)]
pub(crate) struct Operations(RwLock<BTreeMap<&'static str, Arc<[Histogram; 2]>>>);

impl Operations {
    pub(crate) fn record(&self, name: &'static str, succeeded: bool, elapsed: Duration) {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).map(Arc::clone);
        let durations = known.unwrap_or_else(|| {
            Arc::clone(self.0.write().unwrap_or_else(PoisonError::into_inner).entry(name).or_default())
        });
        let [failed, done] = &*durations;
        if succeeded { done.record(elapsed) } else { failed.record(elapsed) }
    }

    /// Returns name, outcome and durations of all operations so far.
    pub(crate) fn read(&self) -> Vec<(&'static str, &'static str, Distribution)> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let each = all.iter().flat_map(|(name, durations)| {
            let [failed, done] = &**durations;
            [(*name, "ok", done), (*name, "failed", failed)]
        });
        let used = each.filter(|(_, _, durations)| !durations.is_empty());
        used.map(|(name, outcome, durations)| (name, outcome, durations.read())).collect()
    }
}
