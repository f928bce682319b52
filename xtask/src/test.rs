//! `cargo xtask test`: all required checks, as a table of steps.
//!
//! A further suite is one more row of [`STEPS`]. A row whose programs are missing is skipped with a message on a
//! developer's machine and fails where `CI=true`, so that no suite is skipped unnoticed. A missing Rust target only skips its
//! row, with the same message: a machine without access to the toolchains cannot add it.

use std::fmt;
use std::time::Duration;

use crate::process::{self, CommandLine};
use crate::{Failure, browser, cluster, conformance, interop, no_arguments, platforms, tidy, valkey};

/// One check.
struct Step {
    name: &'static str,
    /// Requirements besides the Rust toolchain.
    needs: &'static [Need],
    action: Action,
}

/// A requirement of a step.
#[derive(Clone, Copy)]
enum Need {
    /// A program on `PATH`.
    Program(&'static str),
    /// A Rust target, installed or added with `rustup`.
    Target(&'static str),
    /// A Redis or Valkey, installed or from the Python index.
    Store,
}

/// Implementation of a step.
#[derive(Clone, Copy)]
enum Action {
    Run(CommandLine),
    /// The command line with a store in its environment.
    RunWithStore(CommandLine),
    Cluster,
    Tidy,
    Python,
    Bridge,
    Doctor,
    Authority,
    TypeScript,
    Together,
    Inspector,
    Browser,
    TypeScriptTasks,
    FastMcpTasks,
    Conformance,
    ConformanceThroughProxy,
    ConformanceClient,
}

/// Options of the command that are not part of its default build: `--keyring`, and `demo --redis`.
const OPTIONAL: &str = "duplexer-cli/keyring,duplexer-cli/redis";

const STEPS: &[Step] = &[
    Step { name: "formatting", needs: &[], action: cargo(&["fmt", "--all", "--check"]) },
    Step {
        name: "lints",
        needs: &[],
        action: cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            OPTIONAL,
            "--locked",
            "--",
            "-D",
            "warnings",
        ]),
    },
    Step { name: "tests", needs: &[], action: Action::RunWithStore(TESTS) },
    Step {
        name: "documentation",
        needs: &[],
        action: Action::Run(CommandLine {
            program: "cargo",
            arguments: &["doc", "--workspace", "--no-deps", "--locked"],
            environment: &[("RUSTDOCFLAGS", "-D warnings")],
        }),
    },
    Step { name: "tidy", needs: &[], action: Action::Tidy },
    Step { name: "nodes on a store, with faults", needs: &[Need::Store], action: Action::Cluster },
    Step {
        name: "Windows, compiled",
        needs: &[Need::Target(platforms::WINDOWS)],
        action: Action::Run(platforms::WINDOWS_CHECK),
    },
    Step { name: "official Python client", needs: &[Need::Program("python3")], action: Action::Python },
    Step {
        name: "official Python client and server of different eras",
        needs: &[Need::Program("python3")],
        action: Action::Bridge,
    },
    Step {
        name: "official Python servers, by `duplexer doctor`",
        needs: &[Need::Program("python3")],
        action: Action::Doctor,
    },
    Step {
        name: "official Python authorization server",
        needs: &[Need::Program("python3")],
        action: Action::Authority,
    },
    Step { name: "official TypeScript client", needs: &[Need::Program("npm")], action: Action::TypeScript },
    Step {
        name: "both clients at once",
        needs: &[Need::Program("python3"), Need::Program("npm")],
        action: Action::Together,
    },
    Step { name: "MCP Inspector", needs: &[Need::Program("npm")], action: Action::Inspector },
    Step {
        name: "the inspector page in a browser",
        needs: &[Need::Program("python3"), Need::Program("npm")],
        action: Action::Browser,
    },
    Step {
        name: "official TypeScript package for tasks",
        needs: &[Need::Program("npm")],
        action: Action::TypeScriptTasks,
    },
    Step {
        name: "FastMCP's client and server of tasks",
        needs: &[Need::Program("python3")],
        action: Action::FastMcpTasks,
    },
    Step { name: "conformance suite", needs: &[Need::Program("npm")], action: Action::Conformance },
    Step {
        name: "conformance suite through `duplexer proxy`",
        needs: &[Need::Program("npm")],
        action: Action::ConformanceThroughProxy,
    },
    Step {
        name: "conformance suite, client",
        needs: &[Need::Program("npm")],
        action: Action::ConformanceClient,
    },
];

const TESTS: CommandLine = CommandLine {
    program: "cargo",
    arguments: &["test", "--workspace", "--features", OPTIONAL, "--locked"],
    environment: &[],
};

const fn cargo(arguments: &'static [&'static str]) -> Action {
    Action::Run(CommandLine { program: "cargo", arguments, environment: &[] })
}

