//! `cargo xtask bench`: the benchmarks, in their own profile and outside the test run.

use std::process::Command;

use crate::Failure;
use crate::process;

const PACKAGE: &str = "duplexer-bench";

/// Hands over to `cargo bench`, with the caller's arguments behind ours.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    if !process::root().join("benches").join("Cargo.toml").is_file() {
        eprintln!(
            "error: there is nothing to run yet: the package `{PACKAGE}` (folder benches/) does not exist"
        );
        return Err(Failure::Failed);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--locked", "--package", PACKAGE]).args(arguments);
    process::run(&mut cargo).map_err(|reason| {
        eprintln!("error: cargo bench failed: {reason}");
        Failure::Failed
    })
}
