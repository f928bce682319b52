//! Virtual environments with pinned Python packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{run, target};

/// Creates a virtual environment with exactly the packages in `requirements`, and again only when they change.
pub(crate) fn environment(name: &str, requirements: &Path) -> Result<PathBuf, String> {
    let wanted =
        fs::read_to_string(requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let environment = target().join("interop").join(name);
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
