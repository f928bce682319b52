//! A rate limiter in the memory of this process, whose table never grows: sixteen-way sets, as in the cache of a processor.
//! A key is 64 bits of a keyed hash, and its state one number. A key that is idle needs no entry, so its entry is free.
//!
//! The keys of one caller, its own and one for each tool with a quota, are in different sets of one stripe. So one lock is enough
//! to count a request by all of its quotas or by none.

use std::hash::{BuildHasher, Hasher as _};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::quota::nanoseconds;
use super::{Deciding, Decision, Quota, RateCaller, RateLimiter, RateRequest, RefusedBy};

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
    hasher: foldhash::quality::RandomState,
    start: Instant,
    evicted: AtomicU64,
}

/// Some sets. Arrays of numbers, because the allocator gives them zeroed, and so without memory until they are used.
#[derive(Debug)]
struct Stripe(Vec<Set>);

/// Hashes of keys, zero in a free entry, and when the keys are idle, in nanoseconds.
type Set = [[u64; WAYS]; 2];

/// What counting a request by one quota would change.
struct Counted {
    key: u64,
    set: usize,
    /// Where in the set the key is, or would best be.
    at: usize,
    idle_at: u64,
    /// Time until the request is within the quota; zero if it is.
    wait: u64,
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
        let sets = (keys.saturating_mul(4)).div_ceil(WAYS * STRIPES).max(1);
        let stripe = || Mutex::new(Stripe(vec![[[0; WAYS]; 2]; sets]));
        Self {
            stripes: (0..STRIPES).map(|_| stripe()).collect(),
            hasher: foldhash::quality::RandomState::default(),
            start: Instant::now(),
            evicted: AtomicU64::new(0),
        }
    }

    /// Decides at a time of the caller's clock, which never goes back. For simulations.
    pub fn decide_at(&self, request: &RateRequest<'_>, now: Duration) -> Decision {
        let now = nanoseconds(now);
        let caller = self.hash_caller(request.caller);
        let tool = request.tool.map(|(tool, quota)| (self.hash_tool(caller, tool), quota));
        // The set is chosen by the upper bits, and the place in it by the lowest.
        let Some(stripe) = self.stripes.get(low_bits(caller >> 8) % STRIPES) else {
            return Decision::Admitted;
        };
        let mut stripe = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = tool.map(|(key, quota)| stripe.count(key, quota, now));
        let requests = request.requests.map(|quota| stripe.count(caller, quota, now));
        let wait = |counted: &Option<Counted>| counted.as_ref().map_or(0, |counted| counted.wait);
        let (for_tool, for_requests) = (wait(&tool), wait(&requests));
        if for_tool | for_requests != 0 {
            let retry_after = Duration::from_nanos(for_tool.max(for_requests));
            let by = if for_tool >= for_requests { RefusedBy::Tool } else { RefusedBy::Requests };
            return Decision::Refused { by, retry_after };
        }
        if let Some(counted) = &tool {
            self.note(stripe.store(counted, now));
        }
        if let Some(counted) = &requests {
            self.note(stripe.store(counted, now));
        }
        Decision::Admitted
    }

    /// Decides at a time of the process's clock.
    pub(super) fn decide_now(&self, request: &RateRequest<'_>, now: Instant) -> Decision {
        self.decide_at(request, now.duration_since(self.start))
    }

    /// Returns how many keys were forgotten before they were idle, because there were too many.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn note(&self, stored: Stored) {
        if stored == Stored::InPlaceOfAnother {
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the key of a caller, which is never zero. What kind of caller it is and which parts it has is hashed with the
    /// parts, and the hasher depends on their lengths: no parts can be moved to make another caller the same.
    fn hash_caller(&self, caller: RateCaller<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        match caller {
            RateCaller::All => hasher.write_u8(0),
            RateCaller::Address(IpAddr::V4(address)) => {
                hasher.write_u64(u64::from(address.to_bits()) << 8 | 1);
            }
            RateCaller::Address(IpAddr::V6(address)) => {
                hasher.write_u8(2);
                hasher.write_u128(address.to_bits());
            }
            RateCaller::Principal { client, issuer, subject } => {
                hasher.write_u8(4 | u8::from(issuer.is_some()) | u8::from(subject.is_some()) << 1);
                hasher.write(client.as_bytes());
                if let Some(issuer) = issuer {
                    hasher.write(issuer.as_bytes());
                }
                if let Some(subject) = subject {
                    hasher.write(subject.as_bytes());
                }
            }
        }
        hasher.finish() | 1
    }

    /// Returns the key of a tool that a caller calls.
    fn hash_tool(&self, caller: u64, tool: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(caller);
        hasher.write(tool.as_bytes());
        hasher.finish() | 1
    }
}

