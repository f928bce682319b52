//! `cargo xtask interop`: the official clients against our servers.
//!
//! Each suite installs what it needs by pinned versions below `target/interop`, and again only when the pins change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{built, root, run, target};
use crate::server::Server;
use crate::{Failure, no_arguments, npm};

/// Runs every suite.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("interop", arguments)?;
    python().and_then(|()| typescript()).map_err(|reason| {
        eprintln!("interop: {reason}");
        Failure::Failed
    })
}

/// The official Python client drives the server over its standard streams, over HTTP, also as old clients do, and through
/// OAuth.
pub(crate) fn python() -> Result<(), String> {
    let suite = root().join("interop").join("python");
    let environment = installed(&suite.join("requirements.txt"))?;
    let server = built("duplexer-interop", "interop-server")?;
    let python = |script: &str| {
        let mut command = Command::new(environment.join("bin").join("python"));
        command.arg(suite.join(script));
        command
    };
    run(python("drive.py").arg(&server))?;
    let listening = Server::start(&server, &["http", "0"])?;
    run(python("drive.py").arg(listening.url()))?;
    let guarded = Server::start(&server, &["http", "0", "--auth"])?;
    run(python("oauth.py").arg(guarded.url()))
}

/// The official TypeScript client drives the server over HTTP.
pub(crate) fn typescript() -> Result<(), String> {
    let suite = "interop/ts";
    let packages = npm::installed(suite)?;
    let listening = Server::start(&built("duplexer-interop", "interop-server")?, &["http", "0"])?;
    run(packages.node(root().join(suite).join("drive.js")).arg(listening.url()))
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
