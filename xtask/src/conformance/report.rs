//! Parses the summary of the suite.
//!
//! The suite reports some failed scenarios, and some that could not run, as warnings. Here a warning is a failure.

use std::fmt;
use std::fs;
use std::path::Path;

/// Scenarios of a client that need OAuth. `client` decides what becomes of them.
const LOGIN: &str = "auth/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Warned,
    Failed,
}

/// One scenario of the suite.
#[derive(Debug, PartialEq, Eq)]
struct Scenario {
    name: String,
    verdict: Verdict,
    /// Passed and failed checks, as the suite prints them.
    checks: String,
    /// Reason why it is not scored.
    unscored: Option<String>,
}

impl Scenario {
    /// Scenarios that the suite does not score must pass too.
    fn must_hold(&self) -> bool {
        !self.name.starts_with(LOGIN)
    }
}

/// Every scenario of a run.
pub(super) struct Report(Vec<Scenario>);

impl Report {
    /// Reads the summary, the unscored scenarios and the warnings in the results.
    ///
    /// The folder of a scenario's results begins with `prefix` and its name.
    pub(super) fn read(output: &str, results: &Path, prefix: &str) -> Self {
        let summary = output.split_once("SUMMARY ===").map_or("", |(_, summary)| summary);
        let (scenarios, unscored) = summary.split_once("Not scored for").unwrap_or((summary, ""));
        let unscored: Vec<_> = unscored.lines().filter_map(|line| reason(marked(line)?.1)).collect();
        let scenario = |line: &str| {
            let (passed, rest) = marked(line)?;
            let (name, checks) = rest.split_once(": ")?;
            let why = unscored.iter().find(|(unscored, _)| *unscored == name).map(|(_, why)| *why);
            Some(Scenario {
                name: name.to_owned(),
                verdict: match passed {
                    false => Verdict::Failed,
                    true if lines(results, prefix, name).iter().any(|line| line == WARNING) => {
                        Verdict::Warned
                    }
                    true => Verdict::Passed,
                },
                checks: checks.to_owned(),
                unscored: why.map(str::to_owned),
            })
        };
        Self(scenarios.lines().filter_map(scenario).collect())
    }

    /// Returns the names of all scenarios.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|scenario| scenario.name.as_str())
    }

    /// Returns whether a scenario has passed without warnings, and whether it is scored.
    pub(super) fn passed(&self, name: &str) -> Option<(bool, bool)> {
        let scenario = self.0.iter().find(|scenario| scenario.name == name)?;
        Some((scenario.verdict == Verdict::Passed, scenario.unscored.is_none()))
    }

    fn failed(&self) -> impl Iterator<Item = &Scenario> {
        self.0.iter().filter(|scenario| scenario.must_hold() && scenario.verdict != Verdict::Passed)
    }

    /// Succeeds if all scenarios of the revision ran and the required ones passed.
    pub(super) fn verdict(&self, scored: usize, unscored: usize) -> Result<(), String> {
        let held = self.0.iter().filter(|scenario| scenario.must_hold());
        let (was_scored, was_not): (Vec<_>, Vec<_>) = held.partition(|scenario| scenario.unscored.is_none());
        if was_scored.len() != scored || was_not.len() != unscored {
            let seen = format!("{} scored and {} other scenarios", was_scored.len(), was_not.len());
            return Err(format!("{seen} were run, and there are {scored} and {unscored}"));
        }
        let failed: Vec<&str> = self.failed().map(|scenario| scenario.name.as_str()).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    /// Returns the details of the failed scenarios.
    pub(super) fn complaints(&self, results: &Path) -> String {
        let complaint = |scenario: &Scenario| {
            let lines = lines(results, "server-", &scenario.name);
            let about =
                lines.iter().filter(|line| line.starts_with(COMPLAINT)).map(|line| format!("  {line}"));
            format!("\n{}:\n{}\n", scenario.name, about.collect::<Vec<_>>().join("\n"))
        };
        self.failed().map(complaint).collect()
    }
}

/// Parses a line that begins with the mark of a verdict.
fn marked(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    let passed = line.strip_prefix("✓ ").map(|rest| (true, rest));
    passed.or_else(|| line.strip_prefix("✗ ").map(|rest| (false, rest)))
}

