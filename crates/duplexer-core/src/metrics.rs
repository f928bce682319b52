//! Values that a part of a program offers to an exporter of metrics. The part counts by itself; the exporter reads when it is
//! asked, so that counting costs the same with and without one.

mod histogram;

pub use histogram::{DURATION_BOUNDS, Histogram};

/// A part that offers values to an exporter: a service, a store, or a program's own counters.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use duplexer_core::metrics::{Description, MetricSource, Visitor, float};
///
/// const ORDERS: Description = Description::counter("shop.orders", "{order}", "Orders since the start");
///
/// struct Shop(AtomicU64);
///
/// impl MetricSource for Shop {
///     fn descriptions(&self) -> &[Description] {
///         &[ORDERS]
///     }
///
///     fn read(&self, visitor: &mut dyn Visitor) {
///         visitor.value(&ORDERS, &[], float(self.0.load(Ordering::Relaxed)));
///     }
/// }
/// ```
pub trait MetricSource: Send + Sync + 'static {
    /// Returns the descriptions of all values. It returns the same ones whenever it is called.
    fn descriptions(&self) -> &[Description];

    /// Reads all values. It must not block.
    fn read(&self, visitor: &mut dyn Visitor);
}

/// What an exporter does with each value.
pub trait Visitor {
    /// Takes one value. The number of different labels of a description is bounded by its source, and no label names a user or
    /// a session.
    fn value(&mut self, of: &Description, labels: &[Label<'_>], value: f64);

    /// Takes a distribution.
    fn histogram(&mut self, of: &Description, labels: &[Label<'_>], distribution: &Distribution);
}

/// Name and value of a label.
pub type Label<'a> = (&'static str, &'a str);

/// Name, unit and kind of a value, in the form of OpenTelemetry: dots in the name, a unit of UCUM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name, such as `mcp.server.operation.duration`.
    pub name: &'static str,
    /// The unit: `s`, `By`, `1`, or what is counted in braces.
    pub unit: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// What the value is.
    pub kind: Kind,
}

impl Description {
    /// Describes a value that only grows.
    pub const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Counter, name, unit, help)
    }

    /// Describes a value that grows and shrinks.
    pub const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Gauge, name, unit, help)
    }

    /// Describes a distribution.
    pub const fn histogram(name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self::new(Kind::Histogram, name, unit, help)
    }

    const fn new(kind: Kind, name: &'static str, unit: &'static str, help: &'static str) -> Self {
        Self { name, unit, help, kind }
    }
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It grows and shrinks.
    Gauge,
    /// A distribution.
    Histogram,
}

/// A distribution as an exporter sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// The upper bounds of the buckets but the last, which has none.
    pub bounds: &'static [f64],
    /// The number of values of each bucket: one more than bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

/// Converts a count, which is exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "exporters have no other type, and no counter gets that far")]
pub fn float(count: u64) -> f64 {
    count as f64
}
