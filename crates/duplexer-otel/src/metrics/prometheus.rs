//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use duplexer_core::metrics::{Description, Distribution, Kind, Label, Visitor};

use super::Metrics;

/// Writes all values of metrics and their sources.
pub(super) fn text(metrics: &Metrics) -> String {
    let mut text = String::with_capacity(16 * 1024);
    for source in metrics.all() {
        let mut families: Vec<Family> = source.descriptions().iter().map(Family::new).collect();
        source.read(&mut Families(&mut families));
        for family in families {
            family.write(&mut text);
        }
    }
    text
}

/// The name of a value in Prometheus: dots become underscores, unit and kind become suffixes.
pub(super) fn name_of(of: &Description) -> String {
    let unit = match of.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let kind = if of.kind == Kind::Counter { "_total" } else { "" };
    format!("{}{unit}{kind}", of.name.replace(['.', '-'], "_"))
}

/// All series of one name. Prometheus wants them together.
struct Family {
    of: Description,
    name: String,
    lines: String,
}

struct Families<'a>(&'a mut Vec<Family>);

impl Families<'_> {
    fn family(&mut self, of: &Description) -> Option<&mut Family> {
        self.0.iter_mut().find(|family| family.of.name == of.name)
    }
}

impl Visitor for Families<'_> {
    fn value(&mut self, of: &Description, labels: &[Label<'_>], value: f64) {
        if let Some(Family { name, lines, .. }) = self.family(of) {
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(lines, "{name}{} {value}", Labels(labels, None));
        }
    }

    fn histogram(&mut self, of: &Description, labels: &[Label<'_>], distribution: &Distribution) {
        let Some(Family { name, lines, .. }) = self.family(of) else { return };
        let mut count = 0;
        let bounds = distribution.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, in_bucket) in bounds.zip(&distribution.counts) {
            count += in_bucket;
            let _ = writeln!(lines, "{name}_bucket{} {count}", Labels(labels, Some(&bound)));
        }
        let labels = Labels(labels, None);
        let _ = writeln!(lines, "{name}_sum{labels} {}\n{name}_count{labels} {count}", distribution.sum);
    }
}

impl Family {
    fn new(of: &Description) -> Self {
        Self { of: *of, name: name_of(of), lines: String::new() }
    }

    fn write(&self, text: &mut String) {
        let Self { of, name, lines } = self;
        let kind = match of.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n{lines}", of.help.replace('\n', " "));
    }
}

/// Labels in braces, with the bound of a bucket.
struct Labels<'a>(&'a [Label<'a>], Option<&'a str>);

impl std::fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(labels, bound) = self;
        if labels.is_empty() && bound.is_none() {
            return Ok(());
        }
        let all = labels.iter().map(|(name, value)| (name.replace('.', "_"), *value));
        let all = all.chain(bound.map(|bound| ("le".to_owned(), bound)));
        for (index, (name, value)) in all.enumerate() {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(f, "{}{name}=\"{value}\"", if index == 0 { '{' } else { ',' })?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_their_unit_and_kind() {
        let check = |of: Description, expected: &str| assert_eq!(name_of(&of), expected);
        check(
            Description::histogram("mcp.server.operation.duration", "s", ""),
            "mcp_server_operation_duration_seconds",
        );
        check(Description::counter("duplexer.server.sent", "By", ""), "duplexer_server_sent_bytes_total");
        check(Description::gauge("duplexer.http.sessions", "{session}", ""), "duplexer_http_sessions");
    }

    #[test]
    fn values_and_distributions_are_written_with_escaped_labels() {
        let (gauge, histogram) =
            (Description::gauge("a.b", "1", "One."), Description::histogram("c", "s", "Two."));
        let mut families = vec![Family::new(&gauge), Family::new(&histogram)];
        let distribution = Distribution { bounds: &[0.5, 1.0], counts: vec![2, 0, 1], sum: 3.25 };
        Families(&mut families).histogram(&histogram, &[("x.y", "a\"b\\c\nd")], &distribution);
        Families(&mut families).value(&gauge, &[], 7.0);
        let mut text = String::new();
        for family in &families {
            family.write(&mut text);
        }
        let expected = "# HELP a_b One.\n# TYPE a_b gauge\na_b 7\n# HELP c_seconds Two.\n# TYPE c_seconds histogram\n\
            c_seconds_bucket{x_y=\"a\\\"b\\\\c\\nd\",le=\"0.5\"} 2\n\
            c_seconds_bucket{x_y=\"a\\\"b\\\\c\\nd\",le=\"1\"} 2\n\
            c_seconds_bucket{x_y=\"a\\\"b\\\\c\\nd\",le=\"+Inf\"} 3\n\
            c_seconds_sum{x_y=\"a\\\"b\\\\c\\nd\"} 3.25\nc_seconds_count{x_y=\"a\\\"b\\\\c\\nd\"} 3\n";
        assert_eq!(text, expected);
    }
}
