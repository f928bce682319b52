//! The headings of the troubleshooting page are texts that our sources still say, and explain all errors of a client.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::Path;

/// The placeholder of a part that differs from case to case.
const ELLIPSIS: char = '…';

#[test]
fn every_text_that_is_explained_is_still_said() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("guide/troubleshooting.md")).unwrap();
    let mut sources = Vec::new();
    collect(&root.join(".."), &mut sources);
    let texts: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(texts.len() > 30, "only {} headings", texts.len());
    let rotten: Vec<&str> =
        texts.into_iter().filter(|text| !sources.iter().any(|source| says(source, text))).collect();
    assert!(rotten.is_empty(), "no source says {rotten:#?}");
}

/// Files whose errors reach the users of a client. Texts that only pass on another one, or that a program can cause only by a
/// mistake in itself, need no explanation.
const EXPLAINED: [&str; 5] = [
    "duplexer-oauth/src/error.rs",
    "duplexer-client/src/error.rs",
    "duplexer-core/src/error/call.rs",
    "duplexer-core/src/transport/failure.rs",
    "duplexer/src/client/group.rs",
];
const OWN_MISTAKES: [&str; 4] = [
    "request id … is already in flight",
    "the params could not be written as JSON",
    "a request was made before the dispatcher ran",
    "the answer of the server did not pass the check",
];

/// F-2: an error of a client or a login can be looked up by its text.
#[test]
fn every_error_of_a_client_is_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("guide/troubleshooting.md")).unwrap();
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut missing = Vec::new();
    for file in EXPLAINED {
        let source = fs::read_to_string(root.join("..").join(file)).unwrap();
        let texts: Vec<String> = source.split("#[error(").skip(1).filter_map(literal).collect();
        assert!(texts.len() > 2, "{file} has {} texts", texts.len());
        missing.extend(texts.into_iter().filter(|text| {
            let is_own = text.chars().all(|c| c == ELLIPSIS) || OWN_MISTAKES.contains(&text.as_str());
            !is_own && !headings.contains(&text.as_str())
        }));
    }
    assert!(missing.is_empty(), "no heading explains {missing:#?}");
}

/// Returns the string at the beginning of a source, with one ellipsis for each run of placeholders.
fn literal(source: &str) -> Option<String> {
    let (text, _) = source.trim_start().strip_prefix('"')?.split_once('"')?;
    let mut found = String::new();
    for (number, part) in text.split('{').enumerate() {
        let part = if number == 0 { part } else { part.split_once('}')?.1 };
        if number > 0 && !found.ends_with(ELLIPSIS) {
            found.push(ELLIPSIS);
        }
        found.push_str(part);
    }
    Some(found)
}

/// Whether a source holds all parts of a text in their order, with no more than a placeholder between two of them.
fn says(source: &str, text: &str) -> bool {
    let mut parts = text.split(ELLIPSIS);
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    source.match_indices(first).any(|(at, _)| {
        let mut behind = &source[at + first.len()..];
        rest.iter().all(|part| {
            let Some(placeholder) = behind.strip_prefix('{') else { return false };
            let Some((_, after)) = placeholder.split_once('}') else { return false };
            behind = after;
            behind.strip_prefix(part).is_some_and(|after| {
                behind = after;
                true
            })
        })
    })
}

/// The sources that are shipped, with literals that go over several lines put together.
fn collect(folder: &Path, sources: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "tests" && name != "target" {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            let mut pieces = fs::read_to_string(&path).unwrap().replace("\\\"", "\"");
            while let Some(at) = pieces.find("\\\n") {
                let behind = pieces[at + 2..].trim_start().to_owned();
                pieces.truncate(at);
                pieces.push_str(&behind);
            }
            sources.push(pieces);
        }
    }
}
