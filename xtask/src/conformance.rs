//! `cargo xtask conformance`: the official suite against our everything-server.
//!
//! The suite says which scenarios a revision scores. Beyond these we hold ourselves to a few that it runs without scoring.

mod report;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use self::report::Report;
use crate::process::{built, root, target};
use crate::server::Server;
use crate::{Failure, npm};

/// A revision the suite knows, and how many scenarios it scores: a suite that ran fewer has shown nothing.
struct Revision {
    name: &'static str,
    scored: usize,
}

const REVISIONS: &[Revision] =
    &[Revision { name: "2025-11-25", scored: 30 }, Revision { name: "2026-07-28", scored: 37 }];

/// The revision that must hold.
const LATEST: &str = "2026-07-28";

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

/// Runs the suite for one revision.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let revision = revision(arguments)?;
    check(revision).map_err(|reason| {
        eprintln!("conformance: {reason}");
        Failure::Failed
    })
}

/// The same for the revision that must hold.
pub(crate) fn latest() -> Result<(), String> {
    find(LATEST).ok_or_else(|| format!("{LATEST} is not in the table")).and_then(check)
}

fn revision(arguments: &[String]) -> Result<&'static Revision, Failure> {
    let name = match arguments {
        [] => LATEST,
        [option, name] if option == "--requirements" => name,
        _ => return Err(Failure::Usage("conformance takes `--requirements REVISION` or nothing".to_owned())),
    };
    find(name).ok_or_else(|| {
        let known: Vec<&str> = REVISIONS.iter().map(|revision| revision.name).collect();
        Failure::Usage(format!("the suite has no requirements of `{name}`, only of {}", known.join(", ")))
    })
}

fn find(name: &str) -> Option<&'static Revision> {
    REVISIONS.iter().find(|revision| revision.name == name)
}

fn check(revision: &Revision) -> Result<(), String> {
    let packages = npm::installed("conformance")?;
    let server = Server::start(&built("duplexer-conformance", "everything-server")?, &["0"])?;
    let results = target().join("conformance").join(revision.name);
    forget(&results)?;
    let mut suite = packages.node(packages.file(SUITE));
    suite.args(["server", "--url", server.url(), "--requirements", revision.name, "--output-dir"]);
    let output = said(suite.arg(&results))?;
    let report = Report::read(&output, &results);
    print!("{report}");
    let verdict = report.verdict(revision.scored);
    if verdict.is_err() {
        report.explain(&results);
        println!("the whole story: {}", results.display());
    }
    verdict
}

/// Results of an earlier run must not explain this one.
fn forget(results: &Path) -> Result<(), String> {
    match fs::remove_dir_all(results) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", results.display()))
        }
        _ => Ok(()),
    }
}

/// What the suite prints. Whether it liked what it saw is in there too.
fn said(suite: &mut Command) -> Result<String, String> {
    suite.current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = suite.output().map_err(|error| format!("the suite could not be started: {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| format!("the suite's output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Failure, revision};

    #[test]
    fn a_revision_without_requirements_is_a_usage_error() {
        let outcome = revision(&["--requirements".to_owned(), "2024-11-05".to_owned()]);
        assert!(matches!(outcome, Err(Failure::Usage(message)) if message.contains("2026-07-28")));
    }

    #[test]
    fn the_latest_revision_is_meant_if_none_is_named() {
        assert!(revision(&[]).is_ok_and(|revision| revision.name == "2026-07-28" && revision.scored == 37));
    }
}
