//! The crates that a build of a package compiles, counted and compared with the record.
//!
//! A crate is a name and a version among the normal and build dependencies on Linux x86-64, the package itself included.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::process;

/// A build whose crates are counted.
struct Build {
    name: &'static str,
    package: &'static str,
    features: &'static str,
    growth: Growth,
}

/// Whether the recorded number may rise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Never, and it stays below this number.
    Never { bar: usize },
    /// With a reason in the record.
    WithReason,
}

const BUILDS: &[Build] = &[
    Build { name: "default", package: "duplexer", features: "", growth: Growth::Never { bar: 82 } },
    Build { name: "http", package: "duplexer", features: "http", growth: Growth::Never { bar: 100 } },
    Build {
        name: "http,auth",
        package: "duplexer",
        features: "http,auth",
        growth: Growth::Never { bar: 162 },
    },
    Build { name: "http-client", package: "duplexer", features: "http-client", growth: Growth::WithReason },
    Build {
        name: "http,auth,redis",
        package: "duplexer",
        features: "http,auth,redis",
        growth: Growth::WithReason,
    },
    Build { name: "otel", package: "duplexer", features: "otel", growth: Growth::WithReason },
    Build { name: "command", package: "duplexer-cli", features: "", growth: Growth::WithReason },
];

const RECORD: &str = "docs/weight.txt";

const HEAD: &str = "\
# Crates that a build compiles (name and version, normal and build dependencies, Linux x86-64): `cargo xtask weight`.
# Written by `cargo xtask weight --record`. The first three numbers never rise. Another one may, with the reason
# in its line, after the number.
";

/// One line of the record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Count {
    name: String,
    crates: usize,
    reason: String,
}

/// Counts the crates of all builds.
pub(super) fn count() -> Result<Vec<Count>, String> {
    let recorded = recorded().unwrap_or_default();
    let count = |build: &Build| {
        let reason = recorded.iter().find(|row| row.name == build.name).map(|row| row.reason.clone());
        let crates = crates(build)?.len();
        Ok(Count { name: build.name.to_owned(), crates, reason: reason.unwrap_or_default() })
    };
    BUILDS.iter().map(count).collect()
}

