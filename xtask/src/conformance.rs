//! `cargo xtask conformance`: the official suite against the everything-server, or with the everything-client (`client`).
//!
//! One process serves both eras, and the suite tests it for all revisions at once. The suite decides which scenarios it
//! scores; the scenarios that it runs without scoring must pass too.

mod client;
mod report;
mod skills;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use self::report::Report;
use crate::Failure;
use crate::npm::{self, Packages};
use crate::process::{built, root, target};
use crate::server::Server;

/// A revision of the suite and its number of scenarios: a run with fewer proves nothing.
struct Revision {
    name: &'static str,
    scored: usize,
    unscored: usize,
}

const REVISIONS: [Revision; 2] = [
    Revision { name: "2025-11-25", scored: 30, unscored: 3 },
    Revision { name: "2026-07-28", scored: 37, unscored: 13 },
];

const SUITE: &str = "@modelcontextprotocol/conformance/dist/index.js";

/// Host name under which the proxy serves.
const INTERNAL_HOST: &str = "everything.internal";

/// The tested server and the path to it.
struct Run {
    revisions: &'static [Revision],
    route: Route,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Direct,
    /// Through a plain reverse proxy.
    BehindProxy,
    /// Through `duplexer proxy`, with the server over standard input and output.
    ThroughProxy,
}

/// Runs the suite for one revision, or for all: against our server, or with our client.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == "client" => client::check(&client::Run::parse(rest)?),
        _ => check(&Run::parse(arguments)?),
    };
    outcome.map_err(|reason| {
        eprintln!("conformance: {reason}");
        Failure::Failed
    })
}

/// Runs the whole sets of both revisions with our client.
pub(crate) fn every_client_revision() -> Result<(), String> {
    client::check(&client::Run::default())
}

/// Runs all required variants.
pub(crate) fn every_revision() -> Result<(), String> {
    check(&Run { revisions: &REVISIONS, route: Route::Direct })
}

/// Runs all required variants through `duplexer proxy`.
pub(crate) fn every_revision_through_proxy() -> Result<(), String> {
    check(&Run { revisions: &REVISIONS, route: Route::ThroughProxy })
}

impl Run {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut run = Self { revisions: &REVISIONS, route: Route::Direct };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match (argument.as_str(), arguments.as_slice().first()) {
                ("--behind-proxy", _) => run.route = Route::BehindProxy,
                ("--through-proxy", _) => run.route = Route::ThroughProxy,
                ("--requirements", Some(name)) => {
                    run.revisions = revision(name)?;
                    arguments.next();
                }
                _ => {
                    let usage = "conformance takes `--requirements REVISION`, and `--behind-proxy` or `--through-proxy`";
                    return Err(Failure::Usage(usage.to_owned()));
                }
            }
        }
        Ok(run)
    }
}

fn revision(name: &str) -> Result<&'static [Revision], Failure> {
    REVISIONS.chunks(1).find(|known| known.iter().any(|known| known.name == name)).ok_or_else(|| {
        let known = REVISIONS.map(|known| known.name).join(", ");
        Failure::Usage(format!("the suite has no requirements of `{name}`, only of {known}"))
    })
}

fn check(run: &Run) -> Result<(), String> {
    let packages = npm::installed("conformance")?;
    let program = built("duplexer-conformance", "everything-server")?;
    match run.route {
        Route::Direct => {
            let server = Server::start(&program, &["0"])?;
            check_at(server.url(), &packages, run.revisions)
        }
        Route::BehindProxy => {
            let proxy = built("duplexer-conformance", "reverse-proxy")?;
            let port = free_port()?;
            let public = format!("http://127.0.0.1:{port}");
            let server = Server::start(&program, &["0", &public, INTERNAL_HOST])?;
            let address = server.url().trim_start_matches("http://").trim_end_matches("/mcp");
            let proxy = Server::start(&proxy, &[&port, address, INTERNAL_HOST])?;
            check_at(&format!("{}/mcp", proxy.url()), &packages, run.revisions)
        }
        Route::ThroughProxy => {
            let proxy = through_proxy(&program)?;
            check_at(proxy.url(), &packages, run.revisions)
        }
    }
}

