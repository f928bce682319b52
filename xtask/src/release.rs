//! `cargo xtask release --dry-run`: packages every published crate in order and builds each from its package.
//!
//! It publishes nothing: `CONTRIBUTING.md` has the steps of a release. A crate that is missing from the order, or stands
//! before one that it depends on, fails the command before anything is built.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Failure, process};

/// Where the packages are written, below the build folder.
const PACKAGES: &str = "package";

/// A published crate, and those of the workspace that it depends on.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    needs: Vec<String>,
}

/// Packages all crates and verifies them. `--list` only prints the order.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let failed = |reason: String| {
        eprintln!("error: {reason}");
        Failure::Failed
    };
    let packages = packages(&process::root().join("crates")).map_err(failed)?;
    let order = order(&packages).map_err(failed)?;
    match words.as_slice() {
        ["--list"] => {
            println!("{}", order.join("\n"));
            Ok(())
        }
        ["--dry-run"] => dry_run(&order).map_err(failed),
        [] => Err(Failure::Usage(
            "this command publishes nothing: say `--dry-run`, or `--list` for the order of crates".to_owned(),
        )),
        [other, ..] => {
            Err(Failure::Usage(format!("`cargo xtask release` takes --dry-run or --list, got `{other}`")))
        }
    }
}

fn dry_run(order: &[&str]) -> Result<(), String> {
    let mut cargo = Command::new(process::program("cargo"));
    cargo.args(["publish", "--dry-run", "--locked", "--allow-dirty"]);
    for name in order {
        cargo.args(["--package", name]);
    }
    process::run(&mut cargo).map_err(|reason| format!("cargo publish --dry-run: {reason}"))?;
    let msrv = minimum_rust()?;
    if process::succeeds(Command::new("rustup").args(["run", &msrv, "cargo", "--version"])) {
        let mut check = Command::new("rustup");
        check.args(["run", &msrv, "cargo", "check", "--locked", "--target-dir", "target/msrv"]);
        check.args(["--package", "duplexer", "--all-features", "--package", "duplexer-cli"]);
        process::run(check.env_remove("RUSTC").env_remove("CARGO"))
            .map_err(|reason| format!("Rust {msrv}, the oldest that is supported: {reason}"))?;
        println!("built with Rust {msrv}, the oldest that is supported");
    } else {
        println!("LEFT OUT  the build with Rust {msrv}: `rustup toolchain install {msrv}` installs it");
    }
    println!("{} crates packaged and verified, in target/{PACKAGES}", order.len());
    Ok(())
}

/// Returns `rust-version` of the workspace.
fn minimum_rust() -> Result<String, String> {
    let manifest = process::root().join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    value(&text, "rust-version").map(str::to_owned).ok_or_else(|| "no rust-version in Cargo.toml".to_owned())
}

/// Reads the manifests below a folder.
fn packages(folder: &Path) -> Result<Vec<Package>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut packages = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let manifest = entry.map_err(unreadable)?.path().join("Cargo.toml");
        if let Ok(text) = fs::read_to_string(&manifest) {
            packages.extend(Package::read(&text));
        }
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(packages)
}

impl Package {
    /// Reads a manifest. `None` for a package that is not published.
    fn read(manifest: &str) -> Option<Self> {
        if value(manifest, "publish") == Some("false") {
            return None;
        }
        let name = value(manifest, "name")?.to_owned();
        let mut section = "";
        let mut needs = Vec::new();
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if section.contains("dependencies]") && !section.starts_with("[dev-") {
                let needed = line.split(['.', ' ', '=']).next().unwrap_or_default();
                if needed.starts_with("duplexer") && needed != name && !needs.iter().any(|has| has == needed)
                {
                    needs.push(needed.to_owned());
                }
            }
        }
        Some(Self { name, needs })
    }
}

/// Returns the value of the first `key = value` of a manifest, without quotes.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    Some(line.trim().trim_matches('"'))
}

/// Returns the names in an order in which each stands behind what it depends on.
fn order(packages: &[Package]) -> Result<Vec<&str>, String> {
    let mut order: Vec<&str> = Vec::new();
    while order.len() < packages.len() {
        let ready = packages.iter().find(|package| {
            !order.contains(&package.name.as_str())
                && package.needs.iter().all(|needed| order.contains(&needed.as_str()))
        });
        let Some(package) = ready else {
            let left = packages.iter().map(|package| package.name.as_str());
            let left: Vec<&str> = left.filter(|name| !order.contains(name)).collect();
            let left = left.join(", ");
            return Err(format!(
                "these crates depend on each other, or on one that is not published: {left}"
            ));
        };
        order.push(&package.name);
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::{Package, order, value};

    fn package(name: &str, needs: &[&str]) -> Package {
        Package { name: name.to_owned(), needs: needs.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn a_crate_stands_behind_what_it_depends_on() {
        let packages = [package("a", &["b", "c"]), package("b", &["c"]), package("c", &[])];
        assert_eq!(order(&packages), Ok(vec!["c", "b", "a"]));
    }

    #[test]
    fn crates_that_depend_on_each_other_are_an_error_that_names_them() {
        let packages = [package("a", &["b"]), package("b", &["a"]), package("c", &[])];
        let error = order(&packages).expect_err("a circle");
        assert!(error.ends_with("a, b"), "{error}");
    }

    #[test]
    fn a_manifest_names_what_is_needed_without_tests() {
        let manifest = "[package]\nname = \"duplexer-x\"\n[dependencies]\nduplexer-core.workspace = true\n\
            duplexer-http = { workspace = true, optional = true }\nserde.workspace = true\n\
            [dev-dependencies]\nduplexer = { path = \"..\" }\n";
        assert_eq!(Package::read(manifest), Some(package("duplexer-x", &["duplexer-core", "duplexer-http"])));
        assert_eq!(Package::read("[package]\nname = \"x\"\npublish = false\n"), None);
    }

    #[test]
    fn a_value_has_no_quotes() {
        assert_eq!(value("rust-version = \"1.88\"", "rust-version"), Some("1.88"));
        assert_eq!(value("rust = 1", "rust-version"), None);
    }
}
