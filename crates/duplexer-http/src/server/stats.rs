//! What a service offers to exporters of metrics: numbers that it has anyway, read when they are needed.

use std::sync::atomic::Ordering;

use duplexer_core::metrics::{Description, MetricSource, Visitor, float};

use super::StreamableHttp;

const SESSIONS: Description =
    Description::gauge("duplexer.http.sessions", "{session}", "Open sessions of the handshake era");
const REQUESTS: Description = Description::gauge(
    "duplexer.http.requests.in_flight",
    "{request}",
    "Requests in flight, streams included",
);
const SUBSCRIPTIONS: Description = Description::gauge(
    "duplexer.http.subscriptions",
    "{subscription}",
    "Open subscriptions of the envelope era",
);
const STREAMS: Description =
    Description::gauge("duplexer.http.streams", "{stream}", "Event streams that clients read");
const READY: Description =
    Description::gauge("duplexer.http.ready", "1", "1 while a balancer can send requests");

/// For an exporter of metrics, such as `Metrics` of `duplexer-otel`.
impl MetricSource for StreamableHttp {
    fn descriptions(&self) -> &[Description] {
        &[SESSIONS, REQUESTS, SUBSCRIPTIONS, STREAMS, READY]
    }

    fn read(&self, visitor: &mut dyn Visitor) {
        let service = &self.0;
        let (requests, subscriptions) = service.in_flight();
        let mut value = |of: &Description, value: usize| visitor.value(of, &[], float(value as u64));
        value(&SESSIONS, service.sessions.len());
        value(&REQUESTS, requests.load(Ordering::Relaxed));
        value(&SUBSCRIPTIONS, subscriptions.load(Ordering::Relaxed));
        value(&STREAMS, service.streams.len());
        value(&READY, usize::from(service.is_ready()));
    }
}
