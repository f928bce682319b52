//! Phrases that hide the actor or the term of the field, in identifiers, comments, string literals and documents.

use crate::tidy::Finding;
use crate::tidy::scan::{Text, is_word};
use crate::tidy::tree::{Source, Tree, has_extension};

/// The rejected phrases, word by word.
const PHRASES: &[&[&str]] = &[
    &["whoever"],
    &["nobody"],
    &["somebody"],
    &["told"],
    &["called", "off"],
    &["call", "off"],
    &["taken", "up", "again"],
    &["under", "way"],
    &["passed", "over"],
    &["let", "in"],
    &["as", "it", "stands"],
];

/// The list itself, its samples, and the change log, which quotes old names.
const EXEMPT: &[&str] = &["xtask/src/tidy/rules/phrases.rs", "xtask/src/tidy/rules/tests.rs", "CHANGELOG.md"];

pub(super) fn phrases(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().filter(|file| !EXEMPT.contains(&file.path.as_str())) {
        for text in texts(file) {
            findings.extend(found(&text.text).into_iter().map(|(line, phrase)| {
                Finding::new(&file.path, text.line + line, format!("the phrase \"{}\"", phrase.join(" ")))
            }));
        }
    }
    findings
}

/// Returns the checked texts: a whole document, or the code, the literals and the comments of a source.
fn texts(file: &Source) -> Vec<Text> {
    if has_extension(&file.path, "md") {
        return vec![Text { line: 1, text: file.text.clone() }];
    }
    let code = Text { line: 1, text: file.scan.code.join("\n") };
    let strings = file.scan.strings.iter().cloned();
    [code].into_iter().chain(strings).chain(paragraphs(&file.scan.comments)).collect()
}

/// Joins comments on consecutive lines, so that a phrase is found across a line break.
fn paragraphs(comments: &[Text]) -> Vec<Text> {
    let mut joined: Vec<Text> = Vec::new();
    let mut last = 0;
    for comment in comments {
        let text = comment.text.trim_start_matches(['/', '!', '*', ' ']);
        match joined.last_mut().filter(|_| comment.line == last + 1) {
            Some(paragraph) => {
                paragraph.text.push('\n');
                paragraph.text.push_str(text);
            }
            None => joined.push(Text { line: comment.line, text: text.to_owned() }),
        }
        last = comment.line;
    }
    joined
}

/// Returns every phrase in a text, with its line counted from 0.
fn found(text: &str) -> Vec<(usize, &'static [&'static str])> {
    // Lower case in ASCII only, so that both texts have the same positions.
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for phrase in PHRASES {
        let Some(first) = phrase.first() else { continue };
        let places = lower.match_indices(first).map(|(at, _)| at);
        let lines =
            places.filter(|at| is_at(text, &lower, *at, phrase)).map(|at| text[..at].matches('\n').count());
        found.extend(lines.map(|line| (line, *phrase)));
    }
    found.sort_by_key(|(line, _)| *line);
    found
}

/// Returns whether the phrase begins at `at`, as whole words or as parts of one identifier.
fn is_at(text: &str, lower: &str, at: usize, phrase: &[&str]) -> bool {
    let mut end = at;
    let mut is_prose = false;
    for (index, word) in phrase.iter().enumerate() {
        if index > 0 {
            let rest = &text[end..];
            let gap = rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == '-').len();
            is_prose |= gap > 0;
            if gap == 0 && !is_joint(text, end) {
                return false;
            }
            end += if gap == 0 { usize::from(rest.starts_with('_')) } else { gap };
        }
        if !lower[end..].starts_with(word) {
            return false;
        }
        end += word.len();
    }
    let is_edge = |at: usize| is_boundary(text, at) || !is_prose && is_joint(text, at);
    is_edge(at) && is_edge(end)
}

/// Returns whether a word begins or ends here.
fn is_boundary(text: &str, at: usize) -> bool {
    let is_outside = |c: Option<char>| c.is_none_or(|c| !is_word(c));
    is_outside(text[..at].chars().next_back()) || is_outside(text[at..].chars().next())
}

/// Returns whether an identifier has a joint here: `under_way` and `UnderWay` have one.
fn is_joint(text: &str, at: usize) -> bool {
    match (text[..at].chars().next_back(), text[at..].chars().next()) {
        (Some('_'), _) | (_, Some('_')) => true,
        (Some(before), Some(after)) => before.is_lowercase() && after.is_uppercase(),
        _ => false,
    }
}
