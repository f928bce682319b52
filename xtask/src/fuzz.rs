//! `cargo xtask fuzz`: the targets of `fuzz/`, each for a fixed time.
//!
//! Fuzzing requires a nightly toolchain and cargo-fuzz, which a clean clone does not have. An ordinary test replays the
//! seed corpus on stable; this command searches for new inputs.

use std::fs::{self, File};
use std::num::NonZeroU32;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::{Failure, process};

const DEFAULT_SECONDS: u32 = 60;
/// What libFuzzer prints before the number of executions of a target, with `-print_final_stats=1`.
const EXECUTIONS: &str = "stat::number_of_executed_units:";

/// Options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    seconds: u32,
    /// Targets that run at the same time.
    jobs: u32,
    target: Option<String>,
}

/// What a target did.
struct Report {
    target: String,
    /// `None` if it ended before it could say so.
    executions: Option<u64>,
    outcome: Result<(), String>,
}

/// Runs the targets. Fails if one finds a crash, or if none can run.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let request = read(arguments)?;
    let manifest = process::root().join("fuzz").join("Cargo.toml");
    let Ok(manifest) = fs::read_to_string(&manifest) else {
        eprintln!("error: nothing to run: there is no fuzz/Cargo.toml yet");
        return Err(Failure::Failed);
    };
    let targets = chosen(&targets(&manifest), request.target.as_deref())?;
    if let Some(advice) = missing_tool() {
        eprintln!("error: no fuzz target was run: {advice}");
        return Err(Failure::Failed);
    }
    let reports = run_all(&targets, &request);
    let failed = reports.iter().filter(|report| report.outcome.is_err()).count();
    println!("\nsummary of cargo xtask fuzz, {} s each:\n", request.seconds);
    println!("| target | executions | outcome |\n|---|---:|---|");
    for Report { target, executions, outcome } in &reports {
        let executions = executions.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let outcome =
            outcome.as_ref().map_or_else(|reason| format!("FAILED: {reason}"), |()| "clean".to_owned());
        println!("| `{target}` | {executions} | {outcome} |");
    }
    println!("\n{} clean, {failed} failed", reports.len() - failed);
    if failed == 0 { Ok(()) } else { Err(Failure::Failed) }
}

/// Runs the targets, some of them at the same time, and returns their reports in the order of the targets.
fn run_all(targets: &[String], request: &Request) -> Vec<Report> {
    // Targets that were built side by side would wait for each other's lock, in their time.
    let mut build = nightly();
    build.args(["fuzz", "build"]).args(request.target.iter());
    if let Err(reason) = process::run(&mut build) {
        eprintln!("error: cargo +nightly fuzz build: {reason}");
    }
    let waiting = Mutex::new(targets.iter());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    let mut reports: Vec<Report> = thread::scope(|scope| {
        let worker =
            || std::iter::from_fn(next).map(|target| run(target, request.seconds)).collect::<Vec<_>>();
        let workers: Vec<_> = (0..request.jobs).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    reports.sort_by_key(|report| targets.iter().position(|target| *target == report.target));
    reports
}

fn read(arguments: &[String]) -> Result<Request, Failure> {
    let mut request = Request { seconds: DEFAULT_SECONDS, jobs: 1, target: None };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" || argument == "--jobs" {
            let value = rest.next().map(String::as_str).unwrap_or_default();
            let number: NonZeroU32 = value.parse().map_err(|_| {
                Failure::Usage(format!("{argument} needs a whole number above 0, got `{value}`"))
            })?;
            *if argument == "--jobs" { &mut request.jobs } else { &mut request.seconds } = number.get();
        } else if argument.starts_with('-') || request.target.is_some() {
            return Err(Failure::Usage(format!("`cargo xtask fuzz` does not understand `{argument}`")));
        } else {
            request.target = Some(argument.clone());
        }
    }
    Ok(request)
}

/// Returns the names of the `[[bin]]` tables: cargo-fuzz builds one binary per target.
fn targets(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[[bin]]"
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "name"
        {
            names.push(value.trim().trim_matches('"').to_owned());
        }
    }
    names
}

fn chosen(all: &[String], wanted: Option<&str>) -> Result<Vec<String>, Failure> {
    match wanted {
        Some(name) if all.iter().any(|target| target == name) => Ok(vec![name.to_owned()]),
        Some(name) => Err(Failure::Usage(format!("no fuzz target `{name}`; there are: {}", all.join(", ")))),
        None if all.is_empty() => {
            eprintln!("error: nothing to run: fuzz/Cargo.toml names no [[bin]]");
            Err(Failure::Failed)
        }
        None => Ok(all.to_vec()),
    }
}

/// Uses the `cargo` of `PATH`, not the one that runs this command: only the rustup proxy understands `+nightly`.
fn nightly() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN");
    cargo
}

