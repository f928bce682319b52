//! Metrics of a server, by the OpenTelemetry conventions of MCP.
//!
//! A request is counted in atomics of this crate, without an allocation. What reads them, an OpenTelemetry SDK or the Prometheus
//! endpoint, does so at its own pace. Labels are methods of the protocol, names of tools that the server has, and kinds of
//! errors: never a user, a session, or another text that a client chooses.

#[cfg(feature = "prometheus")]
mod endpoint;
mod error_kind;
mod open_telemetry;
mod prometheus;
mod series;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use duplexer_core::metrics::{Description, Distribution, Label, MetricSource, Visitor, float};
use duplexer_server::middleware::{Ending, Observed, Observer};
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use opentelemetry::metrics::MeterProvider;

use self::error_kind::ErrorKind;
use self::open_telemetry::Recorder;
use self::series::Series;

#[cfg(feature = "prometheus")]
pub use endpoint::{EndpointError, PrometheusEndpoint};

/// Labels of the values of this crate.
pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const TOOL: &str = "gen_ai.tool.name";
pub(crate) const ERROR: &str = "error.type";
pub(crate) const REVISION: &str = "mcp.protocol.version";

const OPERATION: Description = Description::histogram(
    "mcp.server.operation.duration",
    "s",
    "Duration of requests and notifications, as the server sees them",
);
const SESSION: Description = Description::histogram(
    "mcp.server.session.duration",
    "s",
    "Duration of connections and sessions that a handshake opened",
);
const IN_FLIGHT: Description =
    Description::gauge("duplexer.server.requests.in_flight", "{request}", "Requests that are being handled");
const CONNECTIONS: Description = Description::gauge(
    "duplexer.server.connections",
    "{connection}",
    "Connections and sessions that a handshake opened and that have not ended",
);
const RECEIVED: Description =
    Description::counter("duplexer.server.received", "By", "Size of the params of messages");
const SENT: Description = Description::counter("duplexer.server.sent", "By", "Size of results");

const OWN: &[Description] = &[OPERATION, SESSION, IN_FLIGHT, CONNECTIONS, RECEIVED, SENT];

/// Counts what a server does. Clones share the counters.
///
/// Add it to the server as an [observer](duplexer_server::ServerBuilder::observer), and read it with an OpenTelemetry SDK
/// ([`export`](Self::export)) or as the text of Prometheus ([`to_prometheus`](Self::to_prometheus), and with the feature
/// `prometheus` an endpoint of its own).
///
/// ```
/// use duplexer_otel::Metrics;
/// use duplexer_server::Server;
///
/// let metrics = Metrics::new();
/// let server = Server::builder("counted", "1.0.0").observer(metrics.clone()).build()?;
/// assert!(metrics.to_prometheus().contains("duplexer_server_requests_in_flight 0"));
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Metrics(Arc<Shared>);

struct Shared {
    series: Series,
    in_flight: AtomicI64,
    connections: AtomicI64,
    sources: RwLock<Vec<Arc<dyn MetricSource>>>,
    recorder: OnceLock<Recorder>,
}

impl Metrics {
    /// Creates counters that nothing has been counted with.
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            series: Series::default(),
            in_flight: AtomicI64::new(0),
            connections: AtomicI64::new(0),
            sources: RwLock::default(),
            recorder: OnceLock::new(),
        }))
    }

    /// Adds the values of another part of the program: a `StreamableHttp`, a `Shared` of `duplexer-redis`, or your own.
    #[must_use]
    pub fn source(self, source: impl MetricSource) -> Self {
        self.add_source(source);
        self
    }

    /// Adds the same to metrics that are already in use.
    pub fn add_source(&self, source: impl MetricSource) {
        self.0.sources.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(source));
    }

    /// Exports through the meters of an OpenTelemetry SDK: counters and gauges are read when the SDK collects, and durations are
    /// also recorded in its histograms, which then costs what the SDK costs. Add all sources before. Only the first call has an
    /// effect.
    pub fn export(&self, provider: &impl MeterProvider) {
        self.0.recorder.get_or_init(|| open_telemetry::export(self, provider));
    }

    /// Writes all values in the text format of Prometheus, version 0.0.4.
    pub fn to_prometheus(&self) -> String {
        prometheus::text(self)
    }

    /// Returns these metrics and all their sources.
    fn all(&self) -> Vec<Arc<dyn MetricSource>> {
        let own: Arc<dyn MetricSource> = Arc::new(Own(Arc::clone(&self.0)));
        let sources = self.0.sources.read().unwrap_or_else(PoisonError::into_inner);
        std::iter::once(own).chain(sources.iter().cloned()).collect()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("in_flight", &self.0.in_flight).finish_non_exhaustive()
    }
}

impl Observer for Metrics {
    fn begun(&self, message: &Observed<'_>) {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        let text = message.message();
        self.0.series.received(text.known(), text.params().map_or(0, str::len));
    }

    fn ended(&self, message: &Observed<'_>, ending: Ending<'_>, elapsed: Duration) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        let (method, tool) = (message.message().known(), message.tool());
        let error = ErrorKind::of(method, &ending);
        self.0.series.ended(method, tool, error, elapsed);
        if let Some(recorder) = self.0.recorder.get() {
            recorder.operation(method, self.0.series.label(tool), error, elapsed);
        }
    }

    fn written(&self, method: Option<Method>, bytes: usize) {
        self.0.series.sent(method, bytes);
    }

    fn opened(&self, _: ProtocolVersion) {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
    }

    fn closed(&self, version: ProtocolVersion, elapsed: Duration) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
        self.0.series.session(version, elapsed);
        if let Some(recorder) = self.0.recorder.get() {
            recorder.session(version, elapsed);
        }
    }
}

/// The values of the server itself.
struct Own(Arc<Shared>);

impl MetricSource for Own {
    fn descriptions(&self) -> &[Description] {
        OWN
    }

    fn read(&self, visitor: &mut dyn Visitor) {
        let gauge = |value: &AtomicI64| float(u64::try_from(value.load(Ordering::Relaxed)).unwrap_or(0));
        visitor.value(&IN_FLIGHT, &[], gauge(&self.0.in_flight));
        visitor.value(&CONNECTIONS, &[], gauge(&self.0.connections));
        self.0.series.read(&mut Sink { visitor });
    }
}

/// Gives the series their descriptions.
struct Sink<'a> {
    visitor: &'a mut dyn Visitor,
}

impl Sink<'_> {
    fn operation(&mut self, labels: &[Label<'_>], read: &Distribution) {
        self.visitor.histogram(&OPERATION, labels, read);
    }

    fn session(&mut self, revision: &str, read: &Distribution) {
        self.visitor.histogram(&SESSION, &[(REVISION, revision)], read);
    }

    fn bytes(&mut self, method: &str, received: u64, sent: u64) {
        self.visitor.value(&RECEIVED, &[(METHOD, method)], float(received));
        self.visitor.value(&SENT, &[(METHOD, method)], float(sent));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Counts without a server.

    use super::*;

    /// Counts a call of a tool.
    pub(crate) fn ended(metrics: &Metrics, tool: &str, elapsed: Duration) {
        let error = ErrorKind::of(None, &Ending::Done(&duplexer_server::Outcome::empty()));
        metrics.0.series.ended(Some(Method::ToolsCall), Some(tool), error, elapsed);
    }
}