fn low_bits(hash: u64) -> usize {
    usize::try_from(hash & 0xffff_ffff).unwrap_or_default()
}

/// Whether storing a key had a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    InItsPlace,
    InPlaceOfAnother,
}

impl Stripe {
    /// Counts a request of a key, without storing the result.
    fn count(&self, key: u64, quota: &Quota, now: u64) -> Counted {
        let set = low_bits(((u128::from(key) * self.0.len() as u128) >> 64) as u64);
        let mut at = low_bits(key >> 1) % WAYS;
        let mut known = 0;
        if let Some([keys, idle_at]) = self.0.get(set) {
            if keys.get(at) != Some(&key) {
                at = find(keys, key).unwrap_or(at);
            }
            if keys.get(at) == Some(&key) {
                known = idle_at.get(at).copied().unwrap_or_default();
            }
        }
        let (idle_at, wait) = quota.count(known, now);
        Counted { key, set, at, idle_at, wait }
    }

    /// Stores what was counted.
    fn store(&mut self, counted: &Counted, now: u64) -> Stored {
        let Counted { key, set, mut at, idle_at: next, .. } = *counted;
        let mut stored = Stored::InItsPlace;
        let Some([keys, idle_at]) = self.0.get_mut(set) else { return stored };
        // Not so if the key is new, or if the other key of the request has just taken its place.
        if keys.get(at) != Some(&key) {
            (at, stored) = vacate(idle_at, at, now);
            if let Some(held) = keys.get_mut(at) {
                *held = key;
            }
        }
        if let Some(held) = idle_at.get_mut(at) {
            *held = next;
        }
        stored
    }
}

#[cold]
fn find(keys: &[u64; WAYS], key: u64) -> Option<usize> {
    keys.iter().position(|known| *known == key)
}

/// Returns the entry for a new key: the preferred one, if its key is idle, or else the one that is or will be idle first.
#[cold]
fn vacate(idle_at: &[u64; WAYS], preferred: usize, now: u64) -> (usize, Stored) {
    let is_idle = |at: usize| idle_at.get(at).is_some_and(|idle_at| *idle_at <= now);
    let least = || (0..WAYS).min_by_key(|at| idle_at.get(*at).copied()).unwrap_or_default();
    let at = if is_idle(preferred) { preferred } else { least() };
    (at, if is_idle(at) { Stored::InItsPlace } else { Stored::InPlaceOfAnother })
}

impl Default for LocalRateLimiter {
    fn default() -> Self {
        Self::new()
    }
}

