//! Rate limits that nodes share.

use std::time::Duration;

use duplexer_core::metrics::{Description, Distribution, Label, MetricSource, Visitor};
use duplexer_redis::{METRICS, RedisRateLimiter};
use duplexer_server::middleware::{
    Deciding, Decision, Quota, RateCaller, RateLimiter as _, RateRequest, RefusedBy,
};
use duplexer_tests::proxy::{Fault, Proxy};
use tokio::time::Instant;

use super::store::Store;

/// Longer than a loaded machine needs.
const LONG: Duration = Duration::from_secs(30);

fn call<'a>(client: &'a str, tool: &'a str, quota: &'a Quota) -> RateRequest<'a> {
    let caller = RateCaller::Principal { client, issuer: None, subject: None };
    RateRequest { caller, requests: None, tool: Some((tool, quota)) }
}

async fn decide(limiter: &RedisRateLimiter, request: RateRequest<'_>) -> Decision {
    match limiter.decide(&request, Instant::now()) {
        Deciding::Now(decision) => decision,
        Deciding::Later(decision) => decision.await,
    }
}

/// All nodes together admit one quota, and each key has its own.
#[tokio::test]
async fn nodes_share_a_quota() {
    let Some(store) = Store::start("a shared rate limit").await else { return };
    let nodes = [store.node().await, store.node().await];
    let limiters = nodes.each_ref().map(|node| node.rate_limiter(2).patience(LONG));
    let quota = Quota::per_hour(10);
    let mut refused = Vec::new();
    for attempt in 0..20 {
        let decision = decide(&limiters[attempt % 2], call("ada", "a", &quota)).await;
        if let Decision::Refused { by, retry_after } = decision {
            assert_eq!(by, RefusedBy::Tool);
            refused.push(retry_after);
        }
    }
    assert_eq!(refused.len(), 10);
    let expected = Duration::from_secs(330)..=Duration::from_secs(360);
    assert!(refused.iter().all(|wait| expected.contains(wait)), "{refused:?}");
    for other in [call("bob", "a", &quota), call("ada", "b", &quota)] {
        assert_eq!(decide(&limiters[0], other).await, Decision::Admitted);
    }
    assert_eq!(nodes[0].stats().rate_limits_alone + nodes[1].stats().rate_limits_alone, 0);
}

/// A request is counted by the quotas of caller and tool in one step: one that is refused uses up neither.
#[tokio::test]
async fn a_request_is_counted_by_both_quotas_or_by_none() {
    let Some(store) = Store::start("a rate limit with two quotas").await else { return };
    let limiter = store.node().await.rate_limiter(1).patience(LONG);
    let (requests, tool) = (Quota::per_hour(3), Quota::per_hour(1));
    let search = RateRequest { requests: Some(&requests), ..call("ada", "search", &tool) };
    let other = RateRequest { tool: None, ..search };
    assert_eq!(decide(&limiter, search).await, Decision::Admitted);
    for _ in 0..5 {
        let decision = decide(&limiter, search).await;
        assert!(matches!(decision, Decision::Refused { by: RefusedBy::Tool, .. }), "{decision:?}");
    }
    for _ in 0..2 {
        assert_eq!(decide(&limiter, other).await, Decision::Admitted);
    }
    let decision = decide(&limiter, other).await;
    assert!(matches!(decision, Decision::Refused { by: RefusedBy::Requests, .. }), "{decision:?}");
    let find = RateRequest { tool: Some(("find", &tool)), ..search };
    let decision = decide(&limiter, find).await;
    assert!(matches!(decision, Decision::Refused { by: RefusedBy::Requests, .. }), "{decision:?}");
    assert_eq!(decide(&limiter, RateRequest { requests: None, ..find }).await, Decision::Admitted);
}

