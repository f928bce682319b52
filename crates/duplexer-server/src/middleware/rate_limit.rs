//! Rate limits by caller and by tool. The middleware knows whom it counts; a [`RateLimiter`] counts, in this process or for
//! several nodes.

mod local;
mod quota;

use std::any::Any;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::ByTool;
use super::{Gate, Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::{Busy, McpError};

pub use local::LocalRateLimiter;
pub use quota::Quota;

/// Refuses requests of callers that send too many: error -32005 with the time to wait, over HTTP status 429 with
/// `Retry-After`. Notifications are not counted.
///
/// A caller is a principal; without one, the client's address, if the service knows it; otherwise all such callers are one. Of an
/// IPv6 address the first 64 bits count: the rest is the client's to choose.
///
/// A request that is refused uses up no quota.
///
/// ```
/// use duplexer::middleware::{Quota, RateLimit};
///
/// // Each caller: 20 requests per second, 40 at once; and 30 searches per minute.
/// let limit = RateLimit::per_caller(Quota::per_second(20).burst(40)).tool("search", Quota::per_minute(30));
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(limit).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone)]
pub struct RateLimit {
    limiter: Limiter,
    by: By,
    requests: Option<Quota>,
    tools: ByTool<Quota>,
}

/// What counts. A limiter of this process decides at once.
#[derive(Clone)]
enum Limiter {
    Local(Arc<LocalRateLimiter>),
    Other(Arc<dyn RateLimiter>),
}

impl Limiter {
    fn of(limiter: impl RateLimiter) -> Self {
        let mut limiter = Some(limiter);
        let local = (&mut limiter as &mut dyn Any).downcast_mut::<Option<LocalRateLimiter>>();
        match (local.and_then(Option::take), limiter) {
            (None, Some(limiter)) => Self::Other(Arc::new(limiter)),
            (local, _) => Self::Local(Arc::new(local.unwrap_or_default())),
        }
    }
}

/// Whom a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Caller,
    Total,
}

impl RateLimit {
    /// Limits the requests of each caller.
    pub fn per_caller(quota: Quota) -> Self {
        Self::new(By::Caller, Some(quota))
    }

    /// Limits the requests of all callers together.
    pub fn in_total(quota: Quota) -> Self {
        Self::new(By::Total, Some(quota))
    }

    /// Limits nothing but the calls of tools that get a quota, for each caller.
    pub fn of_tools() -> Self {
        Self::new(By::Caller, None)
    }

    fn new(by: By, requests: Option<Quota>) -> Self {
        Self { limiter: Limiter::of(LocalRateLimiter::new()), by, requests, tools: ByTool::new() }
    }

    /// Limits the calls of one tool in addition.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, quota: Quota) -> Self {
        self.tools.set(name, quota);
        self
    }

    /// Counts with this limiter instead of one of this process.
    #[must_use]
    pub fn limiter(mut self, limiter: impl RateLimiter) -> Self {
        self.limiter = Limiter::of(limiter);
        self
    }

    /// Returns what is counted of a message; `None` if it has no quota.
    fn request<'a>(&'a self, cx: &'a Context, message: &Message) -> Option<RateRequest<'a>> {
        cx.request_id()?;
        let (requests, tool) = (self.requests.as_ref(), self.tools.of(message));
        let is_counted = requests.is_some() || tool.is_some();
        is_counted.then(|| RateRequest { caller: self.caller(cx), requests, tool })
    }

    fn caller<'a>(&self, cx: &'a Context) -> RateCaller<'a> {
        match (self.by, cx.principal()) {
            (By::Total, _) => RateCaller::All,
            (By::Caller, Some(principal)) => {
                let (client, issuer, subject) = principal.identity();
                RateCaller::Principal { client, issuer, subject }
            }
            (By::Caller, None) => {
                let address = cx.transport().client_address.map(network);
                address.map_or(RateCaller::All, RateCaller::Address)
            }
        }
    }
}

/// Returns what is counted of an address. A client has all addresses of an IPv6 network of 64 bits, and must not have their
/// quotas.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

impl Middleware for RateLimit {
    fn gate(&self, cx: &Context, message: &Message) -> Gate {
        let Limiter::Local(limiter) = &self.limiter else { return Gate::Handle };
        let Some(request) = self.request(cx, message) else { return Gate::Pass };
        match limiter.decide_now(&request, Instant::now()) {
            Decision::Admitted => Gate::Pass,
            Decision::Refused { by, retry_after } => {
                Gate::Refuse(refused(by, request.tool.map(|(tool, _)| tool), retry_after))
            }
        }
    }

    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let Some(request) = self.request(&cx, &message) else { return next.run(cx, message) };
        let deciding = match &self.limiter {
            // Only where another middleware calls this one: otherwise the gate has decided.
            Limiter::Local(limiter) => limiter.decide(&request, Instant::now()),
            Limiter::Other(limiter) => limiter.decide(&request, Instant::now()),
        };
        let tool = request.tool.map(|(tool, _)| tool.to_owned());
        Box::pin(async move {
            let decision = match deciding {
                Deciding::Now(decision) => decision,
                Deciding::Later(decision) => decision.await,
            };
            match decision {
                Decision::Admitted => next.future(cx, &message).await,
                Decision::Refused { by, retry_after } => Err(refused(by, tool.as_deref(), retry_after)),
            }
        })
    }
}

