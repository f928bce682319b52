//! Counts instructions with valgrind.

use std::process::Command;

/// Instructions of one call by a program that takes the number of calls as its last argument; `None` without valgrind.
///
/// Two runs of different lengths, so that what start-up costs cancels out.
pub fn instructions(program: &str, arguments: &[&str]) -> Option<u64> {
    let (few, many) = (1_000, 3_000);
    let total = |calls: u64| total(program, arguments, calls);
    Some((total(many)? - total(few)?) / (many - few))
}

fn total(program: &str, arguments: &[&str], calls: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program])
        .args(arguments)
        .arg(calls.to_string())
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}
