//! What operating a server adds to a call: each included middleware, and metrics. A case differs from the plain echo of the
//! catalog in one layer, and its bar is what the layer may add.

use std::time::Duration;

use duplexer_otel::Metrics;
use duplexer_server::middleware::Decision;
use duplexer_server::middleware::{
    AccessLog, AuditLog, ConcurrencyLimit, LocalRateLimiter, Quota, RateCaller, RateLimit, RateRequest,
    Redaction, ResponseLimit, Timeout,
};
use duplexer_server::tool::{ResultCache, ToolScopes};
use duplexer_server::{Principal, Server, ServerBuilder};
use duplexer_types::version::ProtocolVersion;

use crate::catalog::{self, Ask, CALLED};
use crate::figures::Figure;
use crate::kernel::Kernel;

/// A layer and what it may add to a call.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Name of the case.
    pub case: &'static str,
    /// Allocations.
    pub allocations: u64,
    /// Instructions.
    pub instructions: u64,
}

const fn layer(case: &'static str) -> Bar {
    Bar { case, allocations: 2, instructions: 800 }
}

/// The bars. The audit log, the result cache and redaction have none: they read what others do not.
pub const BARS: &[Bar] = &[
    layer("layer-timeout"),
    layer("layer-concurrency"),
    layer("layer-rate-limit"),
    layer("layer-response-limit"),
    layer("layer-access-log"),
    layer("layer-tool-scopes"),
    Bar { case: "metrics", allocations: 0, instructions: 600 },
];

const LONG: Duration = Duration::from_secs(3600);
/// More than any run of a benchmark sends.
const MANY: u32 = 1_000_000_000;

/// Returns a kernel whose server has the layer of a case; `None` if there is no such case.
pub fn kernel(case: &str) -> Option<Kernel> {
    let builder = catalog::builder(10);
    let server = with(case, builder)?.build().ok()?;
    let kernel = catalog::asked(&server, ProtocolVersion::LATEST_ENVELOPE, Ask::Call)?;
    // A limit of all callers together would have less to hash.
    Some(if case == "layer-rate-limit" { kernel.on_behalf_of(principal()) } else { kernel })
}

/// A principal with all that identifies one.
fn principal() -> Principal {
    let mut principal = Principal::new("https://client.example.com/metadata.json");
    principal.issuer = Some("https://login.example.com".to_owned());
    principal.subject = Some("ada@example.com".to_owned());
    principal
}

fn with(case: &str, builder: ServerBuilder<()>) -> Option<ServerBuilder<()>> {
    Some(match case {
        "layer-timeout" => builder.middleware(Timeout::new(LONG).tool(CALLED, LONG)),
        "layer-concurrency" => builder.middleware(ConcurrencyLimit::new(64).tool(CALLED, 8)),
        "layer-rate-limit" => {
            let quota = Quota::per_second(MANY);
            builder.middleware(RateLimit::per_caller(quota).tool(CALLED, quota))
        }
        "layer-response-limit" => builder.middleware(ResponseLimit::new(1 << 20)),
        "layer-access-log" => builder.middleware(AccessLog),
        "layer-tool-scopes" => builder.visible(ToolScopes::new().tool("other", ["write"]).filter()),
        "layer-audit-log" => builder.middleware(AuditLog::stream(std::io::sink())),
        "layer-result-cache" => {
            let read_only = Server::builder("bench-server", "1.0.0").tool(catalog::tool(7).read_only());
            read_only.tool_middleware(ResultCache::new(LONG))
        }
        "layer-redaction" => {
            let redaction = Redaction::builder().secret("correct horse battery").tokens().build().ok()?;
            builder.middleware(redaction)
        }
        "metrics" => builder.observer(Metrics::new()),
        _ => return None,
    })
}

/// Returns what a layer adds to the plain call, and whether that is within its bar; `None` if a figure is missing.
pub fn added(bar: &Bar, measured: &[Figure], plain: &str) -> Option<(u64, u64, bool)> {
    let find = |name: &str| measured.iter().find(|figure| figure.name == name);
    let (with, without) = (find(bar.case)?, find(plain)?);
    let allocations = with.allocations.saturating_sub(without.allocations);
    let instructions = with.instructions?.saturating_sub(without.instructions?);
    Some((allocations, instructions, allocations <= bar.allocations && instructions <= bar.instructions))
}

/// How far a rate limit was off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Requests that were admitted.
    pub admitted: u64,
    /// Requests that the quota allows.
    pub allowed: u64,
    /// Difference of the two, in percent.
    pub percent_off: f64,
}

/// Lets `keys` callers send `each` requests, evenly in `time` of a clock of its own, through a limiter for as many keys. The quota
/// is one per second and two at once.
pub fn rate_limit(keys: u32, each: u32, time: Duration) -> Accuracy {
    let limiter = LocalRateLimiter::with_capacity(keys as usize);
    let quota = Quota::per_second(1).burst(2);
    let mut admitted = 0;
    for round in 0..each {
        let now = time * round / each;
        for key in 0..keys {
            let caller = RateCaller::Address(std::net::Ipv4Addr::from_bits(key).into());
            let request = RateRequest { caller, requests: Some(&quota), tool: None };
            let decision = limiter.decide_at(&request, now);
            admitted += u64::from(decision == Decision::Admitted);
        }
    }
    // Two at once, and then one for each full second before the last request.
    let allowed = u64::from(keys) * allowed(each, time);
    let percent_off = admitted.abs_diff(allowed) as f64 * 100.0 / allowed as f64;
    Accuracy { admitted, allowed, percent_off }
}

/// Counts what an exact limiter admits of one caller.
fn allowed(each: u32, time: Duration) -> u64 {
    let (interval, mut idle_at, mut admitted) = (Duration::from_secs(1), Duration::ZERO, 0);
    for round in 0..each {
        let now = time * round / each;
        let after = idle_at.max(now) + interval;
        if after <= now + interval * 2 {
            (idle_at, admitted) = (after, admitted + 1);
        }
    }
    admitted
}
