//! Layout of files: length, name and header.

use crate::tidy::Finding;
use crate::tidy::tree::{Source, Tree};

/// Maximum lines of a file before its tests.
const MAX_LINES: usize = 400;
/// Maximum lines of a module header.
const HEADER: usize = 10;

/// Tables, which have no limit.
const TABLES: &[&str] = &["crates/duplexer-types/src/methods.rs"];

pub(super) fn size(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources().filter(|source| !source.is_test && !TABLES.contains(&source.path.as_str())) {
        let lines = lines_before_tests(source);
        if lines > MAX_LINES {
            let what = format!("{lines} lines before its tests, more than {MAX_LINES}");
            findings.push(Finding::new(&source.path, 0, what));
        }
    }
    findings
}

fn lines_before_tests(source: &Source) -> usize {
    // Searches the code without strings and comments.
    let tests = source.scan.code.iter().position(|line| line.starts_with("#[cfg(test)]"));
    tests.unwrap_or_else(|| source.text.lines().count())
}

pub(super) fn mod_rs(tree: &Tree) -> Vec<Finding> {
    let files = tree.sources().filter(|source| source.path.ends_with("/mod.rs"));
    files.map(|source| Finding::new(&source.path, 0, "is called mod.rs")).collect()
}

pub(super) fn header(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources() {
        let Some((_, module)) = source.module() else {
            continue;
        };
        let lines = source.text.lines().skip_while(|line| line.trim().is_empty());
        let length = lines.take_while(|line| line.starts_with("//!")).count();
        if length == 0 {
            findings.push(Finding::new(&source.path, 1, "has no module header"));
        } else if length > HEADER && !module.is_empty() {
            let what = format!("its module header has {length} lines, more than {HEADER}");
            findings.push(Finding::new(&source.path, 1, what));
        }
    }
    findings
}
