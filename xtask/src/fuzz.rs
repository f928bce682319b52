//! `cargo xtask fuzz`: the targets of `fuzz/`, each for a fixed time.
//!
//! Fuzzing requires a nightly toolchain and cargo-fuzz, which a clean clone does not have. An ordinary test replays the
//! seed corpus on stable; this command searches for new inputs.

use std::fs;
use std::process::Command;

use crate::{Failure, process};

const DEFAULT_SECONDS: u32 = 60;

/// Options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    seconds: u32,
    target: Option<String>,
}

/// Runs the targets one after the other. Fails if one finds a crash, or if none can run.
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
    let found: Vec<&String> = targets.iter().filter(|target| run(target, request.seconds).is_err()).collect();
    println!("\nsummary of cargo xtask fuzz, {} s each:", request.seconds);
    for target in &targets {
        println!("  {}  {target}", if found.contains(&target) { "FAILED" } else { "clean " });
    }
    println!("{} clean, {} failed", targets.len() - found.len(), found.len());
    if found.is_empty() { Ok(()) } else { Err(Failure::Failed) }
}

fn read(arguments: &[String]) -> Result<Request, Failure> {
    let mut request = Request { seconds: DEFAULT_SECONDS, target: None };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let value = rest.next().map(String::as_str).unwrap_or_default();
            request.seconds = match value.parse() {
                Ok(seconds) if seconds > 0 => seconds,
                _ => {
                    return Err(Failure::Usage(format!(
                        "--seconds needs a whole number above 0, got `{value}`"
                    )));
                }
            };
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

fn run(target: &str, seconds: u32) -> Result<(), String> {
    // libFuzzer writes new inputs into the first folder. The seeds are checked in, so they come second.
    let fresh = format!("fuzz/corpus.work/{target}");
    let seeds = format!("fuzz/corpus/{target}");
    let mut cargo = nightly();
    cargo.args(["fuzz", "run", target, &fresh]);
    if process::root().join(&seeds).is_dir() {
        cargo.arg(&seeds);
    }
    cargo.arg("--").arg(format!("-max_total_time={seconds}"));
    println!("\n==> {target}: cargo +nightly fuzz run {target}, {seconds} s");
    let outcome = fs::create_dir_all(process::root().join(&fresh))
        .map_err(|error| format!("could not create {fresh}: {error}"))
        .and_then(|()| process::run(&mut cargo));
    if let Err(reason) = &outcome {
        println!("==> {target} FAILED: {reason}; an input that fails is kept in fuzz/artifacts/{target}/");
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::{Request, chosen, read, targets};
    use crate::Failure;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_command_line_is_read() {
        let check = |given: &[&str], seconds, target: Option<&str>| {
            let want = Request { seconds, target: target.map(str::to_owned) };
            assert_eq!(read(&words(given)), Ok(want), "{given:?}");
        };
        check(&[], 60, None);
        check(&["--seconds", "5"], 5, None);
        check(&["frame", "--seconds", "5"], 5, Some("frame"));
        check(&["--seconds", "5", "frame"], 5, Some("frame"));
    }

    #[test]
    fn a_command_line_that_makes_no_sense_is_refused() {
        for given in
            [&["--seconds"][..], &["--seconds", "0"], &["--seconds", "x"], &["--forever"], &["a", "b"]]
        {
            assert!(matches!(read(&words(given)), Err(Failure::Usage(_))), "{given:?}");
        }
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
