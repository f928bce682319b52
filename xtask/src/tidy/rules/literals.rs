//! Literals that are restricted to some files: method names, protocol revisions, and paths outside the repository.

use crate::tidy::Finding;
use crate::tidy::scan::is_word;
use crate::tidy::tree::{Source, Tree, has_extension};

/// First parts of method names, before the slash.
const FAMILIES: &[&str] = &[
    "completion",
    "elicitation",
    "logging",
    "notifications",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "server",
    "skills",
    "subscriptions",
    "tasks",
    "tools",
];

/// Methods without a slash. Only a literal that is exactly the name is reported: both are ordinary words.
const PLAIN_METHODS: &[&str] = &["initialize", "ping"];

pub(super) fn methods(tree: &Tree) -> Vec<Finding> {
    let homes = ["crates/duplexer-types/src/methods.rs", "crates/duplexer-types/src/methods/"];
    let mut findings = Vec::new();
    for source in product(tree).filter(|source| !homes.iter().any(|home| source.is_at(home))) {
        let literals = source.scan.strings.iter().filter(|literal| source.is_production(literal.line));
        for literal in literals.filter(|literal| !is_doc_alias(source, literal.line)) {
            if let Some(method) = method_in(&literal.text) {
                findings.push(Finding::new(&source.path, literal.line, format!("the literal \"{method}\"")));
            }
        }
    }
    findings
}

/// Whether the line makes a type searchable by its method in the documentation.
fn is_doc_alias(source: &Source, line: usize) -> bool {
    source.scan.code.get(line.saturating_sub(1)).is_some_and(|code| code.contains("#[doc(alias"))
}

fn method_in(text: &str) -> Option<&str> {
    if PLAIN_METHODS.contains(&text) {
        return Some(text);
    }
    let mut words = text.split(|c: char| !is_word(c) && c != '/');
    words.find(|word| {
        let family = word.split_once('/').filter(|(_, name)| !name.is_empty() && !name.ends_with('/'));
        family.is_some_and(|(family, _)| FAMILIES.contains(&family))
    })
}

/// Files that decide by revision; all others use a feature window. In duplexer-types the windows themselves are the
/// data, down to single fields.
const VERSION_HOMES: &[&str] = &[
    "crates/duplexer-types/src/",
    "crates/duplexer-server/src/kernel/driver.rs",
    "crates/duplexer-server/src/kernel/envelope.rs",
    "crates/duplexer-server/src/kernel/lifecycle.rs",
    "crates/duplexer-client/src/negotiate.rs",
    "crates/duplexer-http/src/server/envelope.rs",
    "crates/duplexer-http/src/server/handshake.rs",
];

pub(super) fn versions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in product(tree).filter(|source| !VERSION_HOMES.iter().any(|home| source.is_at(home))) {
        for (line, code) in source.production() {
            let variant = code
                .split(|c| !is_word(c))
                .find(|word| word.strip_prefix('V').is_some_and(|date| is_date(date, '_')));
            findings.extend(variant.map(|name| Finding::new(&source.path, line, format!("names `{name}`"))));
        }
        let dates = source.scan.strings.iter().filter(|literal| is_date(&literal.text, '-'));
        for date in dates.filter(|date| source.is_production(date.line)) {
            findings.push(Finding::new(&source.path, date.line, format!("the literal \"{}\"", date.text)));
        }
    }
    findings
}

/// Returns whether the text is a date of this century: the form of a revision.
fn is_date(text: &str, separator: char) -> bool {
    let parts: Vec<&str> = text.split(separator).collect();
    let digits = parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    digits && lengths == [4, 2, 2] && text.starts_with("20")
}

/// Folders of one machine. A path starts the literal, or follows a character that is not part of a path.
const MACHINE_PATHS: &[&str] = &["/work/", "/root/", "/tmp/", "/home/", "/Users/"];

pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in product(tree) {
        for literal in source.scan.strings.iter().filter(|literal| source.is_production(literal.line)) {
            if let Some(path) = MACHINE_PATHS.iter().find(|path| holds_path(&literal.text, path)) {
                findings.push(Finding::new(&source.path, literal.line, format!("a path below `{path}`")));
            }
        }
    }
    findings
}

fn holds_path(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|c| !is_word(c) && !matches!(c, '/' | '.' | '-' | '}'))
    })
}

/// A folder outside the repository, concatenated so that this file does not contain it.
const OUTSIDE: &str = concat!("..", "/shared");

pub(super) fn outside_folder(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        let lines = file.text.lines().enumerate().filter(|(_, line)| line.contains(OUTSIDE));
        findings.extend(
            lines.map(|(index, _)| Finding::new(&file.path, index + 1, format!("names `{OUTSIDE}`"))),
        );
    }
    findings
}

/// Returns the shipped sources.
fn product(tree: &Tree) -> impl Iterator<Item = &Source> {
    tree.sources().filter(|source| {
        source.path.starts_with("crates/")
            && source.path.contains("/src/")
            && has_extension(&source.path, "rs")
    })
}
