//! The verb that measures a server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Request;

/// A load, and where its result goes.
#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Requests that are in flight at once
    #[arg(long, short, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) concurrency: u16,
    /// Time of the measurement, for each server: `10s`, `500ms`, `2m`
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Measure this server too, in turns: a URL, a name in mcp.json, or `-- COMMAND` in quotes
    #[arg(long, value_name = "TARGET", allow_hyphen_values = true)]
    pub(crate) vs: Option<String>,
    /// Draw the latencies into a file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) request: Request,
}

/// Reads a duration of up to a day: a number with `ms`, `s` or `m`; without one it counts seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is written 10s, 500ms or 2m".to_owned();
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    let limits = Duration::from_millis(10)..=Duration::from_secs(24 * 60 * 60);
    if limits.contains(&duration) { Ok(duration) } else { Err("a time is between 10ms and a day".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, milliseconds) in [("10s", 10_000), ("500ms", 500), ("1.5m", 90_000), ("2", 2000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "s", "10h", "-1s", "1ms", "3000m", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