/// `name (why it is not scored)`
fn reason(line: &str) -> Option<(&str, &str)> {
    let (name, why) = line.split_once(" (")?;
    Some((name, why.strip_suffix(')')?))
}

const WARNING: &str = r#""status": "WARNING","#;
const COMPLAINT: &str = r#""errorMessage": "#;

/// The suite writes one JSON member per line, so that a text search is enough.
fn lines(results: &Path, prefix: &str, scenario: &str) -> Vec<String> {
    let folders = fs::read_dir(results).into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = name.strip_prefix(prefix).and_then(|name| name.strip_prefix(scenario));
        // The time follows: the name of a scenario can be a prefix of another one.
        rest.is_some_and(|rest| rest.starts_with("-2"))
    };
    let texts = folders.filter(|path| ours(path)).map(|path| fs::read_to_string(path.join("checks.json")));
    let texts: Vec<String> = texts.flatten().collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scored, unscored): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|scenario| scenario.unscored.is_none());
        for (title, scenarios) in [("scored", scored), ("not scored", unscored)] {
            let passed = scenarios.iter().filter(|scenario| scenario.verdict == Verdict::Passed).count();
            writeln!(out, "\n{title}: {passed} of {} scenarios passed", scenarios.len())?;
            for scenario in scenarios {
                let verdict = match (scenario.verdict, scenario.must_hold()) {
                    (Verdict::Passed, _) => "passed",
                    (Verdict::Warned, true) => "WARNED",
                    (Verdict::Failed, true) => "FAILED",
                    (Verdict::Warned, false) => "warned",
                    (Verdict::Failed, false) => "failed",
                };
                let why = scenario.unscored.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
                writeln!(out, "  {verdict}  {:<46} {}{why}", scenario.name, scenario.checks)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Report, Verdict};

    fn read(output: &str) -> Report {
        Report::read(output, Path::new("no results"), "server-")
    }

    const OUTPUT: &str = "✓ noise: 1 passed, 0 failed\n
=== SUMMARY ===
✓ tools-list: 4 passed, 0 failed
✗ caching: 7 passed, 1 failed
✗ auth/dpop: 1 passed, 8 failed
✓ json-schema-2020-12: 8 passed, 0 failed

Total: 20 passed, 9 failed

Not scored for 2026-07-28: 2 scenario(s) run, 1 failing. These do not affect conformance.
  ✗ auth/dpop (extension)
  ✓ json-schema-2020-12 (pending)
";

    #[test]
    fn only_what_is_scored_fails_the_run() {
        assert_eq!(read(OUTPUT).verdict(2, 1), Err("failed: caching".to_owned()));
        let better = OUTPUT.replace("✗ caching", "✓ caching");
        assert_eq!(read(&better).verdict(2, 1), Ok(()));
    }

    #[test]
    fn what_we_hold_ourselves_to_fails_the_run_as_well() {
        let output = OUTPUT.replace("✗ caching", "✓ caching").replace("✓ json", "✗ json");
        assert_eq!(read(&output).verdict(2, 1), Err("failed: json-schema-2020-12".to_owned()));
    }

    #[test]
    fn a_run_that_scored_too_little_has_failed() {
        assert!(read("").verdict(37, 3).is_err());
        assert!(read(OUTPUT).verdict(3, 1).is_err_and(|reason| reason.contains("2 scored and 1 other")));
    }

    #[test]
    fn the_table_tells_scored_from_unscored() {
        let table = read(OUTPUT).to_string();
        assert!(table.contains("\nscored: 1 of 2 scenarios passed"), "{table}");
        assert!(table.contains("  FAILED  caching "), "{table}");
        assert!(table.contains("  failed  auth/dpop "), "{table}");
    }

    #[test]
    fn a_warning_fails_what_must_hold() {
        let results = std::env::temp_dir().join(format!("conformance-report-{}", std::process::id()));
        let scenario = results.join("server-tools-list-2026-07-28T00-00-00");
        std::fs::create_dir_all(&scenario).unwrap();
        std::fs::write(scenario.join("checks.json"), "[{\n  \"status\": \"WARNING\",\n}]").unwrap();
        let report = Report::read(OUTPUT, &results, "server-");
        std::fs::remove_dir_all(&results).unwrap();
        assert_eq!(report.0[0].verdict, Verdict::Warned);
        assert_eq!(report.verdict(2, 1), Err("failed: tools-list, caching".to_owned()));
    }
}
