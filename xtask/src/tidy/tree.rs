//! The files of the repository, as input of the rules.

use std::fs;
use std::path::Path;

use super::scan::Scan;

/// Folders without sources of the project: build output, downloads, generated inputs.
const SKIPPED: &[&str] = &["target", "node_modules", ".git", ".venv", "corpus", "corpus.work", "artifacts"];

/// A text file, lexed if it is Rust.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the root of the repository, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) scan: Scan,
    /// The whole file is compiled for tests only.
    pub(crate) is_test: bool,
}

impl Source {
    fn of(path: &str, text: &str) -> Self {
        let scan = if has_extension(path, "rs") { Scan::of(text) } else { Scan::default() };
        Self { path: path.to_owned(), text: text.to_owned(), scan, is_test: is_test_path(path) }
    }

    /// Returns crate and module: `crates/duplexer-core/src/server/runner.rs` is
    /// (`duplexer_core`, [`server`, `runner`]).
    pub(crate) fn module(&self) -> Option<(String, Vec<String>)> {
        let (package, file) = self.path.strip_prefix("crates/")?.split_once("/src/")?;
        let module = match file.strip_suffix(".rs")? {
            "lib" | "main" => Vec::new(),
            module => module.split('/').map(str::to_owned).collect(),
        };
        Some((package.replace('-', "_"), module))
    }

    /// Returns the numbered lines of production code.
    pub(crate) fn production(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.scan.code.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()));
        lines.filter(|(line, _)| self.is_production(*line))
    }

    pub(crate) fn is_production(&self, line: usize) -> bool {
        !self.is_test && !self.scan.is_test(line)
    }

    /// Returns whether the path equals `place`, or is below it if `place` ends with a slash.
    pub(crate) fn is_at(&self, place: &str) -> bool {
        if place.ends_with('/') { self.path.starts_with(place) } else { self.path == place }
    }
}

/// Every text file of the repository.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<Source>,
}

impl Tree {
    /// Reads the repository at `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        collect(root, "", &mut files).map_err(|error| format!("could not read the source tree: {error}"))?;
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        Ok(Self::of(&files))
    }

    /// Builds a tree from paths and contents.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut files: Vec<Source> = files.iter().map(|(path, text)| Source::of(path, text)).collect();
        let test_only: Vec<String> = files.iter().flat_map(test_modules).collect();
        for file in &mut files {
            let stem = file.path.trim_end_matches(".rs");
            file.is_test |=
                test_only.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
        }
        Self { files }
    }

    /// Adds a text that is not a file of the repository.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        self.files.push(Source::of(path, text));
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// Returns the Rust sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|file| has_extension(&file.path, "rs"))
    }
}

pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn is_test_path(path: &str) -> bool {
    const FOLDERS: &[&str] = &["tests", "benches", "examples", "fuzz", "conformance"];
    let mut parts: Vec<&str> = path.split('/').collect();
    let file = parts.pop();
    file == Some("tests.rs") || parts.iter().any(|part| FOLDERS.contains(part))
}

/// Returns the files, without `.rs`, that a source declares as modules under `#[cfg(test)]`.
fn test_modules(source: &Source) -> Vec<String> {
    let Some((folder, file)) = source.path.trim_end_matches(".rs").rsplit_once('/') else {
        return Vec::new();
    };
    let home = if matches!(file, "lib" | "main") { folder.to_owned() } else { format!("{folder}/{file}") };
    let lines = source.scan.code.iter().enumerate().filter(|(index, _)| source.scan.is_test(index + 1));
    lines
        .filter_map(|(_, line)| {
            let name = line.trim().trim_start_matches("#[cfg(test)]").trim().strip_suffix(';')?;
            Some(format!("{home}/{}", name.rsplit_once("mod ")?.1))
        })
        .collect()
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(&entry.path(), &path, files)?;
        } else if entry.path().is_file()
            && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
        {
            files.push((path, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn a_file_knows_its_module() {
        let check = |path: &str, want: Option<(&str, &[&str])>| {
            let tree = Tree::of(&[(path, "")]);
            let got = tree.files().next().and_then(super::Source::module);
            let want = want.map(|(krate, module)| {
                (krate.to_owned(), module.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
            });
            assert_eq!(got, want, "{path}");
        };
        check("crates/duplexer-core/src/lib.rs", Some(("duplexer_core", &[])));
        check("crates/duplexer-core/src/server/runner.rs", Some(("duplexer_core", &["server", "runner"])));
        check("xtask/src/main.rs", None);
        check("crates/duplexer-core/Cargo.toml", None);
    }

    #[test]
    fn test_files_are_known_by_place_or_by_declaration() {
        let tree = Tree::of(&[
            (
                "crates/a/src/lib.rs",
                "mod real;\n#[cfg(test)]\nmod fixtures;\n#[cfg(test)] pub(crate) mod kit;",
            ),
            ("crates/a/src/real.rs", "#[cfg(test)]\nmod proof;"),
            ("crates/a/src/fixtures.rs", ""),
            ("crates/a/src/fixtures/deep.rs", ""),
            ("crates/a/src/kit.rs", ""),
            ("crates/a/src/real/proof.rs", ""),
            ("crates/a/src/real/other.rs", ""),
            ("crates/a/src/real/tests.rs", ""),
            ("crates/a/tests/it.rs", ""),
        ]);
        let production: Vec<&str> =
            tree.files().filter(|file| !file.is_test).map(|file| file.path.as_str()).collect();
        assert_eq!(production, ["crates/a/src/lib.rs", "crates/a/src/real.rs", "crates/a/src/real/other.rs"]);
    }
}
