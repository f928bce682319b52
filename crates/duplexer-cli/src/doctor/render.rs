//! A report as text, as JSON, and as `JUnit` XML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::report::Report;
use super::rules::{Rule, Severity};
use crate::text::{Style, Text, lines, wrapped};

/// Width of the labels in front of the lines of a finding.
const LABEL: usize = 10;
/// Minimum columns of the text next to them.
const MIN_COLUMNS: usize = 40;

/// Formats a report for people.
pub(super) fn text(report: &Report, columns: Option<usize>) -> Text {
    let mut head = Text::new().then(Style::Heading, &report.target);
    if let Some(server) = &report.server {
        head.push(Style::Plain, &format!("  {server}"));
    }
    let mut all = vec![head, Text::new()];
    let mut last: Option<&'static Rule> = None;
    for finding in report.sorted() {
        if last.is_some_and(|rule| rule != finding.rule) {
            close(report, last, columns, &mut all);
        }
        if last != Some(finding.rule) {
            all.push(heading(finding.rule));
            last = Some(finding.rule);
        }
        labelled("seen", &finding.seen, columns, &mut all);
    }
    close(report, last, columns, &mut all);
    all.push(Text::plain(summary(report)));
    lines(all)
}

fn heading(rule: &Rule) -> Text {
    let style = match rule.severity {
        Severity::Error => Style::Error,
        Severity::Warning => Style::Literal,
        Severity::Info => Style::Faint,
    };
    Text::new()
        .then(style, format!("{:<LABEL$}", rule.severity.as_str()))
        .then(Style::Name, rule.id)
        .then(Style::Plain, format!(": {}", rule.title))
}

/// Ends the part of a rule: how many more there are, what to change, and where the rule is.
fn close(report: &Report, rule: Option<&'static Rule>, columns: Option<usize>, all: &mut Vec<Text>) {
    let Some(rule) = rule else { return };
    let omitted = report.omitted(rule);
    if omitted > 0 {
        labelled("", &format!("and {omitted} more"), columns, all);
    }
    labelled("change", rule.remedy, columns, all);
    labelled("rule", rule.link, None, all);
    all.push(Text::new());
}

fn labelled(label: &str, text: &str, columns: Option<usize>, all: &mut Vec<Text>) {
    let width = columns.map(|columns| columns.saturating_sub(LABEL).max(MIN_COLUMNS));
    let parts = width.map_or_else(|| vec![text.to_owned()], |width| wrapped(text, width));
    for (index, part) in parts.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        all.push(Text::new().then(Style::Faint, format!("  {label:<8}")).then(Style::Plain, part));
    }
}

fn summary(report: &Report) -> String {
    let counted = |severity: Severity, one: &str, many: &str| match report.number(severity) {
        1 => format!("1 {one}"),
        number => format!("{number} {many}"),
    };
    let median =
        report.median.map(|median| format!(" with a median latency of {median:.1} ms")).unwrap_or_default();
    format!(
        "{}, {}, {}; {} rules checked{median}",
        counted(Severity::Error, "error", "errors"),
        counted(Severity::Warning, "warning", "warnings"),
        counted(Severity::Info, "note", "notes"),
        report.checked().count()
    )
}

/// Formats a report as JSON.
pub(super) fn json(report: &Report) -> Value {
    let findings: Vec<Value> = report
        .sorted()
        .iter()
        .map(|finding| {
            let rule = finding.rule;
            json!({
                "rule": rule.id, "severity": rule.severity.as_str(), "title": rule.title, "seen": finding.seen,
                "change": rule.remedy, "link": rule.link,
            })
        })
        .collect();
    let omitted: serde_json::Map<String, Value> = report
        .checked()
        .filter(|rule| report.omitted(rule) > 0)
        .map(|rule| (rule.id.to_owned(), report.omitted(rule).into()))
        .collect();
    json!({
        "target": report.target,
        "server": report.server,
        "errors": report.number(Severity::Error),
        "warnings": report.number(Severity::Warning),
        "infos": report.number(Severity::Info),
        "median_ms": report.median,
        "checked": report.checked().map(|rule| rule.id).collect::<Vec<_>>(),
        "findings": findings,
        "omitted": omitted,
    })
}

