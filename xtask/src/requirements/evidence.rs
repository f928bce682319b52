//! Requirements and their evidence: reads `tests/manifest`, the citations in the tests of the workspace, and
//! `docs/deviations.md`. The interaction suite includes this file and compares the three.
//!
//! A test cites an id in a comment, most of them in its doc comment. A deviation is a row that begins with the id.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) type Ids = BTreeSet<String>;

/// Reason why an id has no test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// An open issue will implement it.
    Issue(u32),
    /// No issue covers it.
    Later,
    /// A duty of clients, which a server cannot demonstrate.
    Client,
    /// A duty of the application around a client, towards its user.
    Host,
    /// A duty of the author of a server's handlers.
    Author,
    /// Part of the protocol that is not implemented, with the reason.
    Absent(String),
}

impl Reason {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None => match text {
                "later" => Some(Self::Later),
                "client" => Some(Self::Client),
                "host" => Some(Self::Host),
                "author" => Some(Self::Author),
                _ => None,
            },
            Some(("issue", number)) => number.parse().ok().map(Self::Issue),
            Some(("absent", why)) if why.contains(' ') => Some(Self::Absent(why.trim().to_owned())),
            Some(_) => None,
        }
    }
}

/// A test that cites an id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Citation {
    pub(crate) test: String,
    /// Relative to the root of the repository.
    pub(crate) file: PathBuf,
}

/// All requirements with their evidence.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// Each id in the order of the manifest, and its reason.
    pub(crate) listed: Vec<(String, Option<Reason>)>,
    /// The tests that cite an id.
    pub(crate) tested: BTreeMap<String, Vec<Citation>>,
    /// All cited ids, with the place.
    pub(crate) mentioned: BTreeMap<String, PathBuf>,
    pub(crate) deviations: Ids,
}

impl Evidence {
    /// Reads the repository at `root`. Fails if the manifest is malformed.
    pub(crate) fn gather(root: &Path) -> Result<Self, String> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let listed = manifest(&read(&root.join("tests/manifest"))?)?;
        let areas: Ids = listed.iter().map(|(id, _)| area(id).to_owned()).collect();
        let deviations = deviations(&read(&root.join("docs/deviations.md"))?, &areas);
        let (mut tested, mut mentioned) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        let mut files = Vec::new();
        sources(root, &mut files).map_err(|error| format!("cannot list the sources: {error}"))?;
        for path in files {
            let text = read(&path)?;
            let file = path.strip_prefix(root).unwrap_or(&path).to_owned();
            for (id, test) in citations(tests_of(&file, &text), &areas) {
                tested.entry(id).or_default().push(Citation { test, file: file.clone() });
            }
            mentioned.extend(citations(&text, &areas).into_iter().map(|(id, _)| (id, file.clone())));
        }
        for tests in tested.values_mut() {
            tests.sort();
        }
        Ok(Self { listed, tested, mentioned, deviations })
    }

    /// Describes the disagreements of manifest, tests and deviations.
    pub(crate) fn faults(&self) -> Vec<String> {
        let shown = |id: &str| self.tested.contains_key(id) || self.deviations.contains(id);
        let known: Ids = self.listed.iter().map(|(id, _)| id.clone()).collect();
        let mut faults = Vec::new();
        for (id, reason) in &self.listed {
            match reason {
                None if !shown(id) => faults.push(format!("{id}: no test, no deviation, no reason")),
                Some(_) if self.tested.contains_key(id) => {
                    faults.push(format!("{id}: a test shows it, so it needs no reason"));
                }
                _ => {}
            }
        }
        let unknown = self.mentioned.iter().filter(|(id, _)| !known.contains(*id));
        faults.extend(unknown.map(|(id, file)| format!("{id}: cited in {}, but not listed", file.display())));
        let nothing = self.deviations.difference(&known);
        faults.extend(nothing.map(|id| format!("{id}: a deviation from what is not listed")));
        faults
    }
}

fn manifest(text: &str) -> Result<Vec<(String, Option<Reason>)>, String> {
    let (mut listed, mut seen) = (Vec::new(), Ids::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (id, reason) = line.split_once(' ').map_or((line, None), |(id, rest)| (id, Some(rest.trim())));
        if !is_id(id) {
            return Err(format!("not an id: {line:?}"));
        }
        if !seen.insert(id.to_owned()) {
            return Err(format!("listed twice: {id}"));
        }
        let known = reason.map(|reason| Reason::parse(reason).ok_or(format!("no such reason: {line:?}")));
        listed.push((id.to_owned(), known.transpose()?));
    }
    Ok(listed)
}

/// `RUN-05`, `P-RPC-5` for a row of the specification, `R-S30` for a case of an attack, `TSK-D5` for a promise of the design,
/// `D-3` and `F-3` for a defect and a friction of the client.
pub(crate) fn is_id(word: &str) -> bool {
    if let Some(number) = word.strip_prefix("D-").or_else(|| word.strip_prefix("F-")) {
        return (1..=2).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    }
    if let Some(case) = word.strip_prefix("R-") {
        let number = case.strip_prefix(['S', 'H', 'M']).unwrap_or_default();
        return (2..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    }
    let (digits, name) = match word.strip_prefix("P-") {
        Some(row) => (1..=2, row),
        None => (2..=2, word),
    };
    name.rsplit_once('-').is_some_and(|(area, number)| {
        let (digits, number) = match number.strip_prefix('D') {
            Some(number) => (1..=2, number),
            None => (digits, number),
        };
        (2..=6).contains(&area.len())
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && digits.contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

pub(crate) fn area(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(area, _)| area)
}

/// Returns the ids in a text whose area the manifest has; others, such as UTF-16, are words.
fn ids(text: &str, areas: &Ids) -> Ids {
    text.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-'))
        .filter(|word| is_id(word) && areas.contains(area(word)))
        .map(str::to_owned)
        .collect()
}

fn deviations(text: &str, areas: &Ids) -> Ids {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')).filter_map(|row| row.split('|').next());
    rows.flat_map(|cell| ids(cell, areas)).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for path in entries.into_iter().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns every id in comments with its function: the one after a doc comment, or the one around any other comment.
pub(crate) fn citations(text: &str, areas: &Ids) -> Vec<(String, String)> {
    let (mut found, mut announced, mut within) = (Vec::new(), Ids::new(), String::new());
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("///") {
            announced.extend(ids(line, areas));
        } else if line.starts_with("//") {
            found.extend(ids(line, areas).into_iter().map(|id| (id, within.clone())));
        } else if let Some(name) = function(line) {
            name.clone_into(&mut within);
            found.extend(std::mem::take(&mut announced).into_iter().map(|id| (id, within.clone())));
        }
    }
    found.extend(announced.into_iter().map(|id| (id, within.clone())));
    found
}

/// Returns the name of the function that this line declares.
fn function(line: &str) -> Option<&str> {
    let head = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    let name = head.strip_prefix("async ").unwrap_or(head).strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// Returns the tests in a source: the whole of a test file, or the lines from the test module on.
pub(crate) fn tests_of<'a>(file: &Path, text: &'a str) -> &'a str {
    let is_tests = |part: &std::ffi::OsStr| matches!(part.to_str(), Some("tests" | "tests.rs"));
    if file.iter().any(is_tests) {
        return text;
    }
    text.find("\n#[cfg(test)]\nmod tests {").map_or("", |start| &text[start..])
}
