//! `cargo xtask platforms`: compiles the product for the platforms on which it is not tested.
//!
//! Some features contain C code, which requires a cross-compiler. Without one those features are left out, and the
//! summary says so: nothing is left out silently.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{self, program, run};
use crate::{Failure, no_arguments};

/// A platform, and the C compilers that produce code for it, best first.
struct Platform {
    name: &'static str,
    target: &'static str,
    compilers: &'static [&'static str],
}

/// The target of the step of `cargo xtask test`.
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";

const PLATFORMS: &[Platform] = &[
    Platform { name: "Windows", target: WINDOWS, compilers: &["x86_64-w64-mingw32-gcc"] },
    Platform {
        name: "macOS",
        target: "aarch64-apple-darwin",
        compilers: &["oa64-clang", "aarch64-apple-darwin-clang"],
    },
];

/// The features of the facade whose dependencies contain no C code.
const FEATURES_WITHOUT_C: &str = "http,http-client,otel";

/// Maximum time to fetch a target.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);

/// Checks each platform as far as this machine can, and names the rest.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("platforms", arguments)?;
    let mut left_out = Vec::new();
    for platform in PLATFORMS {
        println!("\n==> {} ({})", platform.name, platform.target);
        match platform.check() {
            Ok(None) => println!("==> {}: compiles with all features", platform.name),
            Ok(Some(rest)) => left_out.push(format!("{}: {rest}", platform.name)),
            Err(reason) => {
                eprintln!("error: {}: {reason}", platform.name);
                return Err(Failure::Failed);
            }
        }
    }
    for rest in &left_out {
        println!("LEFT OUT  {rest}");
    }
    println!(
        "{} of {} platforms compiled with all features",
        PLATFORMS.len() - left_out.len(),
        PLATFORMS.len()
    );
    Ok(())
}

impl Platform {
    /// Compiles as much as possible. Returns what was left out and why.
    fn check(&self) -> Result<Option<String>, String> {
        if !target_is_available(self.target) {
            return Ok(Some(format!("everything: {}", no_target(self.target))));
        }
        let Some(compiler) = self.compiler() else {
            check(self.target, &["--package", "duplexer", "--features", FEATURES_WITHOUT_C], None)?;
            return Ok(Some(format!(
                "the command and all features but {FEATURES_WITHOUT_C}: they contain C code, and there is no \
                 {} on PATH; {} can name another compiler",
                self.compilers.join(" or "),
                self.variable(),
            )));
        };
        check(
            self.target,
            &["--package", "duplexer", "--all-features"],
            Some((&self.variable(), &compiler)),
        )?;
        check(self.target, &["--package", "duplexer-cli"], Some((&self.variable(), &compiler)))?;
        Ok(None)
    }

    /// Returns the variable that build scripts read for a C compiler.
    fn variable(&self) -> String {
        format!("CC_{}", self.target.replace('-', "_"))
    }

    fn compiler(&self) -> Option<String> {
        if let Ok(named) = env::var(self.variable()) {
            return Some(named);
        }
        let is_native = match self.name {
            "macOS" => cfg!(target_os = "macos"),
            _ => cfg!(windows),
        };
        if is_native {
            return Some("cc".to_owned());
        }
        self.compilers.iter().find(|name| process::is_installed(name)).map(|name| (*name).to_owned())
    }
}

/// The command that checks the step of `cargo xtask test`.
pub(crate) const WINDOWS_CHECK: process::CommandLine = process::CommandLine {
    program: "cargo",
    arguments: &["check", "--locked", "--package", "duplexer", "--features", "http", "--target", WINDOWS],
    environment: &[("RUSTFLAGS", "-D warnings")],
};

fn check(target: &str, what: &[&str], compiler: Option<(&str, &str)>) -> Result<(), String> {
    let mut cargo = Command::new(program("cargo"));
    cargo.args(["check", "--locked", "--target", target]).args(what).envs(compiler);
    run(&mut cargo).map_err(|reason| format!("cargo check --target {target} {}: {reason}", what.join(" ")))
}

/// Returns whether the standard library of a target is installed, after an attempt to add it.
pub(crate) fn target_is_available(target: &str) -> bool {
    if is_installed(target) {
        return true;
    }
    if !process::is_installed("rustup") {
        return false;
    }
    println!("==> rustup target add {target}");
    let mut add = Command::new("rustup");
    add.args(["target", "add", target]).env("RUSTUP_MAX_RETRIES", "1");
    process::succeeds_within(&mut add, FETCH_TIMEOUT) && is_installed(target)
}

/// Says that a target is missing, and how to add it.
pub(crate) fn no_target(target: &str) -> String {
    format!("the Rust target {target} is not installed and could not be added (rustup target add {target})")
}

fn is_installed(target: &str) -> bool {
    let printed = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "target-libdir", "--target", target])
        .output();
    printed.is_ok_and(|printed| {
        printed.status.success() && Path::new(String::from_utf8_lossy(&printed.stdout).trim()).is_dir()
    })
}

#[cfg(test)]
mod tests {
    use super::{PLATFORMS, is_installed};

    #[test]
    fn the_variable_of_a_compiler_is_the_one_that_build_scripts_read() {
        assert_eq!(PLATFORMS[0].variable(), "CC_x86_64_pc_windows_gnu");
    }

    #[test]
    fn a_target_that_does_not_exist_is_not_installed() {
        assert!(!is_installed("pdp11-dec-unix"));
    }
}
