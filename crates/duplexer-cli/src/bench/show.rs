//! The result of a measurement: as text, as JSON, and as a drawing.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Measured;
use crate::text::{Style, Text, lines};

/// Quantiles that are shown, in 1/1000.
const QUANTILES: [(u64, &str); 4] = [(500, "p50"), (900, "p90"), (990, "p99"), (999, "p99.9")];
/// Columns of the longest bar.
const BAR: usize = 40;
/// Eighths of a column.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Colours of a drawing, one per server.
const COLOURS: [&str; 2] = ["#2563eb", "#ea580c"];

/// Formats a measurement for people.
pub(super) fn text(what: &str, all: &[Measured], columns: Option<usize>) -> Text {
    let mut shown = vec![Text::plain(what)];
    for one in all {
        shown.push(Text::new());
        let mut head = Text::new().then(Style::Heading, &one.target);
        if let Some(server) = &one.server {
            head.push(Style::Plain, &format!("  {server}"));
        }
        shown.push(head);
        shown.extend(bars(one));
    }
    shown.push(Text::new());
    shown.extend(table(all, columns));
    for one in all {
        if let Some(failure) = &one.counted.failure {
            let text = format!("the first failure of {}: {failure}", one.target);
            shown.push(Text::new().then(Style::Error, text));
        }
    }
    if let [one, other] = all {
        shown.push(Text::new());
        shown.push(Text::plain(comparison(one, other)));
    }
    lines(shown)
}

fn bars(one: &Measured) -> Vec<Text> {
    let rows = one.counted.latencies.rows();
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
    rows.iter()
        .map(|(bound, count)| {
            let eighths = usize::try_from(u128::from(*count) * (BAR as u128) * 8 / u128::from(most))
                .unwrap_or_default();
            let eighths = if *count > 0 { eighths.max(1) } else { 0 };
            let end = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
            let bar = format!("{}{end}", "█".repeat(eighths / 8));
            Text::new()
                .then(Style::Faint, format!("{:>12} ", format!("≤ {}", time(*bound))))
                .then(Style::Sent, format!("{bar:<BAR$}"))
                .then(Style::Plain, format!(" {count}"))
        })
        .collect()
}

fn table(all: &[Measured], columns: Option<usize>) -> Vec<Text> {
    let mut rows: Vec<Vec<String>> = vec![["server", "answers", "rate"].map(str::to_owned).to_vec()];
    if let Some(head) = rows.first_mut() {
        head.extend(QUANTILES.iter().map(|(_, name)| (*name).to_owned()));
        head.extend(["max", "failed", "CPU", "per answer"].map(str::to_owned));
    }
    for one in all {
        let (counted, latencies) = (&one.counted, &one.counted.latencies);
        let mut row =
            vec![one.target.clone(), latencies.total().to_string(), format!("{:.0}/s", counted.rate())];
        row.extend(QUANTILES.iter().map(|(per_mille, _)| time(latencies.quantile(*per_mille))));
        row.extend([time(latencies.max()), counted.failed.to_string()]);
        row.push(one.cores().map_or_else(|| "?".to_owned(), |cores| format!("{cores:.2} cores")));
        row.push(one.cpu_per_answer().map_or_else(|| "?".to_owned(), |cpu| format!("{cpu:.1} µs")));
        rows.push(row);
    }
    let shown = aligned(&rows);
    let is_wide = |limit: usize| shown.iter().any(|line| line.as_str().chars().count() > limit);
    if columns.is_some_and(is_wide) { aligned(&transposed(&rows)) } else { shown }
}

/// Exchanges rows and columns, for narrow terminals.
fn transposed(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let length = rows.first().map_or(0, Vec::len);
    let column = |at: usize| rows.iter().map(|row| row.get(at).cloned().unwrap_or_default()).collect();
    (0..length).map(column).collect()
}

/// Aligns the columns of a table, whose first row is its head.
fn aligned(rows: &[Vec<String>]) -> Vec<Text> {
    let columns = rows.first().map_or(0, Vec::len);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            Text::new().then(if index == 0 { Style::Faint } else { Style::Plain }, line)
        })
        .collect()
}

/// Compares two servers.
fn comparison(one: &Measured, other: &Measured) -> String {
    let ratio =
        |one: f64, other: f64| if other > 0.0 { format!("{:.2}", one / other) } else { "?".to_owned() };
    let median = |measured: &Measured| measured.counted.latencies.quantile(500);
    format!(
        "{} has {} times the rate and {} times the median latency of {}",
        one.target,
        ratio(one.counted.rate(), other.counted.rate()),
        ratio(median(one), median(other)),
        other.target
    )
}

/// Formats milliseconds with three digits or more.
fn time(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1000.0),
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

