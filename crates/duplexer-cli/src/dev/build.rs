//! How the program is built before it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};

use crate::arguments::DevArguments;
use crate::failure::Failure;
use crate::install::is_called;
use crate::terminal::Terminal;

/// Maximum length of a line that is shown.
const MAX_LINE: u64 = 64 * 1024;

/// The command that builds the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// A shell command.
    Shell(String),
    /// A program and its arguments.
    Words(Vec<OsString>),
    /// The program needs no build.
    Nothing,
}

impl Build {
    pub(super) fn of(arguments: &DevArguments) -> Result<Self, Failure> {
        match &arguments.build {
            Some(command) if command.trim().is_empty() => Err(Failure::usage("--build needs a command")),
            Some(command) => Ok(Self::Shell(command.clone())),
            None => Ok(of_cargo(&arguments.command).map_or(Self::Nothing, Self::Words)),
        }
    }

    pub(super) fn is_needed(&self) -> bool {
        *self != Self::Nothing
    }

    /// Runs it. Its output goes to standard error, because standard output can be the connection with the client.
    pub(super) async fn run(&self, terminal: &Terminal) -> Result<(), String> {
        let mut command = match self {
            Self::Nothing => return Ok(()),
            Self::Shell(line) => {
                let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
                let mut command = Command::new(shell);
                command.args([option, line]);
                command
            }
            Self::Words(words) => {
                let (program, rest) = words.split_first().ok_or("no command")?;
                let mut command = Command::new(program);
                command.args(rest);
                command
            }
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        if let Some(stdout) = child.stdout.take() {
            show(stdout, terminal).await;
        }
        match child.wait().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Shows the output of a build line by line.
async fn show(stdout: ChildStdout, terminal: &Terminal) {
    let mut output = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match (&mut output).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => terminal.note(String::from_utf8_lossy(&line).trim_end()),
        }
    }
}

/// Returns cargo and its words, if a command begins with it.
fn cargo(command: &[OsString]) -> Option<(&OsString, &[OsString])> {
    command.split_first().filter(|(program, _)| is_called(program, "cargo"))
}

/// Returns the directory of the manifest that a `cargo` command names.
pub(super) fn project_of(command: &[OsString]) -> Option<PathBuf> {
    let (_, rest) = cargo(command)?;
    let mut words = rest.iter().take_while(|word| *word != "--");
    let manifest = words.find_map(|word| word.to_str()?.strip_prefix("--manifest-path"))?;
    let manifest = match manifest.strip_prefix('=') {
        Some(path) => Path::new(path),
        None => Path::new(words.next()?),
    };
    let directory = manifest.parent()?;
    Some(if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory.to_owned() })
}

/// Returns the command that builds what `cargo run` starts.
fn of_cargo(command: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = cargo(command)?;
    let run = rest.iter().position(|word| word == "run" || word == "r")?;
    let options = rest.iter().take_while(|word| *word != "--").enumerate();
    let words = options.map(|(at, word)| if at == run { "build".into() } else { word.clone() });
    Some([program.clone()].into_iter().chain(words).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_the_directory_of_its_project() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(project_of(&words).as_deref(), expected.map(Path::new), "{line}");
        };
        check("cargo run --manifest-path /a/notes/Cargo.toml", Some("/a/notes"));
        check("cargo run --manifest-path=notes/Cargo.toml -q", Some("notes"));
        check("cargo run --manifest-path Cargo.toml", Some("."));
        check("cargo run --manifest-path", None);
        check("cargo run", None);
        check("cargo run -- --manifest-path /a/Cargo.toml", None);
        check("make run --manifest-path /a/Cargo.toml", None);
    }

    #[test]
    fn what_cargo_runs_is_built_first() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let built = of_cargo(&words).map(|words| {
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(built.as_deref(), expected, "{line}");
        };
        check("cargo run", Some("cargo build"));
        check(
            "/usr/bin/cargo run -q --bin notes -- --stdio run",
            Some("/usr/bin/cargo build -q --bin notes"),
        );
        check("cargo +nightly r --release", Some("cargo +nightly build --release"));
        check("cargo test", None);
        check("target/debug/notes run", None);
    }
}
