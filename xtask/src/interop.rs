//! `cargo xtask interop`: the official clients against our servers.
//!
//! Each suite installs what it needs by pinned versions below `target/interop`, and again only when the pins change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{built, root, run, target};
use crate::{Failure, no_arguments};

/// Runs every suite.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("interop", arguments)?;
    python().map_err(|reason| {
        eprintln!("interop: {reason}");
        Failure::Failed
    })
}

/// The official Python client drives the server over its standard streams, in both eras.
pub(crate) fn python() -> Result<(), String> {
    let suite = root().join("interop").join("python");
    let environment = installed(&suite.join("requirements.txt"))?;
    let server = built("duplexer-interop", "interop-server")?;
    run(Command::new(environment.join("bin").join("python")).arg(suite.join("drive.py")).arg(server))
}

/// A virtual environment with exactly what `requirements` names.
fn installed(requirements: &Path) -> Result<PathBuf, String> {
    let wanted =
        fs::read_to_string(requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let environment = target().join("interop").join("python");
    let marker = environment.join("installed.txt");
    if fs::read_to_string(&marker).is_ok_and(|present| present == wanted) {
        return Ok(environment);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = environment.join("bin").join("pip");
    run(Command::new(pip)
        .args(["install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(requirements))?;
    fs::write(&marker, wanted).map_err(|error| format!("{}: {error}", marker.display()))?;
    Ok(environment)
}
