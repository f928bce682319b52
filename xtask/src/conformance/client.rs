//! `cargo xtask conformance client`: the official suite with the everything-client.
//!
//! The suite starts one client per scenario, all at once, against servers of its own. In a whole set it ignores the exit
//! code of the client; `--alone` runs each scenario by itself, where the exit code counts, and those of 2025-03-26 too,
//! which belong to no set.

use std::path::Path;
use std::process::Stdio;
use std::thread;

use super::report::Report;
use super::{SUITE, output_of, remove_results};
use crate::Failure;
use crate::npm::{self, Packages};
use crate::process::{built, root, target};

/// The requirements of a revision: a run with fewer proves nothing.
struct Revision {
    name: &'static str,
    scored: &'static [&'static str],
    unscored: &'static [&'static str],
    /// Scenarios of no set, which are run alone.
    extra: &'static [&'static str],
}

const REVISIONS: [Revision; 2] = [
    Revision {
        name: "2025-11-25",
        scored: &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
        ],
        unscored: &[
            "json-schema-2020-12-preservation",
            "auth/client-credentials-jwt",
            "auth/client-credentials-basic",
            "auth/enterprise-managed-authorization",
            "auth/dpop",
            "auth/dpop-nonce",
            "auth/wif-jwt-bearer",
        ],
        extra: &["auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"],
    },
    Revision {
        name: "2026-07-28",
        scored: &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
            "auth/resource-mismatch",
            "auth/offline-access-scope",
            "auth/offline-access-not-supported",
            "auth/authorization-server-migration",
            "auth/iss-supported",
            "auth/iss-not-advertised",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
        ],
        unscored: &[
            "json-schema-2020-12-preservation",
            "auth/client-credentials-jwt",
            "auth/client-credentials-basic",
            "auth/enterprise-managed-authorization",
            "auth/dpop",
            "auth/dpop-nonce",
            "auth/wif-jwt-bearer",
        ],
        extra: &[],
    },
];

/// The scenarios of the skills extension: of no set, and run in every mode.
const SKILLS: [&str; 4] = [
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// Number of clients that a set of scenarios is repeated with, at once.
const AT_ONCE: usize = 20;

/// What is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// Index of the revision; all, if there is none.
    revision: Option<usize>,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The whole set of a revision.
    #[default]
    Set,
    /// Each scenario by itself, then each many times at once.
    Alone,
}

impl Run {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut run = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--alone" => run.mode = Mode::Alone,
                "--requirements" => {
                    let name = arguments.next().map(String::as_str).unwrap_or_default();
                    let known = REVISIONS.iter().position(|revision| revision.name == name);
                    run.revision = Some(known.ok_or_else(|| {
                        Failure::Usage(format!("the suite has no client requirements of `{name}`"))
                    })?);
                }
                _ => {
                    let usage = "conformance client takes `--requirements REVISION` and `--alone`";
                    return Err(Failure::Usage(usage.to_owned()));
                }
            }
        }
        Ok(run)
    }
}

pub(super) fn check(run: &Run) -> Result<(), String> {
    let packages = npm::installed("conformance")?;
    let client = built("duplexer-conformance", "everything-client")?;
    for revision in
        REVISIONS.iter().enumerate().filter(|(index, _)| run.revision.is_none_or(|it| it == *index))
    {
        let revision = revision.1;
        match run.mode {
            Mode::Set => whole_set(revision, &packages, &client)?,
            Mode::Alone => each_alone(revision, &packages, &client)?,
        }
    }
    Ok(())
}

/// Runs the whole set of a revision.
fn whole_set(revision: &Revision, packages: &Packages, client: &Path) -> Result<(), String> {
    let results = target().join("conformance-client").join(revision.name);
    remove_results(&results)?;
    let mut suite = packages.node(packages.file(SUITE));
    suite.arg("client").arg("--command").arg(client);
    suite.args(["--requirements", revision.name, "--output-dir"]).arg(&results);
    // The suite repeats there what each client said that was expected to fail.
    let output = output_of(suite.stderr(Stdio::null()))?;
    let report = Report::read(&output, &results, "");
    let verdict = judge(revision, &report);
    println!("\n{}:{report}", revision.name);
    verdict
        .map_err(|reason| format!("{}: {reason}\nthe whole story: {}", revision.name, results.display()))?;
    let failed = thread::scope(|scope| {
        let runs: Vec<_> =
            SKILLS.iter().map(|name| scope.spawn(move || alone(revision, packages, client, name))).collect();
        runs.into_iter().find_map(|run| run.join().unwrap_or(Err("a run panicked".into())).err())
    });
    match failed {
        Some(reason) => Err(reason),
        None => {
            println!("{}: {} scenarios of skills passed", revision.name, SKILLS.len());
            Ok(())
        }
    }
}