/// Formats a report as `JUnit` XML: one test case per rule, which fails from the severity `fails` on.
pub(super) fn junit(report: &Report, fails: Severity) -> String {
    let is_failure = |rule: &Rule| rule.severity >= fails;
    let violated = |rule: &'static Rule| report.findings.iter().any(|finding| finding.rule == rule);
    let failures = report.checked().filter(|rule| is_failure(rule) && violated(rule)).count();
    let tests = report.checked().count();
    let name = escaped(&format!("duplexer doctor {}", report.target));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" failures=\"{failures}\">\n  \
         <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n"
    );
    for rule in report.checked() {
        let class = escaped(&report.target);
        let _ =
            write!(xml, "    <testcase classname=\"{class}\" name=\"{}: {}\"", rule.id, escaped(rule.title));
        let seen: Vec<&str> = report
            .findings
            .iter()
            .filter(|finding| finding.rule == rule)
            .map(|finding| &*finding.seen)
            .collect();
        if seen.is_empty() {
            xml.push_str("/>\n");
            continue;
        }
        let omitted = report.omitted(rule);
        let more = if omitted > 0 { format!("\nand {omitted} more") } else { String::new() };
        let body =
            escaped(&format!("{}{more}\nchange: {}\nrule: {}", seen.join("\n"), rule.remedy, rule.link));
        let level = rule.severity.as_str();
        if is_failure(rule) {
            let message = escaped(seen.first().copied().unwrap_or_default());
            let _ = writeln!(
                xml,
                ">\n      <failure type=\"{level}\" message=\"{message}\">{body}</failure>\n    </testcase>"
            );
        } else {
            let _ = writeln!(xml, ">\n      <system-out>{level}: {body}</system-out>\n    </testcase>");
        }
    }
    xml.push_str("  </testsuite>\n</testsuites>");
    xml
}

/// Escapes text for XML, also in attributes. Characters that XML cannot express are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::rules;
    use super::*;

    fn report() -> Report {
        let mut report = Report::new("http://a/<mcp>?b&\"c\"");
        report.server = Some("s 1".to_owned());
        report.median = Some(1.25);
        report.pass(rules::PING);
        report.find(rules::TOOL_NAME, "`a<b` & \u{1b}[2J");
        report.find(rules::ENDPOINT, "404");
        report
    }

    #[test]
    fn a_report_is_readable() {
        let report = report();
        let shown = text(&report, Some(80));
        let shown = shown.as_str();
        assert!(
            shown.starts_with("http://a/<mcp>?b&\"c\"  s 1\n\nerror     endpoint: there is an MCP endpoint"),
            "{shown}"
        );
        assert!(shown.contains("\n  seen    404\n  change  use the path"), "{shown}");
        assert!(
            shown.ends_with("1 error, 1 warning, 0 notes; 3 rules checked with a median latency of 1.2 ms"),
            "{shown}"
        );
        assert!(shown.lines().all(|line| line.len() <= 80 || line.contains("https://")), "{shown}");
    }

    #[test]
    fn json_has_every_finding() {
        let json = json(&report());
        assert_eq!((&json["errors"], &json["warnings"], &json["infos"]), (&1.into(), &1.into(), &0.into()));
        assert_eq!(json["median_ms"], 1.25);
        assert_eq!(json["findings"][0]["rule"], "endpoint");
        assert_eq!(json["findings"][1]["seen"], "`a<b` & \\u{1b}[2J");
        assert_eq!(json["checked"], serde_json::json!(["ping-answer", "tool-name", "endpoint"]));
    }

    #[test]
    fn xml_is_escaped_and_counts_failures() {
        let xml = junit(&report(), Severity::Error);
        assert!(
            xml.contains(
                "name=\"duplexer doctor http://a/&lt;mcp&gt;?b&amp;&quot;c&quot;\" tests=\"3\" failures=\"1\""
            ),
            "{xml}"
        );
        assert!(xml.contains("<failure type=\"error\" message=\"404\">"), "{xml}");
        assert!(xml.contains("<system-out>warning: `a&lt;b` &amp; \\u{1b}[2J"), "{xml}");
        assert!(junit(&report(), Severity::Warning).contains("failures=\"2\""));
        assert_eq!(escaped("a\u{1b}\u{0}b"), "a\u{fffd}\u{fffd}b");
    }
}
