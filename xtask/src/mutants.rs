//! `cargo xtask mutants`: changes the code in small ways and runs the tests of the package: each change must fail one.
//!
//! A fixed list of files, because a mutant costs a build and a test run. `xtask/mutants.txt` has the survivors that are
//! right as they are, each with its reason; the command compares.

mod runner;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Failure, process};

/// The version that is installed: another one has other mutants.
const VERSION: &str = "27.1.0";
/// Maximum of mutants in all.
const MOST: usize = 400;
/// Seconds for the tests of one mutant. One that takes longer was killed by no assertion, so it needs an explanation too.
const TIMEOUT: &str = "120";
const EXPLAINED: &str = "xtask/mutants.txt";

/// Files of one package whose mutants are tested by the same tests.
struct Area {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// Options of `cargo test` that select test binaries: as few as show the behaviour, because each mutant builds them.
    binaries: &'static [&'static str],
    /// Which of their tests run, if not all.
    filter: Option<&'static str>,
}

const AREAS: &[Area] = &[
    Area {
        name: "call-table",
        package: "duplexer-core",
        files: &[
            "crates/duplexer-core/src/dispatch/call_table.rs",
            "crates/duplexer-core/src/dispatch/in_flight.rs",
        ],
        binaries: &["--lib"],
        filter: Some("dispatch::"),
    },
    Area {
        name: "admission",
        package: "duplexer-core",
        files: &["crates/duplexer-core/src/dispatch/jsonrpc/admission.rs"],
        binaries: &["--lib"],
        filter: Some("dispatch::"),
    },
    Area {
        name: "envelope",
        package: "duplexer-server",
        files: &["crates/duplexer-server/src/kernel/envelope.rs"],
        binaries: &["--lib", "--test", "server"],
        filter: None,
    },
    Area {
        name: "sessions",
        package: "duplexer-http",
        files: &[
            "crates/duplexer-http/src/server/session/table.rs",
            "crates/duplexer-http/src/server/session/table/principal_counts.rs",
        ],
        binaries: &["--lib", "--test", "http"],
        filter: None,
    },
    Area {
        name: "tokens",
        package: "duplexer-auth",
        files: &[
            "crates/duplexer-auth/src/resource/bearer.rs",
            "crates/duplexer-auth/src/resource/check.rs",
            "crates/duplexer-auth/src/token/jwt.rs",
            "crates/duplexer-auth/src/token/signature.rs",
            "crates/duplexer-auth/src/token/static_tokens.rs",
        ],
        binaries: &["--lib", "--test", "auth"],
        filter: None,
    },
];

/// Mutants by the file of outcomes of cargo-mutants.
struct Outcome {
    caught: usize,
    unviable: usize,
    /// Mutants whose tests did not end in time, as in [`EXPLAINED`].
    hanging: Vec<String>,
    /// Survivors, as in [`EXPLAINED`].
    survivors: Vec<String>,
}

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    if let [option, line @ ..] = arguments
        && option == runner::OPTION
    {
        return runner::run(line);
    }
    let only_list = arguments.iter().any(|argument| argument == "--list");
    let names: Vec<&String> = arguments.iter().filter(|argument| *argument != "--list").collect();
    if let Some(unknown) = names.iter().find(|name| !AREAS.iter().any(|area| area.name == name.as_str())) {
        let known: Vec<&str> = AREAS.iter().map(|area| area.name).collect();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("`{unknown}` is no area of mutants; there are {known}")));
    }
    let areas = AREAS.iter().filter(|area| names.is_empty() || names.iter().any(|name| *name == area.name));
    let areas: Vec<&Area> = areas.collect();
    run(&areas, only_list).map_err(|reason| {
        eprintln!("error: {reason}");
        Failure::Failed
    })
}

