//! Examples in the documentation of the types that users meet first: those of the facade's root and of its preludes.

use crate::tidy::Finding;
use crate::tidy::scan::is_word;
use crate::tidy::tree::{Source, Tree};

/// The files of the facade that re-export types.
const FACADE: &[&str] = &["crates/duplexer/src/lib.rs", "crates/duplexer/src/client.rs"];
/// The one whose own re-exports are met first, not only its prelude.
const ROOT: &str = "crates/duplexer/src/lib.rs";
/// Keywords that define a type; `result` is one of the macro `model!`.
const KEYWORDS: &[&str] = &["struct", "enum", "trait", "result"];

pub(super) fn examples(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for facade in tree.sources().filter(|source| FACADE.contains(&source.path.as_str())) {
        for (line, name) in exported(facade) {
            let definitions: Vec<bool> = tree
                .sources()
                .filter(|source| !source.is_test)
                .filter_map(|source| documented(source, &name))
                .collect();
            // An alias, a function or a macro has no definition of this kind.
            if !definitions.is_empty() && !definitions.contains(&true) {
                findings.push(Finding::new(&facade.path, line, format!("`{name}` has no example")));
            }
        }
    }
    findings
}

/// Returns the type names that the preludes of a file re-export, and those that the root does, with their lines.
fn exported(facade: &Source) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let (mut in_prelude, mut in_use) = (false, false);
    for (index, line) in facade.scan.code.iter().enumerate() {
        in_prelude = line.starts_with("pub mod prelude") || in_prelude && line != "}";
        let is_ours = in_prelude || facade.path == ROOT && line.starts_with("pub use ");
        in_use = in_use || is_ours && line.trim_start().starts_with("pub use ");
        if in_use {
            let words = line.split(|c| !is_word(c)).filter(|word| word.starts_with(char::is_uppercase));
            names.extend(words.map(|word| (index + 1, word.to_owned())));
        }
        in_use = in_use && !line.contains(';');
    }
    names
}

/// Returns whether the documentation of a type, or of a method in its definition, has an example. `None` if the type is not
/// defined here.
fn documented(source: &Source, name: &str) -> Option<bool> {
    let at = source.scan.code.iter().position(|line| defines(line, name))?;
    let lines: Vec<&str> = source.text.lines().collect();
    let begin = lines[..at].iter().rposition(|line| line.trim().is_empty()).map_or(0, |blank| blank + 1);
    let end =
        lines[at..].iter().position(|line| line.starts_with('}')).map_or(lines.len(), |length| at + length);
    let has_body = lines[at].ends_with('{');
    let end = if has_body { end } else { at };
    Some(lines[begin..end].iter().any(|line| line.trim_start().starts_with("/// ```")))
}

/// Whether a line defines the public type: `pub struct Name<T>`.
fn defines(line: &str, name: &str) -> bool {
    let Some(item) = line.trim_start().strip_prefix("pub ") else { return false };
    let item = item.strip_prefix("cacheable ").unwrap_or(item);
    let named = KEYWORDS.iter().find_map(|keyword| item.strip_prefix(keyword)?.strip_prefix(' '));
    named.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| !rest.starts_with(is_word))
}