impl RateLimiter for LocalRateLimiter {
    fn decide(&self, request: &RateRequest<'_>, now: Instant) -> Deciding {
        Deciding::Now(self.decide_now(request, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(client: &str) -> RateCaller<'_> {
        RateCaller::Principal { client, issuer: None, subject: None }
    }

    fn request<'a>(client: &'a str, quota: &'a Quota) -> RateRequest<'a> {
        RateRequest { caller: caller(client), requests: Some(quota), tool: None }
    }

    /// Each of `keys` callers sends `each` requests, evenly in `time`. Returns the admitted ones.
    fn admitted(limiter: &LocalRateLimiter, quota: Quota, keys: u32, each: u32, time: Duration) -> u64 {
        let names: Vec<String> = (0..keys).map(|key| format!("client-{key}")).collect();
        let mut admitted = 0;
        for round in 0..each {
            let now = time * round / each;
            for name in &names {
                admitted += u64::from(limiter.decide_at(&request(name, &quota), now) == Decision::Admitted);
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
        let decide = |request: RateRequest<'_>| limiter.decide_at(&request, Duration::ZERO);
        assert_eq!(decide(request("ada", &quota)), Decision::Admitted);
        assert!(matches!(decide(request("ada", &quota)), Decision::Refused { .. }));
        assert_eq!(decide(request("bob", &quota)), Decision::Admitted);
        let search = RateRequest { requests: None, tool: Some(("search", &quota)), ..request("ada", &quota) };
        assert_eq!(decide(search), Decision::Admitted);
        assert!(matches!(decide(search), Decision::Refused { by: RefusedBy::Tool, .. }));
        assert_eq!(decide(RateRequest { tool: Some(("find", &quota)), ..search }), Decision::Admitted);
    }

    #[test]
    fn all_parts_of_a_caller_count() {
        let limiter = LocalRateLimiter::new();
        let principal = |client, issuer, subject| RateCaller::Principal { client, issuer, subject };
        let callers = [
            principal("a", None, None),
            principal("a", Some(""), None),
            principal("a", Some("b"), None),
            principal("a", None, Some("b")),
            principal("ab", None, None),
            principal("", Some("a"), Some("b")),
            RateCaller::Address([127, 0, 0, 1].into()),
            RateCaller::Address([0, 0, 0, 0, 0, 0, 0, 1].into()),
            RateCaller::All,
        ];
        let mut keys: Vec<u64> = callers.map(|caller| limiter.hash_caller(caller)).to_vec();
        keys.extend(["a", "b", ""].map(|tool| limiter.hash_tool(keys[0], tool)));
        let distinct: std::collections::HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    /// Each second the caller sends three calls of one tool and then three of another: of the first, the quota of the tool
    /// admits one. The second has none, so it gets what is left of the caller's two.
    #[test]
    fn a_request_that_one_quota_refuses_uses_up_no_other() {
        let limiter = LocalRateLimiter::new();
        let (requests, tool) = (Quota::per_second(2), Quota::per_second(1));
        let plain = request("ada", &requests);
        let search = RateRequest { tool: Some(("search", &tool)), ..plain };
        for second in 0..10 {
            let decide = |request| limiter.decide_at(request, Duration::from_secs(second));
            assert_eq!(decide(&search), Decision::Admitted);
            for _ in 0..2 {
                let retry_after = Duration::from_secs(1);
                assert_eq!(decide(&search), Decision::Refused { by: RefusedBy::Tool, retry_after });
            }
            assert_eq!(decide(&plain), Decision::Admitted);
            assert!(matches!(decide(&plain), Decision::Refused { by: RefusedBy::Requests, .. }));
        }
    }

    #[test]
    fn a_call_beyond_the_quota_of_the_caller_uses_up_none_of_the_tool() {
        let limiter = LocalRateLimiter::new();
        let (requests, tool) = (Quota::per_second(1), Quota::per_hour(2));
        let search = RateRequest { tool: Some(("search", &tool)), ..request("ada", &requests) };
        let decide = |seconds| limiter.decide_at(&search, Duration::from_secs(seconds));
        assert_eq!(decide(0), Decision::Admitted);
        for _ in 0..5 {
            assert!(matches!(decide(0), Decision::Refused { by: RefusedBy::Requests, .. }));
        }
        assert_eq!(decide(1), Decision::Admitted);
        let Decision::Refused { by: RefusedBy::Tool, retry_after } = decide(2) else { panic!("two an hour") };
        assert_eq!(retry_after, Duration::from_secs(1798));
    }

    #[test]
    fn beyond_its_capacity_a_limiter_forgets_keys_and_says_how_many() {
        let limiter = LocalRateLimiter::with_capacity(1);
        let quota = Quota::per_hour(1);
        let first = admitted(&limiter, quota, 4096, 1, Duration::ZERO);
        assert_eq!(first, 4096, "a new key is always admitted");
        // The table has 64 sets of 16 entries.
        assert_eq!(limiter.evicted(), 4096 - 1024);
        let sets = limiter.stripes.iter().map(|stripe| stripe.lock().unwrap().0.len());
        assert_eq!(sets.sum::<usize>() * WAYS, 1024);
    }

    /// The entry of an idle key is free: no key is forgotten for another one that comes much later.
    #[test]
    fn idle_keys_need_no_entry() {
        let limiter = LocalRateLimiter::with_capacity(1);
        let quota = Quota::per_second(1);
        for round in 0..64 {
            let name = format!("client-{round}");
            let now = Duration::from_secs(10 * round);
            assert_eq!(limiter.decide_at(&request(&name, &quota), now), Decision::Admitted);
        }
        assert_eq!(limiter.evicted(), 0);
    }
}
