//! Metrics of a server that is called, as the text of Prometheus and through an OpenTelemetry SDK.

use duplexer_core::metrics::{Description, MetricSource, Visitor};
use duplexer_server::middleware::{Quota, RateLimit};
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{Server, ServerBuilder};
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, HistogramDataPoint, MetricData, ResourceMetrics, SumDataPoint,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use serde_json::json;

use super::{Wire, serve};
use crate::Metrics;

fn counted(metrics: &Metrics) -> ServerBuilder<()> {
    Server::builder("counted", "0")
        .observer(metrics.clone())
        .middleware(RateLimit::of_tools().tool("rare", Quota::per_hour(1)))
        .tool(Tool::new("echo", || async { "hello" }))
        .tool(Tool::new("rare", || async { "once" }))
        .tool(Tool::new("fails", || async { Err::<(), _>(ToolError::new("no")) }))
}

async fn script(wire: &mut Wire) {
    for name in ["echo", "echo", "fails", "rare", "rare", "no such tool"] {
        wire.ask("tools/call", json!({ "name": name })).await;
    }
    wire.ask("a method of ada@example.com", json!({})).await;
}

/// Returns the value of a series.
fn value<'a>(text: &'a str, series: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

#[tokio::test]
async fn requests_are_counted_by_method_tool_and_error() {
    let metrics = Metrics::new();
    serve(counted(&metrics), None, script).await;
    let text = metrics.to_prometheus();
    let count = |labels: &str| {
        value(&text, &format!("mcp_server_operation_duration_seconds_count{{mcp_method_name={labels}}}"))
    };
    let call = |rest: &str| count(&format!(r#""tools/call"{rest}"#));
    assert_eq!(call(r#",gen_ai_tool_name="echo""#), Some("2"), "{text}");
    assert_eq!(call(r#",gen_ai_tool_name="fails",error_type="tool_error""#), Some("1"));
    assert_eq!(call(r#",gen_ai_tool_name="rare""#), Some("1"));
    // The limit refuses a call before the tool is looked up, and an unknown tool is no label.
    assert_eq!(call(r#",error_type="-32005""#), Some("1"));
    assert_eq!(call(r#",error_type="-32602""#), Some("1"));
    assert_eq!(count(r#""_OTHER",error_type="-32601""#), Some("1"));
    assert!(!text.contains("ada@example.com") && !text.contains("no such tool"), "{text}");
    assert_eq!(value(&text, "duplexer_server_requests_in_flight"), Some("0"));
    let received = value(&text, r#"duplexer_server_received_bytes_total{mcp_method_name="tools/call"}"#);
    assert!(received.unwrap().parse::<u64>().unwrap() > 500, "{text}");
    let sent = value(&text, r#"duplexer_server_sent_bytes_total{mcp_method_name="tools/call"}"#);
    assert!(sent.unwrap().parse::<u64>().unwrap() > 100, "{text}");
}

#[tokio::test]
async fn connections_of_a_handshake_are_counted_while_they_are_open_and_measured_at_their_end() {
    let metrics = Metrics::new();
    let open = serve(counted(&metrics), None, async |wire| {
        wire.shake_hands().await;
        metrics.to_prometheus()
    })
    .await;
    assert_eq!(value(&open, "duplexer_server_connections"), Some("1"), "{open}");
    let text = metrics.to_prometheus();
    assert_eq!(value(&text, "duplexer_server_connections"), Some("0"), "{text}");
    let sessions = r#"mcp_server_session_duration_seconds_count{mcp_protocol_version="2025-11-25"}"#;
    assert_eq!(value(&text, sessions), Some("1"), "{text}");
}

/// A catalog that changes can have any number of tools over time; their labels are bounded.
#[test]
fn the_number_of_tools_with_a_label_is_bounded() {
    use std::time::Duration;

    use crate::metrics::testing;

    let metrics = Metrics::new();
    for number in 0..2000 {
        testing::ended(&metrics, &format!("tool-{number}"), Duration::from_millis(1));
    }
    let text = metrics.to_prometheus();
    let tools = text.lines().filter(|line| line.contains("duration_seconds_count")).count();
    assert_eq!(tools, 513);
    let others = r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name="_OTHER"}"#;
    assert_eq!(value(&text, others), Some("1488"));
}

const ORDERS: Description = Description::counter("shop.orders", "{order}", "Orders");

struct Shop;

impl MetricSource for Shop {
    fn descriptions(&self) -> &[Description] {
        &[ORDERS]
    }

    fn read(&self, visitor: &mut dyn Visitor) {
        visitor.value(&ORDERS, &[("shop.kind", "tea")], 3.0);
    }
}

#[tokio::test]
async fn an_sdk_reads_the_counters_and_has_the_durations() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let metrics = Metrics::new().source(Shop);
    metrics.export(&provider);
    serve(counted(&metrics), None, script).await;
    provider.force_flush().unwrap();
    let finished = exporter.get_finished_metrics().unwrap();
    let all: Vec<_> = finished.iter().flat_map(ResourceMetrics::scope_metrics).collect();
    let find = |name: &str| {
        let metric = all.iter().flat_map(|scope| scope.metrics()).find(|metric| metric.name() == name);
        let AggregatedMetrics::F64(data) = metric.unwrap_or_else(|| panic!("{name}")).data() else {
            panic!("{name}")
        };
        data
    };
    let MetricData::Histogram(durations) = find("mcp.server.operation.duration") else {
        panic!("a histogram")
    };
    let calls: u64 = durations.data_points().map(HistogramDataPoint::count).sum();
    assert_eq!(calls, 7);
    let MetricData::Sum(orders) = find("shop.orders") else { panic!("a counter") };
    assert_eq!(format!("{:?}", orders.data_points().map(SumDataPoint::value).collect::<Vec<_>>()), "[3.0]");
    let MetricData::Gauge(in_flight) = find("duplexer.server.requests.in_flight") else { panic!("a gauge") };
    assert_eq!(in_flight.data_points().count(), 1);
}

#[cfg(feature = "prometheus")]
#[tokio::test]
async fn the_endpoint_serves_the_text_at_one_path() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    let endpoint = crate::PrometheusEndpoint::bind("127.0.0.1:0", Metrics::new()).await.unwrap();
    let address = endpoint.local_addr();
    let get = async |line: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    };
    let requests = async {
        let reply = get("GET /metrics").await;
        assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("version=0.0.4"), "{reply}");
        assert!(reply.contains("\nduplexer_server_requests_in_flight 0\n"), "{reply}");
        assert!(get("GET /").await.starts_with("HTTP/1.1 404"));
        assert!(get("POST /metrics").await.starts_with("HTTP/1.1 405"));
        assert!(get("HEAD /metrics").await.ends_with("\r\n\r\n"));
    };
    tokio::select! {
        () = endpoint.serve() => panic!("it serves until it is dropped"),
        () = requests => {}
    }
    assert!(crate::PrometheusEndpoint::bind("256.0.0.1:0", Metrics::new()).await.is_err());
}