#[cold]
fn refused(by: RefusedBy, tool: Option<&str>, retry_after: Duration) -> McpError {
    match (by, tool) {
        (RefusedBy::Tool, Some(tool)) => Busy::new(format!("Too many calls of '{tool}'"), retry_after).into(),
        _ => Busy::new("Too many requests", retry_after).into(),
    }
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit")
            .field("by", &self.by)
            .field("requests", &self.requests)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Counts requests. [`LocalRateLimiter`] does so in this process, `Shared::rate_limiter` of `duplexer-redis` for all nodes.
pub trait RateLimiter: Send + Sync + 'static {
    /// Counts a request by all of its quotas, or refuses it and counts it by none. `now` is the current time: a limiter with a
    /// clock of its own ignores it.
    fn decide(&self, request: &RateRequest<'_>, now: Instant) -> Deciding;
}

/// A request and its quotas. Requests of one caller come with the same quota every time, and so do the calls of one tool.
#[derive(Clone, Copy, Debug)]
pub struct RateRequest<'a> {
    /// The caller.
    pub caller: RateCaller<'a>,
    /// The quota of all requests of the caller, if they have one.
    pub requests: Option<&'a Quota>,
    /// The tool that is called, if its calls have a quota, and that quota.
    pub tool: Option<(&'a str, &'a Quota)>,
}

/// A decision that is made, or that a store has yet to make.
pub enum Deciding {
    /// The decision.
    Now(Decision),
    /// Resolves to the decision, within 50 ms.
    Later(BoxFuture<'static, Decision>),
}

impl std::fmt::Debug for Deciding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(decision) => decision.fmt(f),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// Whether a request is within its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is, and was counted.
    Admitted,
    /// It is not, and was not counted.
    Refused {
        /// The quota that it is not within: of several, the one with the longest wait.
        by: RefusedBy,
        /// The time after which the same request is within its quotas.
        retry_after: Duration,
    },
}

/// Which quota a request is not within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// That of all requests of the caller.
    Requests,
    /// That of the tool.
    Tool,
}

/// Whose requests are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateCaller<'a> {
    /// Those of one principal.
    Principal {
        /// The OAuth client.
        client: &'a str,
        /// The issuer of its token.
        issuer: Option<&'a str>,
        /// The user that it acts for.
        subject: Option<&'a str>,
    },
    /// Those of one address.
    Address(IpAddr),
    /// Those of all callers, or of all of whom nothing is known.
    All,
}

impl RateCaller<'_> {
    /// Returns the caller as bytes, from which a store makes a name. Different callers have different bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(128);
        let mut part = |part: Option<&[u8]>| {
            bytes.push(u8::from(part.is_some()));
            let part = part.unwrap_or_default();
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        };
        match *self {
            RateCaller::Principal { client, issuer, subject } => {
                part(Some(client.as_bytes()));
                part(issuer.map(str::as_bytes));
                part(subject.map(str::as_bytes));
            }
            RateCaller::Address(IpAddr::V4(address)) => part(Some(&address.octets())),
            RateCaller::Address(IpAddr::V6(address)) => part(Some(&address.octets())),
            RateCaller::All => {}
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_callers_have_different_bytes() {
        let principal = |client, issuer, subject| RateCaller::Principal { client, issuer, subject };
        let callers = [
            principal("a", None, None),
            principal("a", Some(""), None),
            principal("a", Some("b"), None),
            principal("a", None, Some("b")),
            principal("ab", None, None),
            RateCaller::Address([127, 0, 0, 1].into()),
            RateCaller::Address([0, 0, 0, 0, 0, 0, 0, 1].into()),
            RateCaller::All,
        ];
        let bytes = callers.map(|caller| caller.to_bytes());
        let distinct: std::collections::HashSet<_> = bytes.iter().collect();
        assert_eq!(distinct.len(), bytes.len());
    }

    #[test]
    fn of_an_ipv6_address_only_the_network_counts() {
        let check = |address: &str, expected: &str| {
            assert_eq!(network(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        };
        check("192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("2001:db8:1:2::", "2001:db8:1:2::");
    }
}
