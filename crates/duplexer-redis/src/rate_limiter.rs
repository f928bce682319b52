//! A rate limit that all nodes share. A node that cannot ask the store counts alone, with its share of the limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_server::middleware::{
    Deciding, Decision, LocalRateLimiter, Quota, RateCaller, RateLimiter, RateRequest, RefusedBy,
};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout};

use crate::link::Node;
use crate::scripts;

/// Maximum time that a decision waits for the store.
const PATIENCE: Duration = Duration::from_millis(50);
/// Time after a failure for which the store is not asked.
const PAUSE: Duration = Duration::from_millis(250);

/// [`RateLimiter`] of all nodes. Returned by [`Shared::rate_limiter`](crate::Shared::rate_limiter).
///
/// The store counts, by its own clock. If it does not answer within 50 ms, this node decides alone, with its share of the quota,
/// and asks again a quarter of a second later.
#[derive(Clone)]
pub struct RedisRateLimiter {
    inner: Arc<Inner>,
    patience: Duration,
}

struct Inner {
    node: Arc<Node>,
    alone: LocalRateLimiter,
    nodes: u32,
    start: Instant,
    /// When the store is asked again, in milliseconds after `start`.
    asks_at: AtomicU64,
}

impl RedisRateLimiter {
    pub(crate) fn new(node: Arc<Node>, nodes: u32) -> Self {
        let alone = LocalRateLimiter::new();
        let inner = Inner { node, alone, nodes, start: Instant::now(), asks_at: AtomicU64::new(0) };
        Self { inner: Arc::new(inner), patience: PATIENCE }
    }

    /// Sets how long a decision waits for the store. Default: 50 ms.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

impl RateLimiter for RedisRateLimiter {
    fn decide(&self, request: &RateRequest<'_>, _: Instant) -> Deciding {
        let digested = Digested::of(request);
        if self.inner.is_pausing() {
            return Deciding::Now(self.inner.decide_alone(&digested));
        }
        let (inner, patience) = (Arc::clone(&self.inner), self.patience);
        Deciding::Later(Box::pin(async move {
            if let Ok(Ok(decision)) = timeout(patience, inner.ask(&digested)).await {
                return decision;
            }
            inner.pause();
            inner.decide_alone(&digested)
        }))
    }
}

/// A request whose names are digests: the store learns neither a user nor an address.
struct Digested {
    caller: String,
    requests: Option<Quota>,
    tool: Option<(String, Quota)>,
}

impl Digested {
    fn of(request: &RateRequest<'_>) -> Self {
        Self {
            caller: digest(&request.caller.to_bytes()),
            requests: request.requests.copied(),
            tool: request.tool.map(|(tool, quota)| (digest(tool.as_bytes()), *quota)),
        }
    }
}

impl Inner {
    async fn ask(&self, request: &Digested) -> Result<Decision, StoreError> {
        let Digested { caller, requests, tool } = request;
        let keys = &self.node.keys;
        let of_tool = tool.as_ref().map(|(tool, quota)| (keys.rate_limit(caller, Some(tool)), quota));
        let of_caller = requests.as_ref().map(|quota| (keys.rate_limit(caller, None), quota));
        let limits: Vec<_> = [of_tool, of_caller].into_iter().flatten().collect();
        let mut call = scripts::LIMIT.call(limits.iter().map(|(key, _)| key));
        for (_, quota) in limits {
            let interval = quota.interval().as_secs_f64() * 1e6;
            let burst = interval * f64::from(quota.max_burst());
            call.text(format_args!("{interval:.3}")).text(format_args!("{burst:.3}"));
        }
        let (refused_by, wait): (usize, u64) = self.node.connection.run(&call).await?;
        let by = if refused_by == 1 && tool.is_some() { RefusedBy::Tool } else { RefusedBy::Requests };
        Ok(match wait {
            0 => Decision::Admitted,
            wait => Decision::Refused { by, retry_after: Duration::from_micros(wait) },
        })
    }

    fn decide_alone(&self, request: &Digested) -> Decision {
        self.node.counters.rate_limits_alone.increment();
        let requests = request.requests.map(|quota| quota.share_of(self.nodes));
        let tool = request.tool.as_ref().map(|(tool, quota)| (tool, quota.share_of(self.nodes)));
        let request = RateRequest {
            caller: RateCaller::Principal { client: &request.caller, issuer: None, subject: None },
            requests: requests.as_ref(),
            tool: tool.as_ref().map(|(tool, quota)| (tool.as_str(), quota)),
        };
        match self.alone.decide(&request, Instant::now()) {
            Deciding::Now(decision) => decision,
            Deciding::Later(_) => Decision::Admitted,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn is_pausing(&self) -> bool {
        self.now() < self.asks_at.load(Ordering::Relaxed)
    }

    fn pause(&self) {
        let until = self.now().saturating_add(u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX));
        self.asks_at.fetch_max(until, Ordering::Relaxed);
    }
}

/// Returns half of a SHA-256, in hexadecimal.
fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(32);
    for byte in Sha256::digest(bytes).iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

impl fmt::Debug for RedisRateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRateLimiter").field("nodes", &self.inner.nodes).finish_non_exhaustive()
    }
}