impl Action {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Run(line) => line.run(),
            Self::RunWithStore(line) => {
                let mut command = line.command();
                valkey::provide(&mut command);
                process::run(&mut command)
            }
            Self::Cluster => cluster::one_seed(),
            Self::Tidy => tidy::check_repository(),
            Self::Python => interop::python(),
            Self::Bridge => interop::bridge(),
            Self::Doctor => interop::doctor(),
            Self::Authority => interop::authority(),
            Self::TypeScript => interop::typescript(),
            Self::Together => interop::together(),
            Self::Inspector => interop::inspector(),
            Self::Browser => browser::test(),
            Self::TypeScriptTasks => interop::typescript_tasks(),
            Self::FastMcpTasks => interop::fastmcp_tasks(),
            Self::Conformance => conformance::every_revision(),
            Self::ConformanceThroughProxy => conformance::every_revision_through_proxy(),
            Self::ConformanceClient => conformance::every_client_revision(),
        }
    }

    /// Returns the command that repeats this step alone.
    fn shown(&self) -> String {
        match self {
            Self::Run(line) | Self::RunWithStore(line) => line.shown(),
            Self::Cluster => "cargo xtask cluster-test".to_owned(),
            Self::Tidy => "cargo xtask tidy".to_owned(),
            Self::Python
            | Self::Bridge
            | Self::Doctor
            | Self::Authority
            | Self::TypeScript
            | Self::Together
            | Self::Inspector
            | Self::TypeScriptTasks
            | Self::FastMcpTasks => "cargo xtask interop".to_owned(),
            Self::Browser => "cargo xtask browser".to_owned(),
            Self::Conformance => "cargo xtask conformance".to_owned(),
            Self::ConformanceThroughProxy => "cargo xtask conformance --through-proxy".to_owned(),
            Self::ConformanceClient => "cargo xtask conformance client".to_owned(),
        }
    }
}

/// Effect of a missing program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    /// On a developer's machine: the step is skipped, and the summary says so.
    Skips,
    /// Under continuous integration: the step has failed.
    Fails,
}

/// Outcome of one step.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed(Duration),
    Failed(String),
    Skipped(String),
    NotReached,
}

/// Runs every step in order and stops at the first that fails.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("test", arguments)?;
    let absence = match std::env::var("CI") {
        Ok(value) if value == "true" || value == "1" => Absence::Fails,
        _ => Absence::Skips,
    };
    let verdicts = run(STEPS, absence);
    print!("{}", Summary { steps: STEPS, verdicts: &verdicts });
    if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_))) {
        return Err(Failure::Failed);
    }
    Ok(())
}

fn run(steps: &[Step], absence: Absence) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Failed(_))) {
            verdicts.push(Verdict::NotReached);
            continue;
        }
        println!("\n==> {}/{} {}: {}", index + 1, steps.len(), step.name, step.action.shown());
        let verdict = judge(step, absence);
        match &verdict {
            Verdict::Passed(took) => println!("==> {} passed in {:.1} s", step.name, took.as_secs_f64()),
            Verdict::Failed(reason) => println!("==> {} FAILED: {reason}", step.name),
            Verdict::Skipped(reason) => println!("==> {} SKIPPED: {reason}", step.name),
            Verdict::NotReached => {}
        }
        verdicts.push(verdict);
    }
    verdicts
}

fn judge(step: &Step, absence: Absence) -> Verdict {
    if let Some(missing) = missing(step.needs, absence) {
        return missing;
    }
    let (outcome, took) = timed(|| step.action.run());
    match outcome {
        Ok(()) => Verdict::Passed(took),
        Err(reason) => Verdict::Failed(reason),
    }
}

/// Returns the verdict on a step that cannot run here.
fn missing(needs: &[Need], absence: Absence) -> Option<Verdict> {
    let programs: Vec<String> = needs
        .iter()
        .filter_map(|need| match need {
            Need::Program(name) => (!process::is_installed(name)).then(|| format!("{name} is not on PATH")),
            Need::Store => valkey::missing(),
            Need::Target(_) => None,
        })
        .collect();
    if !programs.is_empty() {
        let reason = programs.join(", ");
        return Some(match absence {
            Absence::Skips => Verdict::Skipped(reason),
            Absence::Fails => Verdict::Failed(format!("{reason} (under CI=true that is a failure)")),
        });
    }
    needs.iter().find_map(|need| match need {
        Need::Target(target) if !platforms::target_is_available(target) => {
            Some(Verdict::Skipped(platforms::no_target(target)))
        }
        _ => None,
    })
}

#[expect(clippy::disallowed_methods, reason = "no runtime here: this is the wall clock of a build step")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Formats the summary. Its last line is the count, in a form that scripts can read.
struct Summary<'a> {
    steps: &'a [Step],
    verdicts: &'a [Verdict],
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        writeln!(out, "\nsummary of cargo xtask test:")?;
        for (step, verdict) in self.steps.iter().zip(self.verdicts) {
            let command = step.action.shown();
            match verdict {
                Verdict::Passed(took) => {
                    passed += 1;
                    writeln!(out, "  passed   {:<14} {:>6.1} s  {command}", step.name, took.as_secs_f64())?;
                }
                Verdict::Failed(reason) => {
                    failed += 1;
                    writeln!(
                        out,
                        "  FAILED   {:<14} {reason}\n           to repeat it: {command}",
                        step.name
                    )?;
                }
                Verdict::Skipped(reason) => {
                    skipped += 1;
                    writeln!(out, "  SKIPPED  {:<14} {reason}", step.name)?;
                }
                Verdict::NotReached => writeln!(out, "  not run  {:<14} {command}", step.name)?,
            }
        }
        if skipped > 0 {
            writeln!(out, "WARNING: {skipped} skipped: this run does not show that everything works")?;
        }
        writeln!(out, "{passed} passed, {failed} failed")
    }
}

#[cfg(test)]
mod tests;
