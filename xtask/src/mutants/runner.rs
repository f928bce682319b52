//! Runs a test binary until its first failure, which is all that a mutant needs to be killed.
//!
//! Cargo starts this program in place of the binary. A mutant often makes one test fail and another one wait indefinitely,
//! so without it many mutants would end by the timeout, as if no assertion had noticed them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::{Failure, process};

/// First argument of the command line that cargo starts.
pub(super) const OPTION: &str = "--runner";
/// Tests that run at the same time: those that wait indefinitely must not occupy every thread.
const THREADS: &str = "16";

/// Returns the option of cargo that has test binaries started by this program.
pub(super) fn configuration() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    Ok(format!(
        "--config=target.'cfg(all())'.runner=[{:?}, \"mutants\", \"{OPTION}\"]",
        program.display().to_string()
    ))
}

/// Runs a test binary with its arguments.
pub(super) fn run(line: &[String]) -> Result<(), Failure> {
    let [binary, arguments @ ..] = line else {
        return Err(Failure::Usage(format!("{OPTION} needs the path of a test binary")));
    };
    let failed = |error| {
        eprintln!("error: {binary}: {error}");
        Failure::Failed
    };
    let mut command = started(binary);
    command.args(arguments).env("RUST_TEST_THREADS", THREADS).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let line = line.map_err(failed)?;
        println!("{line}");
        if is_failure(&line) {
            // It can have ended meanwhile.
            let _ = child.kill();
            break;
        }
    }
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(()) } else { Err(Failure::Failed) }
}

/// Returns the command of a test binary. Where possible it ends with this program: cargo-mutants ends what takes too long with
/// a signal that tests of signals catch, and a loop without an end would then take the time of all mutants that follow.
fn started(binary: &str) -> Command {
    if !process::is_installed("setpriv") {
        return Command::new(binary);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", binary]);
    command
}

/// Returns whether a line of a test binary reports a failed test.
fn is_failure(line: &str) -> bool {
    line.starts_with("test ") && line.ends_with("... FAILED")
}

#[cfg(test)]
mod tests {
    use super::is_failure;

    #[test]
    #[cfg(unix)]
    fn the_first_failure_ends_the_binary() {
        use crate::Failure;
        let run = |script: &str| super::run(&["sh", "-c", script].map(str::to_owned));
        assert_eq!(run("echo 'test a ... ok'"), Ok(()));
        assert_eq!(run("echo 'test a ... ok'; exit 101"), Err(Failure::Failed));
        assert_eq!(run("echo 'test a ... FAILED'; exec sleep 600"), Err(Failure::Failed));
    }

    #[test]
    fn only_results_of_tests_are_failures() {
        assert!(is_failure("test a::b ... FAILED"));
        assert!(!is_failure("test a::b ... ok"));
        assert!(!is_failure("test result: FAILED. 1 passed; 1 failed"));
    }
}
