//! Quotas, and the algorithm that decides by them (GCRA): one number per key, the time at which it would be idle again.

use std::time::Duration;

/// How many requests are within a limit: a rate, and how many can come at once.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer::middleware::Quota;
///
/// let quota = Quota::per_minute(30).burst(5);
/// assert_eq!(quota.interval(), Duration::from_secs(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Nanoseconds between two requests at the full rate.
    interval: u64,
    burst: u32,
}

const SECOND: Duration = Duration::from_secs(1);

impl Quota {
    /// Allows `requests` per second, all of them at once.
    pub fn per_second(requests: u32) -> Self {
        Self::new(requests, SECOND)
    }

    /// Allows `requests` per minute, all of them at once.
    pub fn per_minute(requests: u32) -> Self {
        Self::new(requests, SECOND * 60)
    }

    /// Allows `requests` per hour, all of them at once.
    pub fn per_hour(requests: u32) -> Self {
        Self::new(requests, SECOND * 3600)
    }

    /// Allows `requests`, which is at least one, in each `period`, all of them at once.
    pub fn new(requests: u32, period: Duration) -> Self {
        let requests = requests.max(1);
        let interval = nanoseconds(period) / u64::from(requests);
        Self { interval: interval.max(1), burst: requests }
    }

    /// Sets how many requests, at least one, can come at once after a pause.
    #[must_use]
    pub fn burst(mut self, requests: u32) -> Self {
        self.burst = requests.max(1);
        self
    }

    /// Returns the time between two requests at the full rate.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// Returns how many requests can come at once.
    pub fn max_burst(&self) -> u32 {
        self.burst
    }

    /// Returns the share of one of several nodes: the rate divided by their number, and of the burst at least one.
    #[must_use]
    pub fn share_of(&self, nodes: u32) -> Self {
        let nodes = nodes.max(1);
        let interval = self.interval.saturating_mul(u64::from(nodes));
        Self { interval, burst: (self.burst / nodes).max(1) }
    }

    /// Counts a request at the time `now` of a key that would be idle at `idle_at`. Returns when the key is idle afterwards, and
    /// how long to wait if the request is not within the quota; otherwise zero. Times are nanoseconds of any clock.
    pub(super) fn count(&self, idle_at: u64, now: u64) -> (u64, u64) {
        let after = idle_at.max(now).saturating_add(self.interval);
        let tolerated = now.saturating_add(self.interval.saturating_mul(u64::from(self.burst)));
        (after, after.saturating_sub(tolerated))
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn a_burst_is_admitted_at_once_and_then_one_request_per_interval() {
        let quota = Quota::per_second(10).burst(3);
        let (mut idle_at, mut admitted) = (0, Vec::new());
        for step in 0..100 {
            let now = 5000 * MILLISECOND + step * 10 * MILLISECOND;
            if let (after, 0) = quota.count(idle_at, now) {
                idle_at = after;
                admitted.push(step);
            }
        }
        assert_eq!(admitted, [0, 1, 2, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    }

    #[test]
    fn a_refusal_says_when_the_next_request_is_admitted() {
        let quota = Quota::per_second(1).burst(1);
        let (idle_at, _) = quota.count(0, 0);
        let early = 300 * MILLISECOND;
        let (_, wait) = quota.count(idle_at, early);
        assert_eq!(wait, 700 * MILLISECOND);
        assert_eq!(quota.count(idle_at, early + wait).1, 0);
        assert_eq!(quota.count(idle_at, early + wait - 1).1, 1);
    }

    #[test]
    fn extreme_quotas_do_not_overflow() {
        let rare = Quota::new(1, Duration::MAX).burst(u32::MAX).share_of(u32::MAX);
        let (idle_at, wait) = rare.count(0, u64::MAX - 1);
        assert_eq!(wait, 0);
        assert_eq!(rare.count(idle_at, u64::MAX).1, 0);
        assert_eq!(Quota::new(0, Duration::ZERO).interval(), Duration::from_nanos(1));
    }
}
