//! How much of the outbound queue the transport has, and who waits for it.
//!
//! Nearly all frames are written at once. A task that waits for one is woken only if it is lost or had to wait for the
//! transport: a wake-up for each frame would cost as much as writing it.

use tokio::sync::Notify;

use super::sync::{AtomicU64, Ordering};

/// What has become of a queued frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The transport has all of it.
    Written,
    /// The connection ended first.
    Lost,
}

/// Whether the transport took frames at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    AtOnce,
    AfterWait,
}

/// Positions in the stream of bytes that the transport has taken.
#[derive(Debug)]
pub(crate) struct WriteProgress {
    /// Total bytes.
    written: AtomicU64,
    /// The bytes between these positions had to wait, the last time that any had to.
    late_from: AtomicU64,
    late_to: AtomicU64,
    /// Notified when late bytes are written, and when the connection ends.
    changed: Notify,
}

impl WriteProgress {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self { written: zero(), late_from: zero(), late_to: zero(), changed: Notify::new() }
    }

    /// Counts bytes that the transport has taken.
    pub(crate) fn add(&self, bytes: usize, pace: Pace) {
        if bytes == 0 {
            return;
        }
        let written = self.written.fetch_add(bytes as u64, Ordering::Release) + bytes as u64;
        if pace == Pace::AfterWait {
            self.late_to.store(written, Ordering::Release);
            self.changed.notify_waiters();
        }
    }

    /// Notes that the transport takes no more for now.
    pub(crate) fn pause(&self) {
        self.late_from.store(self.written.load(Ordering::Acquire), Ordering::Release);
    }

    /// Wakes every task that waits: the connection has ended.
    pub(crate) fn end(&self) {
        self.changed.notify_waiters();
    }

    /// Returns whether the transport has everything up to `position`.
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.written.load(Ordering::Acquire) >= position
    }

    fn was_late(&self, position: u64) -> bool {
        self.late_from.load(Ordering::Acquire) < position && position <= self.late_to.load(Ordering::Acquire)
    }

    /// Resolves when everything up to `position` is lost, or is written after it had to wait. Never, if it is written at once.
    pub(crate) async fn late_delivery(&self, position: u64, has_ended: impl Fn() -> bool) -> Delivery {
        loop {
            // Notices changes from here on.
            let changed = self.changed.notified();
            if self.is_written(position) {
                if self.was_late(position) {
                    return Delivery::Written;
                }
            } else if has_ended() {
                return Delivery::Lost;
            }
            changed.await;
        }
    }
}
