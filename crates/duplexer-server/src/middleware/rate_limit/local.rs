//! A rate limiter in the memory of this process, whose table never grows: sixteen-way sets, as in the cache of a processor.
//! A key is 64 bits of a keyed hash, and its state one number. A key that is idle needs no entry, so its entry is free.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::quota::nanoseconds;
use super::{Deciding, Decision, Quota, RateKey, RateLimiter};

/// Entries of one set.
const WAYS: usize = 16;
/// Parts of the table, each under a lock of its own.
const STRIPES: usize = 64;
const DEFAULT_KEYS: usize = 100_000;

/// Counts requests in this process, in a table of fixed size.
///
/// ```
/// use duplexer::middleware::{LocalRateLimiter, Quota, RateLimit};
///
/// let limiter = LocalRateLimiter::with_capacity(1_000_000); // 64 MiB, once they are used
/// let limit = RateLimit::per_caller(Quota::per_second(20)).limiter(limiter);
/// ```
#[derive(Debug)]
pub struct LocalRateLimiter {
    stripes: Vec<Mutex<Stripe>>,
    sets_per_stripe: usize,
    hasher: foldhash::quality::RandomState,
    start: Instant,
    evicted: AtomicU64,
}

/// The entries of some sets: hashes of keys, and when the keys are idle, in nanoseconds.
#[derive(Debug)]
struct Stripe {
    keys: Vec<u64>,
    idle_at: Vec<u64>,
}

impl LocalRateLimiter {
    /// Creates a limiter for 100 000 callers that are active at the same time.
    pub fn new() -> Self {
        Self::with_capacity(DEFAULT_KEYS)
    }

    /// Creates a limiter for this many keys, a caller or a caller and a tool, that are active at the same time: those that
    /// have sent requests within the time that their burst takes to recover. It needs 64 bytes for each.
    ///
    /// If there are more, the key with the smallest debt is forgotten, and can send its burst again.
    pub fn with_capacity(keys: usize) -> Self {
        // A quarter full: a set of sixteen with four keys on average is full once in a million. If half full, it would be once in
        // three hundred, and a full set forgets keys all the time.
        let sets_per_stripe = (keys.saturating_mul(4)).div_ceil(WAYS * STRIPES).max(1);
        let entries = sets_per_stripe * WAYS;
        let stripe = || Mutex::new(Stripe { keys: vec![0; entries], idle_at: vec![0; entries] });
        Self {
            stripes: (0..STRIPES).map(|_| stripe()).collect(),
            sets_per_stripe,
            hasher: foldhash::quality::RandomState::default(),
            start: Instant::now(),
            evicted: AtomicU64::new(0),
        }
    }

