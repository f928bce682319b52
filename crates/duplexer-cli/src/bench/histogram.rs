//! Latencies, counted in buckets whose width grows with the value.

use std::time::Duration;

/// Buckets per doubling: a bucket is at most 1/16 wide.
const PARTS: u64 = 16;
/// Doublings above the first `PARTS` microseconds: up to hours.
const DOUBLINGS: usize = 32;

/// Counted latencies, in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let length = usize::try_from(PARTS).unwrap_or_default() * (DOUBLINGS + 1);
        Self { buckets: vec![0; length], total: 0, min: u64::MAX, max: 0 }
    }
}

/// Returns the bucket of a value.
fn bucket(value: u64) -> usize {
    if value < PARTS {
        return usize::try_from(value).unwrap_or_default();
    }
    let doublings = value.ilog2() - PARTS.ilog2();
    let part = (value >> doublings) - PARTS;
    usize::try_from(u64::from(doublings + 1) * PARTS + part).unwrap_or(usize::MAX)
}

/// Returns the smallest value above a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX) + 1;
    if bucket <= PARTS {
        return bucket;
    }
    let (doublings, part) = (bucket / PARTS - 1, bucket % PARTS);
    (PARTS + part) << doublings
}

impl Histogram {
    pub(super) fn add(&mut self, latency: Duration) {
        let value = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        let last = self.buckets.len().saturating_sub(1);
        if let Some(count) = self.buckets.get_mut(bucket(value).min(last)) {
            *count += 1;
        }
        self.total += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the latency that `per_mille` of 1000 requests do not exceed, in milliseconds.
    pub(super) fn quantile(&self, per_mille: u64) -> f64 {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return milliseconds(upper(index).min(self.max));
            }
        }
        milliseconds(self.max)
    }

    pub(super) fn max(&self) -> f64 {
        milliseconds(self.max)
    }

    /// Returns rows for a drawing: the upper bound in milliseconds, and how many latencies are below it and above the row
    /// before. Bounds double, or grow by half if the latencies are close together. There are at most 24 rows.
    pub(super) fn rows(&self) -> Vec<(f64, u64)> {
        if self.total == 0 {
            return Vec::new();
        }
        // Single requests far away would leave no space for the others.
        let (low, high) = (self.quantile(1) * 1000.0, self.quantile(999).max(0.001) * 1000.0);
        let factor = if high > low * 32.0 { 2.0 } else { 1.5 };
        let mut bound = 1.0;
        while bound * factor < low {
            bound *= factor;
        }
        let (mut rows, mut start) = (Vec::new(), 0);
        while start < self.buckets.len() && rows.len() < 24 {
            bound *= factor;
            let is_last = bound >= high;
            let mut count = 0;
            while let Some(more) = self.buckets.get(start) {
                #[expect(clippy::cast_precision_loss, reason = "a bound of a drawing")]
                if upper(start) as f64 > bound && !is_last {
                    break;
                }
                count += more;
                start += 1;
            }
            rows.push((if is_last { self.max() } else { bound / 1000.0 }, count));
            if is_last {
                break;
            }
        }
        rows
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of hours fit")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_contains_its_values() {
        for value in (0..5000).chain([1 << 20, (1 << 30) + 7]) {
            let index = bucket(value);
            assert!(upper(index) > value, "{value}");
            assert!(index == 0 || upper(index - 1) <= value, "{value}");
        }
    }

    #[test]
    fn quantiles_are_close() {
        let mut all = Histogram::default();
        for half in 0..2 {
            let mut part = Histogram::default();
            for value in 1..=5000 {
                part.add(Duration::from_micros(half * 5000 + value));
            }
            all.merge(&part);
        }
        assert_eq!(all.total(), 10_000);
        for (per_mille, expected) in [(500, 5.0), (990, 9.9), (1000, 10.0)] {
            let value = all.quantile(per_mille);
            assert!((expected..expected * 1.07).contains(&value), "{per_mille}: {value}");
        }
        assert!((10.0..10.001).contains(&all.max()));
    }

    #[test]
    fn rows_have_every_latency() {
        assert!(Histogram::default().rows().is_empty());
        for values in [vec![100], vec![100, 110, 120], vec![1, 1_000_000], (1..100_000).collect::<Vec<u64>>()]
        {
            let mut histogram = Histogram::default();
            for value in &values {
                histogram.add(Duration::from_micros(*value));
            }
            let rows = histogram.rows();
            assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), histogram.total(), "{rows:?}");
            assert!(rows.len() <= 24 && rows.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{rows:?}");
        }
    }
}
