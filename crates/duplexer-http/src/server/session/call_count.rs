//! Counters of the calls of one session.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of calls of one kind that a session has in flight.
#[derive(Debug, Default)]
pub(super) struct CallCount(AtomicUsize);

/// Numbers of the calls of one session, by their kind.
#[derive(Debug, Default)]
pub(super) struct CallCounts {
    /// Requests of the client.
    pub(super) calls: CallCount,
    /// Notification handlers that run.
    pub(super) notifications: CallCount,
    /// Requests to the client without a response.
    pub(super) questions: CallCount,
}

impl CallCount {
    /// Counts one more call. Returns whether it is within the limit; otherwise it is not counted.
    pub(super) fn add(&self, limit: usize) -> bool {
        let is_within = self.0.fetch_add(1, Ordering::Relaxed) < limit;
        if !is_within {
            self.remove();
        }
        is_within
    }

    pub(super) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
