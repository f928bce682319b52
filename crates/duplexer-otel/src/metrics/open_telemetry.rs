//! Export through the meters of an OpenTelemetry SDK.
//!
//! OpenTelemetry has no histogram that is read instead of written. Durations are therefore also recorded in a histogram of the
//! SDK; a distribution of a source is exported as its count and its sum.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::metrics::{
    DURATION_BOUNDS, Description, Distribution, Kind, Label, MetricSource, Visitor, float,
};
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Histogram, Meter, MeterProvider};

use super::error_kind::ErrorKind;
use super::{ERROR, METHOD, Metrics, OPERATION, REVISION, SESSION, TOOL};
use crate::span::scope;

/// Status of a response, beside the kind of its error.
const STATUS_CODE: &str = "rpc.response.status_code";

/// The histograms of the SDK.
pub(super) struct Recorder {
    operation: Histogram<f64>,
    session: Histogram<f64>,
}

impl Recorder {
    pub(super) fn operation(
        &self,
        method: Option<Method>,
        tool: Option<Cow<'_, str>>,
        error: ErrorKind,
        elapsed: Duration,
    ) {
        let label = ErrorKind::label(error.index());
        let attributes = [
            Some(KeyValue::new(METHOD, method.map_or("_OTHER", Method::name))),
            tool.map(|tool| KeyValue::new(TOOL, tool.into_owned())),
            label.map(|label| KeyValue::new(ERROR, label)),
            label.filter(|_| ErrorKind::is_code(error.index())).map(|code| KeyValue::new(STATUS_CODE, code)),
        ];
        let attributes: Vec<KeyValue> = attributes.into_iter().flatten().collect();
        self.operation.record(elapsed.as_secs_f64(), &attributes);
    }

    pub(super) fn session(&self, version: ProtocolVersion, elapsed: Duration) {
        self.session.record(elapsed.as_secs_f64(), &[KeyValue::new(REVISION, version.as_str())]);
    }
}

/// Creates an instrument for each value of all sources.
pub(super) fn export(metrics: &Metrics, provider: &impl MeterProvider) -> Recorder {
    let meter = provider.meter_with_scope(scope());
    for source in metrics.all() {
        for of in source.descriptions().to_vec() {
            let is_recorded = of == OPERATION || of == SESSION;
            match of.kind {
                _ if is_recorded => {}
                Kind::Counter | Kind::Gauge => observe(&meter, of.name.to_owned(), &source, of, Part::Value),
                Kind::Histogram => {
                    observe(&meter, format!("{}.count", of.name), &source, of, Part::Count);
                    observe(&meter, format!("{}.sum", of.name), &source, of, Part::Sum);
                }
            }
        }
    }
    let histogram = |of: Description| {
        let builder = meter.f64_histogram(of.name).with_unit(of.unit).with_description(of.help);
        builder.with_boundaries(DURATION_BOUNDS.to_vec()).build()
    };
    Recorder { operation: histogram(OPERATION), session: histogram(SESSION) }
}

/// What an instrument shows of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Value,
    Count,
    Sum,
}

fn observe(meter: &Meter, name: String, source: &Arc<dyn MetricSource>, of: Description, part: Part) {
    let source = Arc::clone(source);
    let unit = if part == Part::Count { "1" } else { of.unit };
    let callback = move |observer: &dyn AsyncInstrument<f64>| {
        source.read(&mut Observing { observer, name: of.name, part });
    };
    // An instrument that is dropped stays registered.
    if of.kind == Kind::Gauge {
        let builder = meter.f64_observable_gauge(name).with_unit(unit).with_description(of.help);
        builder.with_callback(callback).build();
    } else {
        let builder = meter.f64_observable_counter(name).with_unit(unit).with_description(of.help);
        builder.with_callback(callback).build();
    }
}

/// Passes one of the values of a source to an instrument.
struct Observing<'a> {
    observer: &'a dyn AsyncInstrument<f64>,
    name: &'static str,
    part: Part,
}

impl Visitor for Observing<'_> {
    fn value(&mut self, of: &Description, labels: &[Label<'_>], value: f64) {
        if of.name == self.name && self.part == Part::Value {
            self.observer.observe(value, &attributes(labels));
        }
    }

    fn histogram(&mut self, of: &Description, labels: &[Label<'_>], distribution: &Distribution) {
        if of.name != self.name {
            return;
        }
        match self.part {
            Part::Count => {
                self.observer.observe(float(distribution.counts.iter().sum()), &attributes(labels));
            }
            Part::Sum => self.observer.observe(distribution.sum, &attributes(labels)),
            Part::Value => {}
        }
    }
}

fn attributes(labels: &[Label<'_>]) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned())).collect()
}
