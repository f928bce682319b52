//! Throughput and latency by the number of connections, beside the floor.
//!
//! The program `load` of the package `duplexer-bench` measures: both servers run, and are loaded in turn in short slices.

use std::process::Command;

use super::figures::Figures;
use crate::load::Fault;
use crate::process::{self, PACKAGE_OF_BENCHES};

/// Beginning of the names of the scenarios; the rest is the number of connections.
const SCENARIOS: &str = "http-connections-";
/// Servers: name, program, options.
const SERVERS: [(&str, &str, &str); 2] =
    [("floor", "floor", "http {port}"), ("duplexer", "bench-server", "http {port}")];

pub(super) fn measure(figures: &mut Figures) -> Result<(), Fault> {
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["load", "floor", "bench-server"]).map_err(Fault)?;
    let mut load = Command::new(folder.join("load"));
    for (name, program, options) in SERVERS {
        let path = folder.join(program);
        load.arg("--beside").arg(format!("{name}:http='{}' {options}", path.display()));
    }
    let output = load.arg(SCENARIOS).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    if !output.status.success() {
        return Err(Fault(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    for row in text.lines().filter_map(Row::read) {
        figures.put(&format!("connections.{}.rate", row.server), row.connections, row.rate / 1000.0);
        figures.put(&format!("connections.{}.p99", row.server), row.connections, row.p99 / 1000.0);
    }
    Ok(())
}

/// One line of the table that the program prints.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    server: &'a str,
    connections: u32,
    /// Requests per second.
    rate: f64,
    /// 99th percentile of the latency, in µs.
    p99: f64,
}

impl<'a> Row<'a> {
    /// Returns `None` for a line of another kind.
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, scenario, server, _, _, rate, _, p99, _] = cells[..] else { return None };
        Some(Self {
            server,
            connections: scenario.strip_prefix(SCENARIOS)?.parse().ok()?,
            rate: rate.parse().ok()?,
            p99: p99.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn a_line_of_the_table_is_read_and_its_head_is_not() {
        let line = "| http-connections-64    | duplexer     |   29.10 |     1.42 |       30211 |   1900.0 |   5061.0 |";
        let row = Row { server: "duplexer", connections: 64, rate: 30_211.0, p99: 5061.0 };
        assert_eq!(Row::read(line), Some(row));
        for other in [
            "| scenario               | server       |  CPU us |  / first |  per second |   p50 us |   p99 us |",
            "|------------------------|--------------|--------:|---------:|------------:|---------:|---------:|",
            "| http-connections-64    | duplexer     | FAILED: it does not answer |",
            "",
        ] {
            assert_eq!(Row::read(other), None, "{other}");
        }
    }
}
