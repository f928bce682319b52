//! Milliseconds since the start of the inspector.

use tokio::time::Instant;

/// The start of an inspector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the milliseconds since the start.
    pub(crate) fn now(self) -> f64 {
        milliseconds(self.0, Instant::now())
    }
}

/// Returns the milliseconds between two moments, in steps of a microsecond.
pub(crate) fn milliseconds(from: Instant, to: Instant) -> f64 {
    let micros = to.saturating_duration_since(from).as_micros();
    // 2^52 microseconds are more than a hundred years.
    f64::from(u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX)) * 1000.0
        + f64::from(u32::try_from(micros % 1_000_000).unwrap_or(0)) / 1000.0
}