    /// Decides at a time of the caller's clock, which never goes back. For simulations.
    pub fn decide_at(&self, key: RateKey<'_>, quota: &Quota, now: Duration) -> Decision {
        let hash = self.hasher.hash_one(key);
        let parts = usize::try_from(hash >> 16).unwrap_or(usize::MAX);
        let (stripe, set) = (parts % STRIPES, parts / STRIPES % self.sets_per_stripe);
        let Some(stripe) = self.stripes.get(stripe) else { return Decision::Admitted };
        let mut stripe = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        // Zero is a free entry.
        let (decision, forgotten) = stripe.decide(set * WAYS, hash | 1, quota, nanoseconds(now));
        if forgotten {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        decision
    }

    /// Returns how many keys were forgotten before they were idle, because there were too many.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

impl Stripe {
    /// Decides for a key of the set at `start`. Also returns whether another key was forgotten for it.
    fn decide(&mut self, start: usize, key: u64, quota: &Quota, now: u64) -> (Decision, bool) {
        let set = start..start + WAYS;
        let (Some(keys), Some(idle_at)) = (self.keys.get_mut(set.clone()), self.idle_at.get_mut(set)) else {
            return (Decision::Admitted, false);
        };
        let known = keys.iter().position(|known| *known == key);
        // A free entry has been idle since the start of the clock.
        let least = || (0..WAYS).min_by_key(|at| idle_at.get(*at).copied()).unwrap_or_default();
        let at = known.unwrap_or_else(least);
        let (Some(held), Some(idle_at)) = (keys.get_mut(at), idle_at.get_mut(at)) else {
            return (Decision::Admitted, false);
        };
        let forgotten = known.is_none() && *idle_at > now;
        if known.is_none() {
            (*held, *idle_at) = (key, 0);
        }
        let (decision, after) = quota.decide(*idle_at, now);
        *idle_at = after;
        (decision, forgotten)
    }
}

impl Default for LocalRateLimiter {
    fn default() -> Self {
        Self::new()
    }
}

impl RateLimiter for LocalRateLimiter {
    fn decide(&self, key: RateKey<'_>, quota: &Quota, now: Instant) -> Deciding {
        Deciding::Now(self.decide_at(key, quota, now.duration_since(self.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RateCaller;
    use super::*;

    fn key(client: &str) -> RateKey<'_> {
        RateKey { caller: RateCaller::Principal { client, issuer: None, subject: None }, tool: None }
    }

    /// Each of `keys` callers sends `each` requests, evenly in `time`. Returns the admitted ones.
    fn admitted(limiter: &LocalRateLimiter, quota: Quota, keys: u32, each: u32, time: Duration) -> u64 {
        let names: Vec<String> = (0..keys).map(|key| format!("client-{key}")).collect();
        let mut admitted = 0;
        for round in 0..each {
            let now = time * round / each;
            for name in &names {
                admitted += u64::from(limiter.decide_at(key(name), &quota, now) == Decision::Admitted);
            }
        }
        admitted
    }

    /// A tenth of what `cargo xtask bench` checks with a release build.
    #[test]
    fn a_limit_holds_to_within_one_percent_with_as_many_keys_as_the_table_is_for() {
        let (keys, each) = (20_000, 25);
        let limiter = LocalRateLimiter::with_capacity(keys as usize);
        // Twenty seconds at one per second and two at once: 21 of 25 are within the quota.
        let quota = Quota::per_second(1).burst(2);
        let admitted = admitted(&limiter, quota, keys, each, Duration::from_secs(20));
        let allowed = u64::from(keys) * 21;
        let off = admitted.abs_diff(allowed);
        assert!(off * 100 <= allowed, "{admitted} of {allowed} allowed requests");
    }

    #[test]
    fn callers_and_tools_are_counted_apart() {
        let limiter = LocalRateLimiter::new();
        let quota = Quota::per_second(1);
        let decide = |key| limiter.decide_at(key, &quota, Duration::ZERO);
        assert_eq!(decide(key("ada")), Decision::Admitted);
        assert!(matches!(decide(key("ada")), Decision::Refused { .. }));
        assert_eq!(decide(key("bob")), Decision::Admitted);
        assert_eq!(decide(RateKey { tool: Some("search"), ..key("ada") }), Decision::Admitted);
    }

    #[test]
    fn beyond_its_capacity_a_limiter_forgets_keys_and_says_how_many() {
        let limiter = LocalRateLimiter::with_capacity(1);
        let quota = Quota::per_hour(1);
        let first = admitted(&limiter, quota, 4096, 1, Duration::ZERO);
        assert_eq!(first, 4096, "a new key is always admitted");
        // The table has 64 sets of 16 entries.
        assert_eq!(limiter.evicted(), 4096 - 1024);
        assert_eq!(limiter.stripes.len() * limiter.sets_per_stripe * WAYS, 1024);
    }

    /// The entry of an idle key is free: no key is forgotten for another one that comes much later.
    #[test]
    fn idle_keys_need_no_entry() {
        let limiter = LocalRateLimiter::with_capacity(1);
        let quota = Quota::per_second(1);
        for round in 0..64 {
            let name = format!("client-{round}");
            let now = Duration::from_secs(10 * round);
            assert_eq!(limiter.decide_at(key(&name), &quota, now), Decision::Admitted);
        }
        assert_eq!(limiter.evicted(), 0);
    }
}