/// Starts `duplexer proxy` in front of the server, which it starts for every client.
fn through_proxy(program: &Path) -> Result<Server, String> {
    let duplexer = built("duplexer-cli", "duplexer")?;
    let port = free_port()?;
    let program = program.to_str().ok_or("the path of the server is not text")?;
    let script = format!("echo http://127.0.0.1:{port}/mcp; exec \"$@\"");
    let proxy = duplexer.to_str().ok_or("the path of the proxy is not text")?;
    let words =
        ["-c", &script, "sh", proxy, "proxy", "--listen", &port, "--resumable", "--", program, "--stdio"];
    let server = Server::start(Path::new("/bin/sh"), &words)?;
    for _ in 0..200 {
        if TcpStream::connect(format!("127.0.0.1:{port}")).is_ok() {
            return Ok(server);
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err("the proxy does not listen".to_owned())
}

/// Returns a free port: the server must know the port of the proxy before the proxy knows the port of the server.
fn free_port() -> Result<String, String> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map(|address| address.port().to_string()).map_err(|error| format!("no port is free: {error}"))
}

/// Tests all revisions at once, because a server serves both eras at the same time.
fn check_at(url: &str, packages: &Packages, revisions: &[Revision]) -> Result<(), String> {
    let verdicts: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> =
            revisions.iter().map(|revision| scope.spawn(|| judge(url, packages, revision))).collect();
        let ended = running.into_iter().map(ScopedJoinHandle::join);
        ended.map(|verdict| verdict.unwrap_or_else(|_| Err("the run has panicked".to_owned()))).collect()
    });
    verdicts.into_iter().collect()
}

fn judge(url: &str, packages: &Packages, revision: &Revision) -> Result<(), String> {
    let results = target().join("conformance").join(revision.name);
    remove_results(&results)?;
    let mut suite = packages.node(packages.file(SUITE));
    suite.args(["server", "--url", url, "--requirements", revision.name, "--output-dir"]);
    let output = output_of(suite.arg(&results).stderr(Stdio::inherit()))?;
    let report = Report::read(&output, &results, "server-");
    let verdict = report.verdict(revision.scored, revision.unscored);
    let story = match &verdict {
        Ok(()) => String::new(),
        Err(_) => format!("{}the whole story: {}\n", report.complaints(&results), results.display()),
    };
    // Printed at once: the revisions run concurrently.
    print!("\n{}:{report}{story}", revision.name);
    verdict.map_err(|reason| format!("{}: {reason}", revision.name))?;
    skills::check(url, packages, revision.name)
}

/// Removes the results of earlier runs.
fn remove_results(results: &Path) -> Result<(), String> {
    match fs::remove_dir_all(results) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", results.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the output of the suite, which contains its verdict.
fn output_of(suite: &mut Command) -> Result<String, String> {
    suite.current_dir(root()).stdin(Stdio::null());
    let output = suite.output().map_err(|error| format!("the suite could not be started: {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| format!("the suite's output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Route, Run};

    fn parse(line: &str) -> Result<Run, Failure> {
        Run::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_revision_without_requirements_is_a_usage_error() {
        let outcome = parse("--requirements 2024-11-05");
        assert!(matches!(outcome, Err(Failure::Usage(message)) if message.contains("2026-07-28")));
        assert!(matches!(parse("--requirements"), Err(Failure::Usage(_))));
        assert!(matches!(parse("--fast"), Err(Failure::Usage(_))));
    }

    #[test]
    fn every_revision_is_meant_if_none_is_named() {
        let names =
            |line| parse(line).map(|run| run.revisions.iter().map(|revision| revision.name).collect());
        assert_eq!(names(""), Ok(vec!["2025-11-25", "2026-07-28"]));
        assert_eq!(names("--requirements 2025-11-25"), Ok(vec!["2025-11-25"]));
    }

    #[test]
    fn the_proxy_is_in_the_way_only_if_asked_for() {
        let route = |line| parse(line).map(|run| run.route);
        assert_eq!(route("--requirements 2025-11-25 --behind-proxy"), Ok(Route::BehindProxy));
        assert_eq!(route("--through-proxy"), Ok(Route::ThroughProxy));
        assert_eq!(route("--requirements 2025-11-25"), Ok(Route::Direct));
    }
}
