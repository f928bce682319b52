//! Runs other programs, and formats their command lines.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A command line that can be run and printed.
#[derive(Clone, Copy)]
pub(crate) struct CommandLine {
    pub(crate) program: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

impl CommandLine {
    /// Runs it in the root of the repository with the output of this process. `Err` describes the failure.
    pub(crate) fn run(&self) -> Result<(), String> {
        run(&mut self.command())
    }

    /// Returns the command, to be changed before it is run.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(program(self.program));
        command.args(self.arguments).envs(self.environment.iter().copied());
        command
    }

    /// Returns the command line as a user types it.
    pub(crate) fn shown(&self) -> String {
        let mut words = Vec::new();
        for (name, value) in self.environment {
            words.push(format!("{name}=\"{value}\""));
        }
        words.push(self.program.to_owned());
        words.extend(self.arguments.iter().map(|argument| (*argument).to_owned()));
        words.join(" ")
    }
}

/// Runs a prepared command in the root of the repository and waits for it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(format!("could not start {}: {error}", command.get_program().display())),
    }
}

/// Returns whether a prepared command succeeds, and discards its output.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    run(command).is_ok()
}

/// Interval at which a running command is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Returns whether a prepared command succeeds within a time, and ends it if not. Its output is that of this process.
pub(crate) fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let Ok(mut child) = command.current_dir(root()).stdin(Stdio::null()).spawn() else { return false };
    let ticks = limit.as_millis() / TICK.as_millis();
    for _ in 0..ticks {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => sleep(TICK),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Returns whether a program of this name is on `PATH`.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| {
        folder.join(name).is_file() || folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)).is_file()
    })
}

/// Returns the root of the repository: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Returns the cargo that runs this command: a second toolchain would build everything twice.
pub(crate) fn program(name: &str) -> OsString {
    match name {
        "cargo" => env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        other => other.into(),
    }
}

/// Builds a program of the workspace and returns its path.
pub(crate) fn built(package: &str, name: &str) -> Result<PathBuf, String> {
    run(Command::new(program("cargo")).args([
        "build",
        "--quiet",
        "--locked",
        "--package",
        package,
        "--bin",
        name,
    ]))?;
    Ok(target().join("debug").join(name))
}

/// Builds optimised programs of the workspace, without link-time optimisation, and returns their folder.
pub(crate) fn released(package: &str, names: &[&str]) -> Result<PathBuf, String> {
    let mut cargo = Command::new(program("cargo"));
    cargo.args(["build", "--release", "--locked", "--package", package]);
    for name in names {
        cargo.args(["--bin", name]);
    }
    run(&mut cargo).map_err(|reason| format!("{} could not be built: {reason}", names.join(", ")))?;
    Ok(target().join("release"))
}

/// The package of the benchmarks.
pub(crate) const PACKAGE_OF_BENCHES: &str = "duplexer-bench";

/// Builds programs of a package as they are packaged, with link-time optimisation, and returns their folder. What is
/// measured or compared is built like this.
pub(crate) fn packaged(package: &str, names: &[&str]) -> Result<PathBuf, String> {
    let mut cargo = Command::new(program("cargo"));
    // Without default features: tokens would bring OAuth and TLS into the build.
    cargo.args(["build", "--profile", "dist", "--locked", "--package", package, "--no-default-features"]);
    for name in names {
        cargo.args(["--bin", name]);
    }
    run(&mut cargo).map_err(|reason| format!("{} could not be built: {reason}", names.join(", ")))?;
    Ok(target().join("dist"))
}

/// Installs a program of a crate with the same name into the build folder, in one version, and returns its path.
pub(crate) fn tool(name: &str, version: &str) -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let program_file = tools.join("bin").join(format!("{name}{}", env::consts::EXE_SUFFIX));
    if !program_file.is_file() {
        println!("installing {name} {version} into the build folder, once");
        let mut cargo = Command::new(program("cargo"));
        cargo.args(["install", "--locked", "--quiet", name, "--version", version, "--root"]).arg(&tools);
        run(&mut cargo).map_err(|reason| format!("{name} could not be installed: {reason}"))?;
    }
    Ok(program_file)
}

/// Returns the target directory of cargo.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{CommandLine, is_installed, root, succeeds_within};

    #[test]
    fn a_command_line_is_shown_as_it_is_typed() {
        let line =
            CommandLine { program: "cargo", arguments: &["doc", "--locked"], environment: &[("A", "-D b")] };
        assert_eq!(line.shown(), "A=\"-D b\" cargo doc --locked");
    }

    #[test]
    fn a_failing_command_says_so() {
        let line = |arguments| CommandLine { program: "cargo", arguments, environment: &[] };
        assert_eq!(line(&["--version"]).run(), Ok(()));
        assert!(line(&["--no-such-option"]).run().is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_command_that_takes_too_long_has_not_succeeded() {
        assert!(succeeds_within(&mut Command::new("true"), Duration::from_secs(60)));
        assert!(!succeeds_within(&mut Command::new("false"), Duration::from_secs(60)));
        assert!(!succeeds_within(Command::new("sleep").arg("1000"), Duration::from_millis(200)));
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_installed() {
        assert!(is_installed("cargo"));
        assert!(!is_installed("an-absent-program"));
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("xtask").is_dir());
    }
}
