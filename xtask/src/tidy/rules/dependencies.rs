//! Licences, sources and versions of the dependencies, checked against the lists of `deny.toml`.
//!
//! `cargo deny check` checks the same lists and the advisories besides, but it is not part of the toolchain.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Finding;
use crate::tidy::licences::REPORT;
use crate::tidy::tree::{Source, Tree};

const LOCK: &str = "Cargo.lock";
const DENY: &str = "deny.toml";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A package of a lock file.
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    /// Line of its name.
    line: usize,
}

/// An entry of a list in `deny.toml`.
struct Entry<'a> {
    text: &'a str,
    line: usize,
}

impl<'a> Entry<'a> {
    /// Returns the first quoted text after `key`.
    fn value(&self, key: &str) -> Option<&'a str> {
        let (_, rest) = self.text.split_once(&format!("{key} = "))?;
        rest.split('"').nth(1)
    }
}

pub(super) fn licences(tree: &Tree) -> Vec<Finding> {
    let (Some(deny), Some(report)) = (file(tree, DENY), file(tree, REPORT)) else {
        return Vec::new();
    };
    let allowed: Vec<&str> = entries(deny, "[licenses]", "allow")
        .iter()
        .filter_map(|entry| entry.text.split('"').nth(1))
        .collect();
    let exceptions = entries(deny, "[licenses]", "exceptions");
    let mut findings = unused(tree, deny, &exceptions);
    let mut seen = BTreeSet::new();
    for (index, line) in report.text.lines().enumerate() {
        let Some((package, licence)) = line.trim_end_matches(" (*)").split_once('|') else {
            continue;
        };
        let name = package.split(' ').next().unwrap_or_default();
        let own = exceptions.iter().filter(|entry| entry.value("crate") == Some(name));
        let allowed: Vec<&str> =
            allowed.iter().copied().chain(own.filter_map(|entry| entry.value("allow"))).collect();
        if seen.insert(package) && !is_allowed(licence, &allowed) {
            let licence = if licence.is_empty() { "no licence" } else { licence };
            let what = format!("{package} has {licence}, which {DENY} does not allow");
            findings.push(Finding::new(REPORT, index + 1, what));
        }
    }
    findings
}

pub(super) fn sources(tree: &Tree) -> Vec<Finding> {
    let locks = tree.files().filter(|file| file.path.rsplit('/').next() == Some(LOCK));
    let mut findings = Vec::new();
    for lock in locks {
        for (index, line) in lock.text.lines().enumerate() {
            if let Some(source) = line.strip_prefix("source = ").map(|source| source.trim_matches('"'))
                && source != REGISTRY
            {
                findings.push(Finding::new(&lock.path, index + 1, format!("the source {source}")));
            }
        }
    }
    findings
}

pub(super) fn duplicates(tree: &Tree) -> Vec<Finding> {
    let (Some(deny), Some(lock)) = (file(tree, DENY), file(tree, LOCK)) else {
        return Vec::new();
    };
    let skipped = entries(deny, "[bans]", "skip");
    let mut findings = unused(tree, deny, &skipped);
    for entry in skipped.iter().filter(|entry| entry.value("reason").is_none_or(str::is_empty)) {
        findings.push(Finding::new(DENY, entry.line, "has no reason"));
    }
    let mut versions: BTreeMap<&str, Vec<Package>> = BTreeMap::new();
    for package in packages(lock) {
        let is_skipped =
            skipped.iter().any(|entry| entry.value("crate").is_some_and(|spec| names(spec, &package)));
        if !is_skipped {
            versions.entry(package.name).or_default().push(package);
        }
    }
    for packages in versions.values() {
        if let [.., last] = &packages[..]
            && packages.len() > 1
        {
            let found: Vec<&str> = packages.iter().map(|package| package.version).collect();
            let what = format!("{} in the versions {}", last.name, found.join(", "));
            findings.push(Finding::new(LOCK, last.line, what));
        }
    }
    findings
}

/// Returns a finding for each entry whose crate is not in the lock file: lists only shrink if they are checked.
fn unused(tree: &Tree, deny: &Source, entries: &[Entry]) -> Vec<Finding> {
    let known: Vec<Package> = file(tree, LOCK).map(packages).unwrap_or_default();
    let is_used = |spec: &str| known.iter().any(|package| names(spec, package));
    let unused = entries.iter().filter(|entry| !entry.value("crate").is_some_and(is_used));
    unused.map(|entry| Finding::new(&deny.path, entry.line, "matches no package of Cargo.lock")).collect()
}

/// Returns whether `name` or `name@version` is the package. A version can be shortened: `0.2` is any 0.2.x.
fn names(spec: &str, package: &Package) -> bool {
    let Some((name, version)) = spec.split_once('@') else {
        return spec == package.name;
    };
    let rest = package.version.strip_prefix(version);
    name == package.name && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn file<'a>(tree: &'a Tree, path: &str) -> Option<&'a Source> {
    tree.files().find(|file| file.path == path)
}

fn packages(lock: &Source) -> Vec<Package<'_>> {
    let mut packages = Vec::new();
    let mut name = "";
    for (index, line) in lock.text.lines().enumerate() {
        let quoted = || line.split('"').nth(1).unwrap_or_default();
        if line.starts_with("name = ") {
            name = quoted();
        } else if line.starts_with("version = \"") && !name.is_empty() {
            packages.push(Package { name, version: quoted(), line: index });
            name = "";
        }
    }
    packages
}

/// Returns the lines of an array, which has one element per line.
fn entries<'a>(deny: &'a Source, section: &str, key: &str) -> Vec<Entry<'a>> {
    let start = format!("{key} = [");
    let (mut in_section, mut in_array, mut entries) = (false, false, Vec::new());
    for (index, line) in deny.text.lines().enumerate() {
        let text = line.trim();
        if in_array && !text.starts_with(']') {
            if !text.starts_with('#') {
                entries.push(Entry { text, line: index + 1 });
            }
            continue;
        }
        if line.starts_with('[') {
            in_section = line == section;
        }
        in_array = in_section && text == start;
    }
    entries
}

/// Returns whether the allowed licences satisfy an expression. A slash is an old spelling of `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any(&mut rest, allowed) && rest.is_empty()
}

/// Reads alternatives, up to a closing parenthesis or the end.
fn any(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut holds = all(words, allowed);
    while let ["OR", rest @ ..] = words {
        *words = rest;
        holds |= all(words, allowed);
    }
    holds
}

fn all(words: &mut &[&str], allowed: &[&str]) -> bool {
    let mut holds = one(words, allowed);
    while let ["AND", rest @ ..] = words {
        *words = rest;
        holds &= one(words, allowed);
    }
    holds
}

/// Reads a licence, with its exception, or a group. A missing word satisfies nothing.
fn one(words: &mut &[&str], allowed: &[&str]) -> bool {
    match words {
        ["(", rest @ ..] => {
            *words = rest;
            let holds = any(words, allowed);
            let [")", rest @ ..] = words else {
                return false;
            };
            *words = rest;
            holds
        }
        [licence, "WITH", exception, rest @ ..] => {
            let licence = format!("{licence} WITH {exception}");
            *words = rest;
            allowed.contains(&&*licence)
        }
        [licence, rest @ ..] => {
            let licence = *licence;
            *words = rest;
            allowed.contains(&licence)
        }
        [] => false,
    }
}