fn crates(build: &Build) -> Result<BTreeSet<String>, String> {
    let mut cargo = Command::new(process::program("cargo"));
    cargo.args(["tree", "--locked", "--package", build.package, "--features", build.features]);
    cargo.args(["--edges", "normal,build", "--prefix", "none", "--target", "x86_64-unknown-linux-gnu"]);
    let output = cargo.current_dir(process::root()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(names(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads the names and versions out of the output of `cargo tree`, in which a crate can occur several times.
fn names(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    tree.lines().map(name).filter(|name| !name.is_empty()).collect()
}

fn path() -> PathBuf {
    process::root().join(RECORD)
}

fn recorded() -> Result<Vec<Count>, String> {
    let text = fs::read_to_string(path()).map_err(|error| format!("{RECORD}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Count>, String> {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let crates = words.next()?.parse().ok()?;
        Some(Count { name, crates, reason: words.collect::<Vec<_>>().join(" ") })
    };
    rows.map(|line| row(line).ok_or_else(|| format!("{RECORD}: not a row: {line}"))).collect()
}

/// Writes the record. A number that must not rise is not written if it did.
pub(super) fn record(counted: &[Count]) -> Result<(), String> {
    if let Ok(recorded) = recorded() {
        let risen = risen(counted, &recorded, |build| build.growth != Growth::WithReason);
        if !risen.is_empty() {
            return Err(risen.join("\n"));
        }
    }
    let mut text = HEAD.to_owned();
    for Count { name, crates, reason } in counted {
        let row = format!("{name:<12} {crates:>4}  {reason}");
        let _ = writeln!(text, "{}", row.trim_end());
    }
    fs::write(path(), text).map_err(|error| format!("{RECORD}: {error}"))
}

/// Formats the counts beside the recorded ones.
pub(super) fn table(counted: &[Count]) -> Result<String, String> {
    let recorded = recorded()?;
    let mut table = format!("{:<14}{:>8}{:>10}{:>6}", "crates", "counted", "recorded", "bar");
    for (build, count) in BUILDS.iter().zip(counted) {
        let old = find(&recorded, build).map_or_else(|| "-".to_owned(), |row| row.crates.to_string());
        let bar = match build.growth {
            Growth::Never { bar } => bar.to_string(),
            Growth::WithReason => "-".to_owned(),
        };
        let _ = write!(table, "\n{:<14}{:>8}{old:>10}{bar:>6}", count.name, count.crates);
    }
    Ok(table)
}

/// Fails where a build compiles more crates than recorded.
pub(super) fn check(counted: &[Count]) -> Result<(), String> {
    let recorded = recorded()?;
    let missing = BUILDS.iter().filter(|build| find(&recorded, build).is_none());
    let missing = missing.map(|build| format!("`{}` is not in {RECORD}", build.name));
    let findings: Vec<_> = missing.chain(risen(counted, &recorded, |_| true)).collect();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

fn find<'a>(rows: &'a [Count], build: &Build) -> Option<&'a Count> {
    rows.iter().find(|row| row.name == build.name)
}

/// Returns a description of every number that is higher than recorded.
fn risen(counted: &[Count], recorded: &[Count], is_checked: fn(&Build) -> bool) -> Vec<String> {
    let finding = |build: &Build| {
        let (new, old) = (find(counted, build)?.crates, find(recorded, build)?.crates);
        let remedy = match build.growth {
            Growth::Never { .. } => "this number never rises: do without the new dependency".to_owned(),
            Growth::WithReason => format!("if it must be, record it in {RECORD} with the reason"),
        };
        let name = build.name;
        (new > old).then(|| format!("`{name}` compiles {new} crates, {old} are recorded: {remedy}"))
    };
    BUILDS.iter().filter(|build| is_checked(build)).filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::{BUILDS, Count, Growth, check, count, names, parse, risen};

    #[test]
    fn no_build_compiles_more_crates_than_recorded() {
        assert_eq!(check(&count().unwrap()), Ok(()));
    }

    #[test]
    fn the_recorded_numbers_keep_their_bars() {
        let recorded = super::recorded().unwrap();
        for build in BUILDS {
            let row = recorded.iter().find(|row| row.name == build.name);
            let crates = row.unwrap_or_else(|| panic!("`{}` is not recorded", build.name)).crates;
            assert!(
                !matches!(build.growth, Growth::Never { bar } if crates > bar),
                "{}: {crates}",
                build.name
            );
        }
    }

    #[test]
    fn a_risen_number_is_a_finding() {
        let rows = |more: usize| {
            let row = |build: &super::Build| Count {
                name: build.name.to_owned(),
                crates: 10 + more,
                reason: String::new(),
            };
            BUILDS.iter().map(row).collect::<Vec<_>>()
        };
        assert!(risen(&rows(0), &rows(0), |_| true).is_empty());
        assert!(risen(&rows(0), &rows(1), |_| true).is_empty());
        assert_eq!(risen(&rows(1), &rows(0), |_| true).len(), BUILDS.len());
    }

    #[test]
    fn a_crate_counts_once_per_version() {
        let tree = "a v1.0.0 (/somewhere)\nb v1.0.0\nb v1.0.0 (*)\n\nb v2.0.0\n";
        assert_eq!(names(tree).len(), 3);
    }

    #[test]
    fn a_row_of_the_record_has_a_name_a_number_and_perhaps_a_reason() {
        let rows = parse("# head\nhttp  95\ncommand  170  needs a terminal\n").unwrap();
        assert_eq!((rows[0].crates, rows[1].reason.as_str()), (95, "needs a terminal"));
        assert!(parse("http many\n").is_err());
    }
}
