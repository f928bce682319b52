//! Medians over several runs of all scenarios, as a table for a document.

use super::stats::{Medians, median, shown};

/// The medians of every run.
#[derive(Debug, Default)]
pub(super) struct Summary(Vec<Entry>);

/// All runs of one server in one scenario.
#[derive(Debug)]
struct Entry {
    scenario: &'static str,
    server: String,
    runs: Vec<Medians>,
}

impl Summary {
    /// Adds a run.
    pub(super) fn add(&mut self, scenario: &'static str, server: &str, medians: Medians) {
        match self.0.iter_mut().find(|entry| entry.scenario == scenario && entry.server == server) {
            Some(entry) => entry.runs.push(medians),
            None => self.0.push(Entry { scenario, server: server.to_owned(), runs: vec![medians] }),
        }
    }

    /// Formats one line per scenario: CPU time and latency of every server, and for those after the first one the ratio to
    /// the first, as a median and of each run.
    pub(super) fn table(&self) -> String {
        let scenarios = distinct(self.0.iter().map(|entry| entry.scenario));
        let servers = distinct(self.0.iter().map(|entry| &*entry.server));
        let Some((first, others)) = servers.split_first() else { return String::new() };
        let costs: Vec<_> = servers.iter().map(|server| format!(" {server} µs | p50 µs |")).collect();
        let compared: Vec<_> =
            others.iter().map(|server| format!(" **{server} / {first}** | each run |")).collect();
        let (costs, compared) = (costs.concat(), compared.concat());
        let mut lines = vec![
            format!("| scenario |{costs}{compared}"),
            format!("|---|{}{}", "---:|---:|".repeat(servers.len()), "---:|---|".repeat(others.len())),
        ];
        for scenario in scenarios {
            let costs: String = servers.iter().map(|server| times(self.runs(scenario, server))).collect();
            let compared: String = others.iter().map(|server| ratios(self.runs(scenario, server))).collect();
            lines.push(format!("| {scenario} |{costs}{compared}"));
        }
        lines.join("\n")
    }

    /// Returns the runs of a server in a scenario; none if it has no command for it, or failed.
    fn runs(&self, scenario: &str, server: &str) -> &[Medians] {
        let found = self.0.iter().find(|entry| entry.scenario == scenario && entry.server == server);
        found.map_or(&[], |entry| &entry.runs)
    }
}

fn times(runs: &[Medians]) -> String {
    let of = |value: fn(&Medians) -> Option<f64>| median(runs.iter().filter_map(value).collect());
    format!(" {} | {} |", shown(of(|run| run.cpu), 2), shown(of(|run| run.p50), 0))
}

fn ratios(runs: &[Medians]) -> String {
    let each: Vec<f64> = runs.iter().filter_map(|run| run.ratio).collect();
    let listed: Vec<String> = each.iter().map(|ratio| format!("{ratio:.2}")).collect();
    format!(" **{}** | {} |", shown(median(each), 2), listed.join(", "))
}

/// Returns the values without repetitions, in the order in which they first occur.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cpu: f64, ratio: f64) -> Medians {
        Medians { cpu: Some(cpu), ratio: Some(ratio), p50: Some(cpu * 10.0), ..Medians::default() }
    }

    #[test]
    fn a_line_has_the_medians_of_all_runs_and_a_dash_where_nothing_was_measured() {
        let mut summary = Summary::default();
        for ratio in [2.0, 4.0, 3.0] {
            summary.add("stdio", "floor", run(1.0, 1.0));
            summary.add("stdio", "ours", run(ratio, ratio));
            summary.add("http", "floor", run(5.0, 1.0));
        }
        let expected = "| scenario | floor µs | p50 µs | ours µs | p50 µs | **ours / floor** | each run |\n\
                        |---|---:|---:|---:|---:|---:|---|\n\
                        | stdio | 1.00 | 10 | 3.00 | 30 | **3.00** | 2.00, 4.00, 3.00 |\n\
                        | http | 5.00 | 50 | - | - | **-** |  |";
        assert_eq!(summary.table(), expected);
        assert_eq!(Summary::default().table(), "");
    }
}
