//! The sums of several seeds, as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::history::Fault;
use super::report::{Explained, Kind, Report, Tally};

/// The sums of several reports.
#[derive(Debug, Default)]
pub struct Summary {
    pub(super) seeds: Vec<u64>,
    pub(super) tallies: BTreeMap<Fault, Tally>,
    pub(super) findings: BTreeMap<Kind, usize>,
    pub(super) times: BTreeMap<&'static str, Vec<Duration>>,
}

impl Summary {
    /// Adds a report.
    pub fn add(&mut self, report: &Report) {
        report.add_to(self);
    }

    /// Returns the table of the faults, and the counters of what must never happen, in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| fault | times | completed | 503, sent again | connection broken | not stored | `node_lost` | session gone \
             | slowest echo, session | slowest echo, envelope |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for (fault, tally) in &self.tallies {
            let [session, envelope] = tally.slowest.map(|time| time.as_secs_f64());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} | {} | {session:.2} s | {envelope:.2} s |",
                fault.name(),
                tally.times,
                tally.completed,
                tally.refused,
                tally.explained(Explained::Broken),
                tally.explained(Explained::NotStored),
                tally.explained(Explained::NodeLost),
                tally.explained(Explained::SessionGone),
            );
        }
        let counter =
            |kind: &Kind| format!("{} {}", kind.name(), self.findings.get(kind).copied().unwrap_or_default());
        let counters: Vec<String> = Kind::ALL.iter().map(counter).collect();
        let completed: usize = self.tallies.values().map(|tally| tally.completed).sum();
        let _ = writeln!(
            text,
            "\n{} seeds, {completed} actions completed; {}.",
            self.seeds.len(),
            counters.join(", ")
        );
        for (what, times) in &self.times {
            let mut times = times.clone();
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
            let _ = writeln!(
                text,
                "\nTime of a {what}: median {:.0} ms, 99th percentile {:.0} ms, at most {:.0} ms ({} times).",
                at(50),
                at(99),
                at(100),
                times.len()
            );
        }
        text
    }
}
