//! Metrics of all parts: their names, and the dashboard that shows them.

use std::collections::BTreeSet;

use duplexer_core::metrics::{Description, MetricSource, Visitor};
use duplexer_http::StreamableHttp;
use duplexer_otel::Metrics;
use duplexer_server::Server;
use serde_json::Value;

/// The names of a part that is not there.
struct Names(&'static [Description]);

impl MetricSource for Names {
    fn descriptions(&self) -> &[Description] {
        self.0
    }

    fn read(&self, _: &mut dyn Visitor) {}
}

/// Returns the names that a collector sees, with the suffixes of histograms.
fn known() -> BTreeSet<String> {
    let service = StreamableHttp::new(Server::builder("s", "0").build().unwrap());
    let metrics = Metrics::new().source(service).source(Names(duplexer_redis::METRICS));
    let text = metrics.to_prometheus();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .flat_map(|(name, kind)| match kind {
            "histogram" => ["_bucket", "_count", "_sum"].map(|suffix| format!("{name}{suffix}")).to_vec(),
            _ => vec![name.to_owned()],
        })
        .collect()
}

/// Returns the names of metrics in a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("mcp_server_") || word.starts_with("duplexer_"))
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let known = known();
    let text = include_str!("../../docs/grafana-dashboard.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut shown = 0;
    for query in targets.map(|target| target["expr"].as_str().unwrap()) {
        for name in names(query) {
            assert!(known.contains(name), "{name} in `{query}`");
            shown += 1;
        }
    }
    assert!(shown > panels.len(), "{shown} names in {} panels", panels.len());
    let variable = dashboard["templating"]["list"][1]["query"].as_str().unwrap();
    assert!(names(variable).all(|name| known.contains(name)), "{variable}");
}

/// SCL-87, SCL-89: no name of a session or user is a label, and every name says whose it is.
#[test]
fn names_are_unique_and_have_a_prefix() {
    let known = known();
    assert!(known.iter().all(|name| name.starts_with("mcp_server_") || name.starts_with("duplexer_")));
    let service = StreamableHttp::new(Server::builder("s", "0").build().unwrap());
    let all: Vec<_> =
        service.descriptions().iter().chain(duplexer_redis::METRICS).map(|of| of.name).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}
