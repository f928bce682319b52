//! Names of types, marks of unfinished work, and the one function that makes wire errors.

use crate::tidy::Finding;
use crate::tidy::scan::is_word;
use crate::tidy::tree::Tree;

const UNFINISHED: &[&str] = &["TODO", "FIXME"];

pub(super) fn todo(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources() {
        for comment in &source.scan.comments {
            if let Some(mark) = UNFINISHED.iter().find(|mark| lacks_issue(&comment.text, mark)) {
                findings.push(Finding::new(&source.path, comment.line, format!("{mark} without an issue")));
            }
        }
    }
    findings
}

fn lacks_issue(comment: &str, mark: &str) -> bool {
    comment.match_indices(mark).any(|(at, _)| {
        let behind = &comment[at + mark.len()..];
        let is_whole_word = !comment[..at].ends_with(is_word) && !behind.starts_with(is_word);
        let issue = behind.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
        let has_issue = issue.is_some_and(|(number, _)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        is_whole_word && !has_issue
    })
}

/// Suffixes and prefixes without meaning.
const EMPTY_ENDINGS: &[&str] = &["Manager", "Helper", "Helpers", "Util", "Utils", "Common"];
const EMPTY_BEGINNING: &str = "Base";

pub(super) fn types(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.sources() {
        for (index, line) in source.scan.code.iter().enumerate() {
            let name = ["struct", "enum", "trait"].iter().find_map(|kind| defined(line, kind));
            if let Some(name) = name.filter(|name| is_empty_name(name)) {
                findings.push(Finding::new(&source.path, index + 1, format!("the type `{name}`")));
            }
        }
    }
    findings
}

fn is_empty_name(name: &str) -> bool {
    // `BaseThing` has no meaning, `Base64` has.
    let base = name.strip_prefix(EMPTY_BEGINNING).is_some_and(|rest| rest.starts_with(char::is_uppercase));
    base || EMPTY_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the name after a defining keyword: `pub struct Name<T>` gives `Name`.
fn defined<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let (at, _) = line.match_indices(keyword).find(|(at, _)| !line[..*at].ends_with(is_word))?;
    let name = line[at + keyword.len()..].strip_prefix(' ')?;
    let name = &name[..name.find(|c| !is_word(c)).unwrap_or(name.len())];
    (!name.is_empty()).then_some(name)
}

/// Crates in which a failure becomes an error object.
const WIRE_BOUNDARY: &[&str] =
    &["crates/duplexer-core/src/", "crates/duplexer-server/src/", "crates/duplexer-client/src/"];

pub(super) fn wire_boundary(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in tree.sources().filter(|source| WIRE_BOUNDARY.iter().any(|place| source.is_at(place))) {
        for (line, code) in source.production() {
            let name = defined(code, "fn").filter(|name| name.contains("to_wire"));
            found.extend(name.map(|name| Finding::new(&source.path, line, format!("`fn {name}`"))));
        }
    }
    if found.len() < 2 {
        found.clear();
    }
    found
}
