//! Holds the citations of the workspace's tests against the manifest, in both directions.
//!
//! A test cites an id in a comment, most of them in its doc comment. A deviation is a row of `docs/deviations.md`
//! that begins with the id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Ids = BTreeSet<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A requirement, and why it needs no test yet.
fn manifest() -> BTreeMap<String, Option<String>> {
    let text = fs::read_to_string(root().join("tests/manifest")).unwrap();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut listed = BTreeMap::new();
    for line in lines {
        let (id, reason) = line.split_once(' ').map_or((line, None), |(id, rest)| (id, Some(rest.trim())));
        assert!(is_id(id), "not an id: {line:?}");
        assert!(reason.is_none_or(is_reason), "a reason is `issue N` or `later`: {line:?}");
        let twice = listed.insert(id.to_owned(), reason.map(str::to_owned));
        assert!(twice.is_none(), "listed twice: {id}");
    }
    listed
}

fn is_reason(reason: &str) -> bool {
    reason == "later" || reason.strip_prefix("issue ").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// `RUN-05`, or `P-RPC-5` for a row of the specification.
fn is_id(word: &str) -> bool {
    let (digits, name) = match word.strip_prefix("P-") {
        Some(row) => (1..=2, row),
        None => (2..=2, word),
    };
    name.rsplit_once('-').is_some_and(|(area, number)| {
        (2..=6).contains(&area.len())
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && digits.contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The ids in a text whose area the manifest knows; others, such as UTF-16, are only words.
fn ids(text: &str, areas: &Ids) -> Ids {
    text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
        .filter(|word| is_id(word) && areas.contains(area(word)))
        .map(str::to_owned)
        .collect()
}

fn area(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(area, _)| area)
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What comments of tests cite, and what all comments do.
fn cited(areas: &Ids) -> (Ids, BTreeMap<String, PathBuf>) {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let (mut by_tests, mut by_anyone) = (Ids::new(), BTreeMap::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        by_tests.extend(in_comments(tests_of(&file, &text), areas));
        by_anyone.extend(in_comments(&text, areas).into_iter().map(|id| (id, file.clone())));
    }
    (by_tests, by_anyone)
}

fn in_comments(text: &str, areas: &Ids) -> Ids {
    let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
    comments.flat_map(|line| ids(line, areas)).collect()
}

/// The part of a source that is tests: all of a file of tests, and what follows the head of a module of tests.
fn tests_of<'a>(file: &Path, text: &'a str) -> &'a str {
    let inside = file.strip_prefix(root()).unwrap_or(file);
    let is_tests = |part: &std::ffi::OsStr| matches!(part.to_str(), Some("tests" | "tests.rs"));
    if inside.iter().any(is_tests) {
        return text;
    }
    text.find("\n#[cfg(test)]\nmod tests {").map_or("", |start| &text[start..])
}

fn deviations(areas: &Ids) -> Ids {
    let text = fs::read_to_string(root().join("docs/deviations.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')).filter_map(|row| row.split('|').next());
    rows.flat_map(|cell| ids(cell, areas)).collect()
}

#[test]
fn every_requirement_is_shown_and_every_citation_is_a_requirement() {
    let manifest = manifest();
    let areas: Ids = manifest.keys().map(|id| area(id).to_owned()).collect();
    let (tested, cited) = cited(&areas);
    let deviations = deviations(&areas);
    let shown = |id: &String| tested.contains(id) || deviations.contains(id);
    let orphans: Vec<_> =
        manifest.iter().filter(|(id, reason)| reason.is_none() && !shown(id)).map(|(id, _)| id).collect();
    assert!(orphans.is_empty(), "neither a test nor a deviation nor a reason: {orphans:?}");
    let unknown: Vec<_> = cited.iter().filter(|(id, _)| !manifest.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "cited, but not in tests/manifest: {unknown:?}");
    let unknown: Vec<_> = deviations.iter().filter(|id| !manifest.contains_key(*id)).collect();
    assert!(unknown.is_empty(), "a deviation from nothing in tests/manifest: {unknown:?}");
}

#[test]
fn only_tests_count_and_only_known_areas_are_ids() {
    let areas = Ids::from(["RUN".to_owned(), "P-RPC".to_owned()]);
    // Not at the beginning of a line, so that the scan of this very file finds no citations in it.
    let text = "/// RUN-91\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n// RUN-90, UTF-16, P-RPC-90.\nlet RUN-92";
    let cited =
        |file: &str| in_comments(tests_of(Path::new(file), text), &areas).into_iter().collect::<Vec<_>>();
    assert_eq!(cited("src/a.rs"), ["P-RPC-90", "RUN-90"]);
    assert_eq!(cited("src/a/tests.rs"), ["P-RPC-90", "RUN-90", "RUN-91"]);
    assert_eq!(cited("src/tests/a.rs").len(), 3);
    assert!(is_id("RUN-01") && is_id("P-RPC-5") && !is_id("RUN-1") && !is_id("P-5") && !is_id("SHA-256"));
    assert!(is_reason("later") && is_reason("issue 7") && !is_reason("issue") && !is_reason("soon"));
}