/// Formats a measurement as JSON.
pub(super) fn json(what: &str, all: &[Measured]) -> Value {
    let servers: Vec<Value> = all
        .iter()
        .map(|one| {
            let latencies = &one.counted.latencies;
            let mut quantiles: serde_json::Map<String, Value> =
                QUANTILES.iter().map(|(per_mille, name)| ((*name).to_owned(), latencies.quantile(*per_mille).into())).collect();
            quantiles.insert("max".to_owned(), latencies.max().into());
            let rows = latencies.rows();
            json!({
                "target": one.target,
                "server": one.server,
                "answers": latencies.total(),
                "failed": one.counted.failed,
                "failure": one.counted.failure,
                "seconds": one.counted.time.as_secs_f64(),
                "rate": one.counted.rate(),
                "latency_ms": quantiles,
                "cpu_cores": one.cores(),
                "cpu_us_per_answer": one.cpu_per_answer(),
                "histogram": rows.iter().map(|(bound, count)| json!({"up_to_ms": bound, "answers": count})).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"load": what, "servers": servers})
}

/// Draws the latencies of all servers.
pub(super) fn svg(what: &str, all: &[Measured]) -> String {
    const WIDTH: f64 = 720.0;
    const LEFT: f64 = 110.0;
    const ROW: f64 = 18.0;
    let mut body = String::new();
    let mut y = 52.0;
    for (index, one) in all.iter().enumerate() {
        let colour = COLOURS.get(index % COLOURS.len()).copied().unwrap_or("black");
        let rate = format!(
            "{} ({:.0}/s, p50 {}, p99 {})",
            one.target,
            one.counted.rate(),
            time(one.counted.latencies.quantile(500)),
            time(one.counted.latencies.quantile(990))
        );
        let _ = writeln!(
            body,
            "  <text x=\"16\" y=\"{y}\" font-weight=\"bold\" fill=\"{colour}\">{}</text>",
            escaped(&rate)
        );
        y += 10.0;
        let rows = one.counted.latencies.rows();
        let most = rows.iter().map(|(_, count)| *count).max().unwrap_or_default().max(1);
        for (bound, count) in &rows {
            #[expect(clippy::cast_precision_loss, reason = "a length of a drawing")]
            let length = (WIDTH - LEFT - 100.0) * (*count as f64 / most as f64);
            let (middle, label, end) =
                (y + 13.0, escaped(&format!("≤ {}", time(*bound))), LEFT + length + 6.0);
            let _ = writeln!(
                body,
                "  <text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\">{label}</text>",
                LEFT - 8.0
            );
            let _ = writeln!(
                body,
                "  <rect x=\"{LEFT:.0}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{:.0}\" fill=\"{colour}\"/>",
                ROW - 4.0
            );
            let _ = writeln!(body, "  <text x=\"{end:.1}\" y=\"{middle:.0}\">{count}</text>");
            y += ROW;
        }
        y += 34.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{y:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n  \
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n  <text x=\"16\" y=\"24\" font-size=\"14\">{}</text>\n{body}</svg>\n",
        escaped(what)
    )
}

fn escaped(text: &str) -> String {
    let text = crate::text::clean(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::load::Counted;

    fn measured(target: &str, microseconds: std::ops::Range<u64>) -> Measured {
        let mut counted =
            Counted { time: Duration::from_secs(2), cpu: Some(Duration::from_secs(1)), ..Counted::default() };
        for value in microseconds {
            counted.latencies.add(Duration::from_micros(value));
        }
        Measured { target: target.to_owned(), server: Some("s 1".to_owned()), counted }
    }

    #[test]
    fn a_measurement_is_shown_three_ways() {
        let all = [measured("http://a/<b>&", 100..1100), measured("-- b", 1000..3000)];
        let narrow = text("tools", &all, Some(60));
        assert!(
            narrow.as_str().contains("\np99.9 ") && narrow.as_str().contains("\nper answer "),
            "{}",
            narrow.as_str()
        );
        let shown = text("tools, 4 at once", &all, None);
        let shown = shown.as_str();
        for part in [
            "http://a/<b>&  s 1",
            "≤ ",
            "█",
            "p99.9",
            "500/s",
            "0.50 cores",
            "1000.0 µs",
            "0.50 times the rate",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let json = json("tools", &all);
        assert_eq!(
            (&json["servers"][0]["answers"], &json["servers"][1]["rate"]),
            (&1000.into(), &1000.0.into())
        );
        let svg = svg("tools <4>", &all);
        assert!(
            svg.contains("tools &lt;4&gt;")
                && svg.contains("http://a/&lt;b&gt;&amp;")
                && svg.contains("<rect x="),
            "{svg}"
        );
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn times_have_three_digits() {
        for (ms, text) in [(0.123, "0.12 ms"), (12.34, "12.3 ms"), (1234.0, "1234 ms"), (12_345.0, "12.3 s")]
        {
            assert_eq!(time(ms), text);
        }
    }
}
