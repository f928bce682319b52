//! The licences of the dependencies, as cargo reports them.
//!
//! Cargo.lock has no licences, so they come from the downloaded packages. Nothing is downloaded here: packages of other
//! platforms are usually absent, and a clean clone has none at all.

use std::process::Command;

use crate::process;

/// Name of the report among the files of the tree. Each line has a package, a bar and a licence expression.
pub(super) const REPORT: &str = "cargo-tree";

/// Returns the report, or `None` if the dependencies are not downloaded. Prints a note about everything left out.
pub(super) fn read() -> Option<String> {
    if let Some(report) = cargo_tree(&["--target", "all"]) {
        return Some(report);
    }
    let report = cargo_tree(&[]);
    match report {
        Some(_) => println!("note: licences of packages for other platforms are not checked: not downloaded"),
        None => println!("note: NO licence is checked: the dependencies are not downloaded"),
    }
    report
}

fn cargo_tree(platforms: &[&str]) -> Option<String> {
    let mut cargo = Command::new(process::program("cargo"));
    cargo.args(["tree", "--workspace", "--all-features", "--locked", "--offline", "--prefix", "none"]);
    cargo.args(["--edges", "normal,build,dev", "--format", "{p}|{l}"]).args(platforms);
    let output = cargo.current_dir(process::root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
