//! Counter of the calls of one session.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of calls of one kind that a session has in flight.
#[derive(Debug, Default)]
pub(super) struct CallCount(AtomicUsize);

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
