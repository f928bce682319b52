//! How long a session waits: for its opening, for progress of a call, and for a call in total.

use std::time::Duration;

use duplexer_core::dispatch::{CallClock, CallOptions};

/// Maximum time of the negotiation, unless the builder sets another.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// Maximum time of a call without progress.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Maximum time of a call, whatever progress it reports.
const TOTAL: Duration = Duration::from_secs(60 * 60);

/// Timeouts of a session, and the clock that measures them. `Duration::MAX` means no timeout.
#[derive(Clone)]
pub(super) struct Timeouts {
    pub(super) handshake: Option<Duration>,
    pub(super) idle: Duration,
    pub(super) total: Duration,
    /// Paused while a callback asks a person, and while the transport does.
    pub(super) clock: CallClock,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { handshake: None, idle: IDLE, total: TOTAL, clock: CallClock::new() }
    }
}

impl Timeouts {
    /// Returns the limit of the negotiation. A shorter timeout of calls applies to it too.
    pub(super) fn handshake(&self) -> Duration {
        self.handshake.unwrap_or(HANDSHAKE.min(self.idle))
    }

    /// Sets the timeouts that a call does not set itself.
    pub(super) fn apply(&self, options: &mut CallOptions) {
        if options.timeout.is_none() {
            options.idle_timeout = options.idle_timeout.or(Some(self.idle));
        }
        options.timeout = options.timeout.or(Some(self.total));
        options.clock.get_or_insert_with(|| self.clock.clone());
    }
}