fn run(areas: &[&Area], only_list: bool) -> Result<(), String> {
    let program = process::tool("cargo-mutants", VERSION)?;
    let mut total = 0;
    for area in areas {
        let listed = list(&program, area)?;
        println!("{}: {} mutants", area.name, listed.len());
        total += listed.len();
    }
    println!("{total} mutants in all, of {MOST} at most");
    if total > MOST {
        return Err("too many mutants: shorten the list of files in xtask/src/mutants.rs".to_owned());
    }
    if only_list {
        return Ok(());
    }
    let path = process::root().join(EXPLAINED);
    let text = fs::read_to_string(&path).map_err(|error| format!("{EXPLAINED}: {error}"))?;
    let explained = explained(&text)?;
    let (mut faults, mut rows) = (Vec::new(), Vec::new());
    for area in areas {
        let outcome = tested(&program, area)?;
        faults.extend(compared(&outcome, &explained, area.files));
        let Outcome { caught, unviable, hanging, survivors } = outcome;
        let (hanging, survivors) = (hanging.len(), survivors.len());
        rows.push(format!("| {} | {caught} | {hanging} | {unviable} | {survivors} |", area.name));
    }
    println!("\n| area | killed | timed out | not compiled | survivors |\n|---|---:|---:|---:|---:|");
    println!("{}", rows.join("\n"));
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("{} findings", faults.len())) }
}

/// Starts a command line of cargo-mutants for an area.
fn mutants(program: &Path, area: &Area) -> Command {
    let mut command = Command::new(program);
    command.args(["mutants", "--no-config", "--colors", "never", "--package", area.package]);
    for file in area.files {
        command.args(["--file", file]);
    }
    command
}

fn list(program: &Path, area: &Area) -> Result<Vec<String>, String> {
    let output = mutants(program, area).arg("--list").current_dir(process::root()).output();
    let output = output.map_err(|error| format!("cargo-mutants: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Tests all mutants of an area, and reads what became of them.
fn tested(program: &Path, area: &Area) -> Result<Outcome, String> {
    let folder = process::target().join("mutants").join(area.name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = mutants(program, area);
    command.args(["--test-package", area.package, "--timeout", TIMEOUT, "--no-shuffle", "--gitignore=true"]);
    command.arg("--output").arg(&folder).arg("--cargo-arg").arg(runner::configuration()?);
    // These also go to the build, which would otherwise be of all test binaries.
    for option in area.binaries {
        command.arg(format!("--cargo-arg={option}"));
    }
    command.arg("--").args(area.filter);
    // In a folder that other builds use, waiting for their lock would count as time of the tests.
    command.env("CARGO_TARGET_DIR", process::target().join("mutants").join("build"));
    command.env("CARGO_PROFILE_DEV_DEBUG", "none");
    let out = folder.join("mutants.out");
    // Its exit code also tells of survivors, which the lists contain; without an unmutated run that passes there are none.
    let ended = process::run(&mut command);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let names = |name: &str| read(name).lines().map(unnumbered).collect::<Vec<_>>();
    let outcome = Outcome {
        caught: names("caught.txt").len(),
        unviable: names("unviable.txt").len(),
        hanging: names("timeout.txt"),
        survivors: names("missed.txt"),
    };
    match ended {
        Err(reason) if outcome.survivors.is_empty() && outcome.hanging.is_empty() && outcome.caught == 0 => {
            Err(format!("{}: cargo-mutants: {reason}", area.name))
        }
        _ => Ok(outcome),
    }
}

/// Returns a mutant without line and column, which change with every edit.
fn unnumbered(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(change)) => format!("{file}:{change}"),
        _ => mutant.to_owned(),
    }
}

/// Reads the explained survivors, with their reasons.
fn explained(text: &str) -> Result<BTreeMap<String, String>, String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| match line.split_once(" | ") {
        Some((mutant, reason)) if !reason.trim().is_empty() => Ok((mutant.to_owned(), reason.to_owned())),
        _ => Err(format!("{EXPLAINED}: no reason: {line}")),
    };
    lines.map(read).collect()
}

/// Returns survivors and mutants that timed out without an explanation, and explanations of these files without either.
fn compared(outcome: &Outcome, explained: &BTreeMap<String, String>, files: &[&str]) -> Vec<String> {
    let Outcome { hanging, survivors, .. } = outcome;
    let is_new = |mutant: &&String| !explained.contains_key(*mutant);
    let stale = explained.keys().filter(|mutant| {
        let file = mutant.split_once(':').map_or("", |(file, _)| file);
        files.contains(&file) && !survivors.contains(mutant) && !hanging.contains(mutant)
    });
    let unexplained = |what: &'static str| {
        move |mutant: &String| format!("{what}, and {EXPLAINED} does not explain it: {mutant}")
    };
    let survived = survivors.iter().filter(is_new).map(unexplained("no test kills it"));
    let hung = hanging.iter().filter(is_new).map(unexplained("its tests did not end in time"));
    let stale = stale.map(|mutant| format!("{EXPLAINED} explains what does not survive: {mutant}"));
    survived.chain(hung).chain(stale).collect()
}

