//! `cargo xtask tidy`: the invariants of the source tree, checked on every test run.
//!
//! [`rules`] is the table of rules; `tree`, `scan` and `paths` provide the sources, `licences` those of the
//! dependencies.

mod licences;
mod paths;
mod rules;
mod scan;
mod tree;

use std::fmt;

use self::rules::RULES;
use self::tree::Tree;
use crate::process;
use crate::{Failure, no_arguments};

/// A violation of a rule.
#[derive(Debug)]
struct Finding {
    path: String,
    /// Counted from 1; 0 for the file as a whole.
    line: usize,
    /// Description of the violation.
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.what),
            line => write!(out, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Checks the repository and prints every finding.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("tidy", arguments)?;
    check_repository().map_err(|reason| {
        eprintln!("tidy: {reason}");
        Failure::Failed
    })
}

/// Prints every finding; `Err` gives their number.
pub(crate) fn check_repository() -> Result<(), String> {
    let mut tree = Tree::read(&process::root())?;
    // An empty tree breaks no rule, so a wrong folder must be an error.
    if !tree.sources().any(|source| source.path.starts_with("crates/")) {
        return Err("no sources below crates/: is this the root of the repository?".to_owned());
    }
    if let Some(report) = licences::read() {
        tree.add(licences::REPORT, &report);
    }
    let mut failures = 0_usize;
    for rule in RULES {
        for finding in (rule.check)(&tree) {
            println!("error[{}]: {finding}\n    {}", rule.name, rule.remedy);
            failures += 1;
        }
    }
    println!("tidy: {} rules over {} sources: {failures} broken", RULES.len(), tree.sources().count());
    if failures == 0 { Ok(()) } else { Err(format!("{failures} findings, listed above")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_keeps_its_rules() {
        assert_eq!(super::check_repository(), Ok(()));
    }
}
