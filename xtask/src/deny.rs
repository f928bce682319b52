//! `cargo xtask deny`: `cargo deny check`, where cargo-deny is installed.
//!
//! It checks the dependencies against the published advisories, which requires the network. `cargo xtask tidy` checks
//! licences, sources and versions without it.

use crate::process::{self, CommandLine};
use crate::{Failure, no_arguments};

const CHECK: CommandLine = CommandLine { program: "cargo", arguments: &["deny", "check"], environment: &[] };

/// Runs the check. Fails if it finds anything, or if it cannot run.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("deny", arguments)?;
    if !process::is_installed("cargo-deny") {
        eprintln!(
            "error: NOTHING was checked: cargo-deny is not installed; `cargo install --locked cargo-deny` installs it"
        );
        return Err(Failure::Failed);
    }
    CHECK.run().map_err(|reason| {
        eprintln!("error: {}: {reason}", CHECK.shown());
        Failure::Failed
    })
}
