//! What `doctor` has checked and found.

use duplexer::types::text::is_invisible;

use super::rules::{Rule, Severity};

/// Maximum findings of one rule that are kept; others are counted.
const MAX_FINDINGS: usize = 8;
/// Maximum characters of a finding.
const MAX_CHARACTERS: usize = 500;

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) rule: &'static Rule,
    /// What was seen, in one line.
    pub(crate) seen: String,
}

/// Findings of a rule beyond those that are kept.
#[derive(Clone, Copy, Debug)]
struct Count {
    rule: &'static Rule,
    found: usize,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) target: String,
    /// Name and version of the server, as it says.
    pub(crate) server: Option<String>,
    /// Median time of a request that needs no work, in milliseconds.
    pub(crate) median: Option<f64>,
    pub(crate) findings: Vec<Finding>,
    counts: Vec<Count>,
}

impl Report {
    pub(crate) fn new(target: impl Into<String>) -> Self {
        Self { target: target.into(), ..Self::default() }
    }

    /// Notes that a rule was checked, and a finding if it does not hold.
    pub(crate) fn expect(&mut self, rule: &'static Rule, holds: bool, seen: impl FnOnce() -> String) {
        if holds {
            self.count(rule, 0);
        } else {
            self.find(rule, seen());
        }
    }

    /// Notes that a rule was checked and holds.
    pub(crate) fn pass(&mut self, rule: &'static Rule) {
        self.count(rule, 0);
    }

    /// Adds a finding. The same finding is added once.
    pub(crate) fn find(&mut self, rule: &'static Rule, seen: impl AsRef<str>) {
        let finding = Finding { rule, seen: line(seen.as_ref()) };
        if self.findings.contains(&finding) {
            return;
        }
        if self.count(rule, 1) <= MAX_FINDINGS {
            self.findings.push(finding);
        }
    }

    fn count(&mut self, rule: &'static Rule, more: usize) -> usize {
        if let Some(count) = self.counts.iter_mut().find(|count| count.rule == rule) {
            count.found += more;
            return count.found;
        }
        self.counts.push(Count { rule, found: more });
        more
    }

    /// Returns the rules that were checked, in the order in which they were first checked.
    pub(crate) fn checked(&self) -> impl Iterator<Item = &'static Rule> {
        self.counts.iter().map(|count| count.rule)
    }

    /// Returns how many findings of a rule were not kept.
    pub(crate) fn omitted(&self, rule: &'static Rule) -> usize {
        let found = self.counts.iter().find(|count| count.rule == rule).map_or(0, |count| count.found);
        found.saturating_sub(MAX_FINDINGS)
    }

    /// Returns the number of findings of a severity, with those that were not kept.
    pub(crate) fn number(&self, severity: Severity) -> usize {
        let counts = self.counts.iter().filter(|count| count.rule.severity == severity);
        counts.map(|count| count.found).sum()
    }

    /// Returns the findings, the most severe first.
    pub(crate) fn sorted(&self) -> Vec<&Finding> {
        let mut findings: Vec<_> = self.findings.iter().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.rule.severity));
        findings
    }
}

/// Returns a text as one line of limited length, without characters that control, reorder or hide text.
fn line(text: &str) -> String {
    let mut line = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == MAX_CHARACTERS {
            line.push('…');
            break;
        }
        if character.is_control() || is_invisible(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::rules;
    use super::*;

    #[test]
    fn findings_are_counted_bounded_and_sorted() {
        let mut report = Report::new("t");
        report.pass(rules::PING);
        report.find(rules::LATENCY, "slow");
        for number in 0..20 {
            report.find(rules::TOOL_NAME, format!("name {number}"));
            // The same again.
            report.find(rules::TOOL_NAME, "name 0");
        }
        report.expect(rules::PING, false, || "no\u{1b}[2J answer".to_owned());
        assert_eq!((report.findings.len(), report.omitted(rules::TOOL_NAME)), (10, 12));
        let numbers = [Severity::Error, Severity::Warning, Severity::Info].map(|level| report.number(level));
        assert_eq!(numbers, [1, 20, 1]);
        let first = report.sorted()[0];
        assert_eq!(first.rule, rules::PING);
        assert!(!first.seen.contains('\u{1b}'), "{}", first.seen);
        let checked: Vec<_> = report.checked().map(|rule| rule.id).collect();
        assert_eq!(checked, ["ping-answer", "latency", "tool-name"]);
    }
}
