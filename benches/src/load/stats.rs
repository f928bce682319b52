//! Medians, percentiles, ratios, and the table they are printed in.

use std::time::Duration;

use super::Slice;

impl Slice {
    /// Cost of a unit, in microseconds.
    pub(super) fn cpu_per_unit(&self) -> f64 {
        per_unit(self.cpu, self.units)
    }

    fn rate(&self) -> f64 {
        self.units as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

fn per_unit(cpu: Duration, units: u64) -> f64 {
    cpu.as_secs_f64() * 1e6 / units.max(1) as f64
}

/// Number of rounds.
pub(super) fn rounds(seconds: u32, servers: usize, slice: Duration) -> usize {
    let all = slice.as_millis() * servers.max(1) as u128;
    let rounds = usize::try_from(u128::from(seconds) * 1000 / all.max(1)).unwrap_or(usize::MAX);
    // A median needs at least this many.
    rounds.max(3)
}

/// Returns the median, if there are values.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => values.get(middle).copied(),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Returns a percentile.
fn percentile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// Returns the median of the ratios of each round.
fn ratio(ours: &[f64], floor: &[f64]) -> Option<f64> {
    let pairs = ours.iter().zip(floor).filter(|(_, floor)| **floor > 0.0);
    median(pairs.map(|(ours, floor)| ours / floor).collect())
}

/// Returns the header of the table.
pub(super) const HEADER: &str = concat!(
    "| scenario               | server       |  CPU us |  / first |  per second |   p50 us |   p99 us |\n",
    "|------------------------|--------------|--------:|---------:|------------:|---------:|---------:|"
);

/// The medians of one server in one run of a scenario. Times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Medians {
    pub(super) cpu: Option<f64>,
    /// CPU time relative to the first server.
    pub(super) ratio: Option<f64>,
    rate: Option<f64>,
    pub(super) p50: Option<f64>,
    p99: Option<f64>,
}

impl Medians {
    pub(super) fn of(slices: &[Slice], first: &[f64]) -> Self {
        let cpu: Vec<f64> = slices.iter().map(Slice::cpu_per_unit).collect();
        let mut latencies: Vec<Duration> =
            slices.iter().flat_map(|slice| slice.latencies.iter().copied()).collect();
        latencies.sort_unstable();
        let latency = |percent| percentile(&latencies, percent).map(|found| found.as_secs_f64() * 1e6);
        Self {
            ratio: ratio(&cpu, first),
            cpu: median(cpu),
            rate: median(slices.iter().map(Slice::rate).collect()),
            p50: latency(50),
            p99: latency(99),
        }
    }
}

/// Formats a number, or a dash if there is none.
pub(super) fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// Formats the line of a server, with its cost relative to the first server.
pub(super) fn row(scenario: &str, server: &str, medians: &Medians) -> String {
    let Medians { cpu, ratio, rate, p50, p99 } = *medians;
    format!(
        "| {scenario:<22} | {server:<12} | {:>7} | {:>8} | {:>11} | {:>8} | {:>8} |",
        shown(cpu, 2),
        shown(ratio, 2),
        shown(rate, 0),
        shown(p50, 1),
        shown(p99, 1),
    )
}

/// Formats the line of a failed server.
pub(super) fn failed_row(scenario: &str, server: &str, reason: &str) -> String {
    format!("| {scenario:<22} | {server:<12} | FAILED: {reason} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle_however_many_there_are() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    /// A slow round slows both servers, and the ratio stays.
    #[test]
    fn a_ratio_is_taken_round_by_round() {
        assert_eq!(ratio(&[2.0, 20.0, 2.2], &[1.0, 10.0, 1.0]), Some(2.0));
        assert_eq!(ratio(&[2.0], &[0.0]), None, "nothing was measured");
        assert_eq!(ratio(&[], &[]), None);
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&sorted, 50), Some(Duration::from_micros(100)));
        assert_eq!(percentile(&sorted, 99), Some(Duration::from_micros(198)));
        assert_eq!(percentile(&sorted[..1], 99), Some(Duration::from_micros(1)));
        assert_eq!(percentile(&[], 99), None);
    }

    #[test]
    fn time_is_shared_among_the_servers_and_is_enough_for_a_median() {
        assert_eq!(rounds(6, 2, Duration::from_millis(150)), 20);
        assert_eq!(rounds(6, 4, Duration::from_millis(150)), 10);
        assert_eq!(rounds(0, 2, Duration::from_millis(150)), 3);
        assert_eq!(rounds(1, 0, Duration::from_millis(500)), 3);
    }

    #[test]
    fn a_row_has_a_cell_for_every_heading() {
        let slice = |cpu| Slice {
            latencies: vec![Duration::from_micros(5); 10],
            took: Duration::from_secs(1),
            cpu: Duration::from_micros(cpu),
            units: 10,
        };
        let line = row("s", "a", &Medians::of(&[slice(30), slice(40)], &[1.0, 1.0]));
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells, ["", "s", "a", "3.50", "3.50", "10", "5.0", "5.0", ""]);
        let headings = HEADER.lines().next().unwrap();
        assert_eq!(headings.split('|').count(), cells.len());
    }
}
