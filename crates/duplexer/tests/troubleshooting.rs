//! The headings of the troubleshooting page are texts that our sources still say.

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
