//! How long a server takes for a request that needs no work.

use std::time::Duration;

use duplexer::types::methods::Method;
use serde_json::json;
use tokio::time::Instant;

use super::messages::Answer;
use super::offers::Channel;
use super::report::Report;
use super::rules;

/// Requests that are measured.
const REQUESTS: usize = 20;

/// Median time from which the latency is a finding, in milliseconds: less is not noticed, and more has a cause.
const SLOW: f64 = 25.0;

/// Measures some requests, one after the other.
pub(super) async fn check(channel: &mut impl Channel, method: Method, report: &mut Report) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..REQUESTS {
        let started = Instant::now();
        if !matches!(channel.ask(method, json!({})).await, Answer::Result(_)) {
            return;
        }
        times.push(started.elapsed());
    }
    times.sort();
    let milliseconds = |time: Option<&Duration>| time.copied().unwrap_or_default().as_secs_f64() * 1000.0;
    let (median, longest) = (milliseconds(times.get(REQUESTS / 2)), milliseconds(times.last()));
    let what = format!("{REQUESTS} times {}: median {median:.1} ms, longest {longest:.1} ms", method.name());
    report.median = Some(median);
    report.expect(rules::LATENCY, median < SLOW, || what);
}
