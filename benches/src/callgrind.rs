//! Counts instructions with valgrind.

use std::path::Path;
use std::process::{Command, Stdio};

/// Calls of the shorter of two runs, enough as a warm-up.
const FEW: u64 = 50;

/// Returns whether valgrind is installed.
pub fn is_installed() -> bool {
    let quiet =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Counts the instructions of one call of a program that takes a case and the number of calls; `None` on failure.
///
/// Compares two runs that differ by `calls`, so that the cost of start-up cancels out.
pub fn instructions(program: &Path, case: &str, calls: u64) -> Option<u64> {
    let total = |calls: u64| total(program, case, calls);
    Some(total(FEW + calls)?.checked_sub(total(FEW)?)? / calls)
}

fn total(program: &Path, case: &str, calls: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([case, &calls.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find(|line| line.contains("Collected :"))?;
    let counted = line.rsplit(' ').next()?.parse().ok()?;
    output.status.success().then_some(counted)
}
