//! What a node offers to exporters of metrics (SCL-87), all with the namespace. No label names a session or a user.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duplexer_core::metrics::{Description, MetricSource, Visitor, float};
use duplexer_http::Health;

use crate::shared::Shared;
use crate::{nodes, sessions};

const UP: Description = Description::gauge("duplexer.store.up", "1", "1 while the store answers");
const OPERATION: Description = Description::histogram(
    "duplexer.store.operation.duration",
    "s",
    "Duration of the operations of the store, by operation and outcome",
);
const LEASE_AGE: Description =
    Description::gauge("duplexer.store.lease.age", "s", "Time since the lease of this node was renewed");
const INBOX_LAG: Description = Description::gauge(
    "duplexer.store.inbox.lag",
    "s",
    "Age of the last message of another node when it was read",
);
const BUS_LAG: Description =
    Description::gauge("duplexer.store.bus.lag", "s", "Age of the last change when it was read");
const MESSAGES: Description = Description::counter(
    "duplexer.store.messages",
    "{message}",
    "Messages between nodes, by direction, kind and outcome",
);
const SESSIONS: Description = Description::counter(
    "duplexer.store.sessions.entered",
    "{message}",
    "Messages for sessions, by whether they were admitted",
);

macro_rules! counters {
    ($($constant:ident = $name:literal, $unit:literal, $help:literal, $field:ident;)*) => {
        $(const $constant: Description = Description::counter($name, $unit, $help);)*

        /// The descriptions of all values that [`Shared`](crate::Shared) offers to an exporter.
        pub const METRICS: &[Description] =
            &[UP, OPERATION, LEASE_AGE, INBOX_LAG, BUS_LAG, MESSAGES, SESSIONS, $($constant),*];

        fn read_counters(shared: &Shared, visit: &mut dyn FnMut(&Description, u64)) {
            let stats = shared.stats();
            $(visit(&$constant, stats.$field);)*
        }
    };
}

counters! {
    RETRIES = "duplexer.store.retries", "{retry}", "Operations that were repeated", retries;
    EVENTS = "duplexer.store.events.appended", "{event}", "Events stored", events_appended;
    BATCHES = "duplexer.store.batches.appended", "{batch}", "Batches of events stored", batches_appended;
    GAPS = "duplexer.store.events.gaps", "{gap}", "Readings that found events evicted", events_gaps;
    LOST_NODES = "duplexer.store.nodes.lost", "{stream}", "Streams of dead nodes that this node ended", nodes_lost;
    READERS = "duplexer.store.readers.replaced", "{reader}", "Readers that replaced another one", readers_replaced;
    PUBLISHED = "duplexer.store.changes.published", "{change}", "Changes published", changes_published;
    MISSED = "duplexer.store.changes.missed", "{gap}", "Gaps in the log of changes", changes_missed;
    ALONE = "duplexer.store.rate_limits.alone", "{decision}", "Rate limits decided without the store", rate_limits_alone;
    RUNS = "duplexer.store.runs", "{run}", "Leases that this node has taken", runs;
}

/// For an exporter of metrics, such as `Metrics` of `duplexer-otel`.
impl MetricSource for Shared {
    fn descriptions(&self) -> &[Description] {
        METRICS
    }

    fn read(&self, visitor: &mut dyn Visitor) {
        let link = self.link();
        let namespace = ("duplexer.store.namespace", link.keys.namespace());
        let seconds = |lag: &AtomicU64| Duration::from_millis(lag.load(Ordering::Relaxed)).as_secs_f64();
        let is_up = link.lease.health() != Health::Disconnected;
        let counters = &link.counters;
        visitor.value(&UP, &[namespace], float(u64::from(is_up)));
        visitor.value(&LEASE_AGE, &[namespace], link.lease.age().as_secs_f64());
        visitor.value(&INBOX_LAG, &[namespace], seconds(&counters.inbox_lag));
        visitor.value(&BUS_LAG, &[namespace], seconds(&counters.bus_lag));
        for key in nodes::message_labels() {
            let (direction, kind, outcome) = key;
            let labels = [namespace, ("direction", direction), ("kind", kind), ("outcome", outcome)];
            visitor.value(&MESSAGES, &labels, float(counters.messages.get(&key)));
        }
        for outcome in sessions::OUTCOMES {
            let count = counters.sessions_entered.get(&outcome);
            visitor.value(&SESSIONS, &[namespace, ("outcome", outcome)], float(count));
        }
        for (name, outcome, durations) in counters.operations.read() {
            let labels = [namespace, ("operation", name), ("outcome", outcome)];
            visitor.histogram(&OPERATION, &labels, &durations);
        }
        read_counters(self, &mut |of, count| visitor.value(of, &[namespace], float(count)));
    }
}
