//! npm packages, pinned by a lockfile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{program, root, run};

/// Installs the packages of a lockfile, unless they are installed already.
pub(crate) fn installed(folder: &str) -> Result<Packages, String> {
    let folder = root().join(folder);
    let lockfile = folder.join("package-lock.json");
    let wanted = fs::read_to_string(&lockfile).map_err(|error| format!("{}: {error}", lockfile.display()))?;
    let packages = Packages(folder.join("node_modules"));
    let marker = packages.0.join(".installed");
    if fs::read_to_string(&marker).is_ok_and(|present| present == wanted) {
        return Ok(packages);
    }
    // Packages must not run install scripts.
    let options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run(Command::new("npm").arg("ci").args(options).arg("--prefix").arg(&folder))?;
    fs::write(&marker, wanted).map_err(|error| format!("{}: {error}", marker.display()))?;
    Ok(packages)
}

/// A folder of installed packages.
pub(crate) struct Packages(PathBuf);

impl Packages {
    /// Runs a script with the Node of the packages, or of the machine.
    pub(crate) fn node(&self, script: impl AsRef<Path>) -> Command {
        let own = self.0.join(".bin").join("node");
        let node = if own.exists() { own.into() } else { program("node") };
        let mut command = Command::new(node);
        command.arg(script.as_ref());
        command
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}