/// Returns all files of all areas.
#[cfg(test)]
fn files() -> impl Iterator<Item = std::path::PathBuf> {
    AREAS.iter().flat_map(|area| area.files).map(|file| process::root().join(file))
}

#[cfg(test)]
mod tests {
    use super::{AREAS, Outcome, command, compared, explained, files, unnumbered};
    use crate::{Failure, process};

    #[test]
    fn every_file_and_every_test_binary_exists() {
        for file in files() {
            assert!(file.is_file(), "{}", file.display());
        }
        for area in AREAS {
            for pair in area.binaries.windows(2).filter(|pair| pair[0] == "--test") {
                let folder = process::root().join("crates").join(area.package).join("tests");
                let found = folder.join(format!("{}.rs", pair[1])).is_file() || folder.join(pair[1]).is_dir();
                assert!(found, "{}: {}", area.package, pair[1]);
            }
        }
    }

    #[test]
    fn survivors_are_compared_without_their_lines() {
        let survivor = unnumbered("crates/a.rs:12:5: replace f -> bool with true");
        assert_eq!(survivor, "crates/a.rs: replace f -> bool with true");
        let list =
            explained("# why\ncrates/a.rs: replace f -> bool with true | equal: f is only a hint\n").unwrap();
        let outcome = |survivors: &[&String], hanging: &[&String]| {
            let owned = |mutants: &[&String]| mutants.iter().map(|mutant| (*mutant).clone()).collect();
            Outcome { caught: 0, unviable: 0, hanging: owned(hanging), survivors: owned(survivors) }
        };
        let (none, survived, hung) =
            (outcome(&[], &[]), outcome(&[&survivor], &[]), outcome(&[], &[&survivor]));
        let nothing = explained("").unwrap();
        assert!(compared(&survived, &list, &["crates/a.rs"]).is_empty());
        assert!(compared(&hung, &list, &["crates/a.rs"]).is_empty());
        assert_eq!(compared(&none, &list, &["crates/a.rs"]).len(), 1, "stale");
        assert_eq!(compared(&none, &list, &["crates/b.rs"]).len(), 0, "of an area that was not run");
        assert_eq!(compared(&survived, &nothing, &["crates/a.rs"]).len(), 1, "new");
        assert!(compared(&hung, &nothing, &["crates/a.rs"])[0].contains("did not end in time"));
        assert!(explained("crates/a.rs: replace f\n").is_err(), "without a reason");
    }

    #[test]
    fn the_list_of_explained_survivors_can_be_read() {
        let text = std::fs::read_to_string(process::root().join(super::EXPLAINED)).unwrap();
        explained(&text).unwrap();
    }

    #[test]
    fn an_unknown_area_is_a_usage_error_that_names_the_others() {
        let refused = command(&["tables".to_owned()]);
        assert!(matches!(refused, Err(Failure::Usage(text)) if text.contains("call-table")));
    }
}