/// What is stored of a caller is a digest, and it expires.
#[tokio::test]
async fn a_limit_stores_no_name_and_nothing_for_ever() {
    let Some(store) = Store::start("keys of rate limits").await else { return };
    let limiter = store.node().await.rate_limiter(1).patience(LONG);
    decide(&limiter, call("ada@example.com", "secret-tool", &Quota::per_minute(1))).await;
    let mut commands = store.commands().await;
    let names: Vec<String> = redis::cmd("KEYS").arg("*{r:*").query_async(&mut commands).await.unwrap();
    let [name] = &names[..] else { panic!("{names:?}") };
    assert!(!name.contains("ada") && !name.contains("secret"), "{name}");
    let expiry: i64 = redis::cmd("PTTL").arg(name).query_async(&mut commands).await.unwrap();
    assert!((1..=60_000).contains(&expiry), "{expiry}");
}

/// SCL-53: without the store a node counts alone, with its share of the limit, and says so in a metric.
#[tokio::test]
async fn a_node_without_the_store_counts_alone_with_its_share() {
    let Some(mut store) = Store::start("a rate limit without the store").await else { return };
    let node = store.node().await;
    let limiter = node.rate_limiter(4);
    store.kill();
    let quota = Quota::per_hour(20);
    let mut admitted = 0;
    for _ in 0..12 {
        admitted += usize::from(decide(&limiter, call("ada", "a", &quota)).await == Decision::Admitted);
    }
    assert_eq!(admitted, 5, "a quarter of 20");
    assert_eq!(node.stats().rate_limits_alone, 12);
}

/// SCL-53: a store that does not answer delays no request for longer than the patience.
#[tokio::test]
async fn a_silent_store_does_not_block_a_request() {
    let Some(store) = Store::start("a rate limit and a silent store").await else { return };
    let proxy = Proxy::start(store.port).await;
    let connect = duplexer_redis::Shared::connect(proxy.url()).response_timeout(LONG);
    let node = connect.await.unwrap();
    let limiter = node.rate_limiter(1).patience(Duration::from_millis(50));
    proxy.set(Fault::Hold);
    let quota = Quota::per_hour(1);
    // Both quotas in one step: the patience is that of the request.
    let request = RateRequest { requests: Some(&quota), ..call("ada", "a", &quota) };
    assert_eq!(decide(&limiter, request).await, Decision::Admitted);
    let next = decide(&limiter, request).await;
    assert!(matches!(next, Decision::Refused { .. }), "{next:?}");
    assert_eq!(node.stats().rate_limits_alone, 2);
}

#[derive(Default)]
struct Seen(Vec<(&'static str, String)>);

impl Visitor for Seen {
    fn value(&mut self, of: &Description, labels: &[Label<'_>], value: f64) {
        self.0.push((of.name, format!("{labels:?} {value}")));
    }

    fn histogram(&mut self, of: &Description, labels: &[Label<'_>], distribution: &Distribution) {
        let count: u64 = distribution.counts.iter().sum();
        self.0.push((of.name, format!("{labels:?} {count}")));
    }
}

/// SCL-87: a node offers all its values, with the namespace and with operations by name.
#[tokio::test]
async fn a_node_offers_its_counters() {
    let Some(store) = Store::start("metrics of a node").await else { return };
    let node = store.node().await;
    decide(&node.rate_limiter(1).patience(LONG), call("zoe", "a", &Quota::per_hour(1))).await;
    let mut seen = Seen::default();
    node.read(&mut seen);
    for of in METRICS {
        assert!(seen.0.iter().any(|(name, _)| *name == of.name), "{}", of.name);
    }
    let text = format!("{:?}", seen.0);
    assert!(
        seen.0.iter().all(|(_, value)| value.contains(r#"("duplexer.store.namespace", "test")"#)),
        "{text}"
    );
    let limit = r#"("operation", "limit"), ("outcome", "ok")] 1"#;
    assert!(seen.0.iter().any(|(_, value)| value.ends_with(limit)), "{text}");
    assert!(
        seen.0.contains(&("duplexer.store.up", r#"[("duplexer.store.namespace", "test")] 1"#.to_owned()))
    );
    assert!(!text.contains("zoe"), "{text}");
}
