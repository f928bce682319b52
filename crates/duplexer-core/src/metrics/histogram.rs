//! A histogram of durations that is written without a lock or an allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Distribution;

/// Upper bounds of the buckets of a duration in seconds, as the OpenTelemetry conventions of MCP define them.
pub const DURATION_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// The same bounds in nanoseconds.
const NANOSECONDS: [u64; 14] = [
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
    120_000_000_000,
    300_000_000_000,
];

/// Distribution of durations. Writers only add, so a reader can see a value in its bucket before it is in the sum.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_core::metrics::Histogram;
///
/// let histogram = Histogram::default();
/// histogram.record(Duration::from_millis(15));
/// assert_eq!(histogram.read().counts[1], 1);
/// ```
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; NANOSECONDS.len() + 1],
    /// In nanoseconds. It wraps after 584 years of work.
    sum: AtomicU64,
}

impl Histogram {
    /// Adds a duration.
    pub fn record(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = NANOSECONDS.iter().position(|bound| nanoseconds <= *bound).unwrap_or(NANOSECONDS.len());
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| count.load(Ordering::Relaxed) == 0)
    }

    /// Reads the distribution, in seconds.
    pub fn read(&self) -> Distribution {
        Distribution {
            bounds: DURATION_BOUNDS,
            counts: self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect(),
            sum: Duration::from_nanos(self.sum.load(Ordering::Relaxed)).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_first_bucket_that_holds_it() {
        let check = |duration: Duration, bucket: usize| {
            let histogram = Histogram::default();
            assert!(histogram.is_empty());
            histogram.record(duration);
            let read = histogram.read();
            assert_eq!(read.counts.iter().position(|count| *count == 1), Some(bucket), "{duration:?}");
            assert_eq!(read.counts.iter().sum::<u64>(), 1);
            assert!((read.sum - duration.as_secs_f64()).abs() < 1e-9, "{duration:?}");
        };
        check(Duration::ZERO, 0);
        check(Duration::from_millis(10), 0);
        check(Duration::from_nanos(10_000_001), 1);
        check(Duration::from_secs(300), 13);
        check(Duration::from_secs(301), 14);
    }

    #[test]
    fn the_bounds_in_both_units_agree() {
        let seconds = NANOSECONDS.map(|bound| Duration::from_nanos(bound).as_secs_f64());
        assert_eq!(seconds.as_slice(), DURATION_BOUNDS);
    }
}