/// Succeeds if everything has passed, and nothing else was run.
fn judge(revision: &Revision, report: &Report) -> Result<(), String> {
    for (names, is_scored) in [(revision.scored, true), (revision.unscored, false)] {
        for name in names {
            match report.passed(name) {
                Some((true, scored)) if scored == is_scored => {}
                Some((true, _)) => return Err(format!("the suite has changed whether it scores {name}")),
                Some((false, _)) => return Err(format!("failed: {name}")),
                None => return Err(format!("{name} was not run")),
            }
        }
    }
    let known = revision.scored.len() + revision.unscored.len();
    let run = report.names().count();
    if run == known { Ok(()) } else { Err(format!("{run} scenarios were run, and there are {known}")) }
}

/// Runs each scenario by itself, then each many times at once.
fn each_alone(revision: &Revision, packages: &Packages, client: &Path) -> Result<(), String> {
    let scenarios = revision.scored.iter().chain(revision.unscored).chain(revision.extra).chain(&SKILLS);
    for scenario in scenarios.clone() {
        alone(revision, packages, client, scenario)?;
        println!("{}: {scenario} passed alone", revision.name);
    }
    for scenario in scenarios {
        let failed = thread::scope(|scope| {
            let runs: Vec<_> =
                (0..AT_ONCE).map(|_| scope.spawn(|| alone(revision, packages, client, scenario))).collect();
            runs.into_iter().find_map(|run| run.join().unwrap_or(Err("a run panicked".into())).err())
        });
        if let Some(reason) = failed {
            return Err(reason);
        }
        println!("{}: {scenario} passed {AT_ONCE} times at once", revision.name);
    }
    Ok(())
}

/// Runs one scenario. The suite fails it for warnings and for the exit code of the client too.
fn alone(revision: &Revision, packages: &Packages, client: &Path, scenario: &str) -> Result<(), String> {
    let mut suite = packages.node(packages.file(SUITE));
    suite.arg("client").arg("--command").arg(client);
    // Without `--force`, scenarios of extensions are skipped.
    suite.args(["--scenario", scenario, "--spec-version", revision.name, "--force"]);
    let output = suite.current_dir(root()).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("the suite could not be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    // A scenario without any check passes too. The checks are printed on standard error.
    let has_checks = said.contains("SUCCESS") || complaints.contains("SUCCESS");
    if output.status.success() && has_checks && !said.contains("WARNING") {
        return Ok(());
    }
    Err(format!("{}: {scenario} failed alone:\n{said}\n{complaints}", revision.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Run, Failure> {
        Run::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_client_run_names_its_revision_and_mode() {
        assert_eq!(parse(""), Ok(Run::default()));
        assert_eq!(
            parse("--requirements 2026-07-28 --alone"),
            Ok(Run { revision: Some(1), mode: Mode::Alone })
        );
        for wrong in ["--requirements", "--requirements 2024-11-05", "--fast"] {
            assert!(matches!(parse(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    const REVISION: Revision =
        Revision { name: "r", scored: &["tools_call"], unscored: &["extra"], extra: &["old"] };

    fn report(tools: &str, extra: &str) -> Report {
        let output = format!(
            "=== SUMMARY ===\n{tools} tools_call: 1 passed, 0 failed\n{extra} extra: 1 passed, 0 failed\n\nNot scored for r: 1 scenario(s) run\n  {extra} extra (added)\n"
        );
        Report::read(&output, Path::new("no results"), "")
    }

    /// Every scenario must pass, and one that is not known fails the run.
    #[test]
    fn all_scenarios_must_pass() {
        assert_eq!(judge(&REVISION, &report("✓", "✓")), Ok(()));
        assert_eq!(judge(&REVISION, &report("✗", "✓")), Err("failed: tools_call".to_owned()));
        assert_eq!(judge(&REVISION, &report("✓", "✗")), Err("failed: extra".to_owned()));
        let fewer = Revision { unscored: &[], ..REVISION };
        assert!(judge(&fewer, &report("✓", "✓")).is_err());
    }
}