fn missing_tool() -> Option<&'static str> {
    if !process::succeeds(nightly().arg("--version")) {
        return Some(
            "there is no nightly toolchain.\n  \
             rustup toolchain install nightly --profile minimal\n  cargo +nightly install cargo-fuzz --locked",
        );
    }
    if !process::succeeds(nightly().args(["fuzz", "--version"])) {
        return Some(
            "there is a nightly toolchain but no cargo-fuzz.\n  cargo +nightly install cargo-fuzz --locked",
        );
    }
    None
}

/// Runs a target. Its output goes to a log, whose end is printed if it fails.
fn run(target: &str, seconds: u32) -> Report {
    let log = process::target().join("fuzz-logs").join(format!("{target}.log"));
    println!("==> {target}: {seconds} s; its output is in {}", log.display());
    let outcome = logged(target, seconds, &log).map_err(|reason| {
        let tail = fs::read_to_string(&log).unwrap_or_default();
        let tail: Vec<&str> = tail.lines().rev().take(30).collect();
        tail.iter().rev().for_each(|line| println!("{line}"));
        format!("{reason}; an input that fails is kept in fuzz/artifacts/{target}/")
    });
    let executions = fs::read_to_string(&log).ok().and_then(|text| executions(&text));
    Report { target: target.to_owned(), executions, outcome }
}

fn logged(target: &str, seconds: u32, log: &std::path::Path) -> Result<(), String> {
    // libFuzzer writes new inputs into the first folder. The seeds are checked in, so they come second.
    let fresh = format!("fuzz/corpus.work/{target}");
    let seeds = format!("fuzz/corpus/{target}");
    let mut cargo = nightly();
    cargo.args(["fuzz", "run", target, &fresh]);
    if process::root().join(&seeds).is_dir() {
        cargo.arg(&seeds);
    }
    cargo.args(["--", "-print_final_stats=1", &format!("-max_total_time={seconds}")]);
    let prepared = fs::create_dir_all(process::root().join(&fresh))
        .and_then(|()| log.parent().map_or(Ok(()), fs::create_dir_all))
        .and_then(|()| File::create(log))
        .and_then(|file| Ok((file.try_clone()?, file)));
    let (output, errors) = prepared.map_err(|error| format!("could not prepare the run: {error}"))?;
    process::run(cargo.stdout(output).stderr(errors))
}

/// Reads the number of executions from the output of a target.
fn executions(output: &str) -> Option<u64> {
    output.lines().rev().find_map(|line| line.strip_prefix(EXECUTIONS)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{Request, chosen, executions, read, targets};
    use crate::Failure;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_read() {
        let check = |given: &[&str], seconds, jobs, target: Option<&str>| {
            let want = Request { seconds, jobs, target: target.map(str::to_owned) };
            assert_eq!(read(&words(given)), Ok(want), "{given:?}");
        };
        check(&[], 60, 1, None);
        check(&["--seconds", "5"], 5, 1, None);
        check(&["frame", "--seconds", "5"], 5, 1, Some("frame"));
        check(&["--seconds", "5", "frame", "--jobs", "2"], 5, 2, Some("frame"));
    }

    #[test]
    fn a_command_line_that_makes_no_sense_is_refused() {
        for given in [
            &["--seconds"][..],
            &["--jobs", "0"],
            &["--seconds", "0"],
            &["--seconds", "x"],
            &["--forever"],
            &["a", "b"],
        ] {
            assert!(matches!(read(&words(given)), Err(Failure::Usage(_))), "{given:?}");
        }
    }

    #[test]
    fn executions_are_in_the_statistics_at_the_end() {
        let output = "#8 DONE\nstat::number_of_executed_units: 81234\nstat::peak_rss_mb: 60\n";
        assert_eq!(executions(output), Some(81_234));
        assert_eq!(executions("==1== ERROR: libFuzzer: deadly signal\n"), None);
    }

    #[test]
    fn targets_are_the_names_of_the_binaries() {
        let manifest = "[package]\nname = \"fuzz\"\n[[bin]]\nname = \"frame\"\npath = \"x.rs\"\n\n\
                        [[bin]]\npath = \"y.rs\"\nname=\"meta\"\n[profile.release]\nname = \"no\"\n";
        assert_eq!(targets(manifest), ["frame", "meta"]);
    }

    #[test]
    fn a_target_that_does_not_exist_is_refused_with_those_that_do() {
        let all = words(&["frame", "meta"]);
        assert_eq!(chosen(&all, Some("meta")), Ok(words(&["meta"])));
        assert_eq!(chosen(&all, None), Ok(all.clone()));
        let refusal = chosen(&all, Some("body"));
        assert!(matches!(refusal, Err(Failure::Usage(text)) if text.contains("frame, meta")));
        assert_eq!(chosen(&[], None), Err(Failure::Failed));
    }
}
