//! Which files are watched, and what they were: their names, sizes and times. Nothing is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::Failure;

/// Maximum number of files, of entries of directories, and of directories in each other.
const MAX_FILES: usize = 20_000;
const MAX_ENTRIES: usize = 200_000;
const MAX_DEPTH: usize = 32;

/// Directories that hold what is built or fetched.
const SKIPPED: [&str; 7] = ["target", "node_modules", "__pycache__", "venv", "dist", "build", "vendor"];
/// Extensions of sources. In a directory `src` every file counts.
const SOURCES: [&str; 24] = [
    "rs", "toml", "lock", "py", "js", "mjs", "cjs", "ts", "mts", "tsx", "jsx", "go", "java", "kt", "cs", "c",
    "h", "cc", "cpp", "hpp", "rb", "swift", "html", "css",
];

/// Files and directories that are watched.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    roots: Vec<PathBuf>,
}

/// The files at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Watch {
    pub(super) fn of(paths: &[PathBuf]) -> Result<Self, Failure> {
        let roots = if paths.is_empty() { vec![PathBuf::from(".")] } else { paths.to_vec() };
        match roots.iter().find(|path| !path.exists()) {
            Some(path) => {
                Err(Failure::usage(format!("{} cannot be watched: it does not exist", path.display())))
            }
            None => Ok(Self { roots }),
        }
    }

    /// Looks at all files.
    pub(super) fn snapshot(&self) -> Result<Snapshot, Failure> {
        let mut scan = Scan { files: BTreeMap::new(), entries: 0 };
        for root in &self.roots {
            if root.is_dir() {
                let is_source = root.file_name().is_some_and(|name| name == "src");
                scan.directory(root, is_source, 0)?;
            } else {
                scan.file(root.clone());
            }
        }
        Ok(Snapshot(scan.files))
    }
}

impl Snapshot {
    /// Returns the first file that was added, changed or removed.
    pub(super) fn difference(&self, earlier: &Self) -> Option<PathBuf> {
        let changed = self.0.iter().find(|(path, now)| earlier.0.get(*path) != Some(now));
        let removed = || earlier.0.iter().find(|(path, _)| !self.0.contains_key(*path));
        changed.or_else(removed).map(|(path, _)| path.strip_prefix(".").unwrap_or(path).to_owned())
    }
}

struct Scan {
    files: BTreeMap<PathBuf, (Option<SystemTime>, u64)>,
    entries: usize,
}

impl Scan {
    /// Adds the files of a directory. What vanishes meanwhile is not there.
    fn directory(&mut self, directory: &Path, is_source: bool, depth: usize) -> Result<(), Failure> {
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES || self.files.len() > MAX_FILES {
                let text = "too many files to watch; --watch names the directories with sources";
                return Err(Failure::usage(text));
            }
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') {
                continue;
            }
            // Links to directories are not followed: they can lead in circles.
            if kind.is_dir() {
                if !SKIPPED.contains(&&*name) && depth < MAX_DEPTH {
                    self.directory(&path, is_source || name == "src", depth + 1)?;
                }
            } else if is_source || is_source_file(&path) {
                self.file(path);
            }
        }
        Ok(())
    }

    fn file(&mut self, path: PathBuf) {
        if let Ok(metadata) = fs::metadata(&path)
            && metadata.is_file()
        {
            self.files.insert(path, (metadata.modified().ok(), metadata.len()));
        }
    }
}

fn is_source_file(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    extension.is_some_and(|extension| SOURCES.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_watched_and_what_is_built_is_not() {
        let folder = std::env::temp_dir().join(format!("duplexer-{}-watch", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/main.rs", "a");
        write("src/page.txt", "a");
        write("notes.log", "a");
        write("target/debug/main.rs", "a");
        write(".git/a.rs", "a");
        let watch = Watch::of(std::slice::from_ref(&folder)).unwrap();
        let first = watch.snapshot().unwrap();
        assert_eq!(first.0.len(), 2, "{first:?}");
        write("notes.log", "ab");
        write("target/debug/main.rs", "ab");
        assert_eq!(watch.snapshot().unwrap().difference(&first), None);
        write("src/page.txt", "ab");
        let second = watch.snapshot().unwrap();
        assert_eq!(second.difference(&first), Some(folder.join("src/page.txt")));
        fs::remove_file(folder.join("src/main.rs")).unwrap();
        let third = watch.snapshot().unwrap();
        assert_eq!(third.difference(&second), Some(folder.join("src/main.rs")));
        write("Cargo.toml", "a");
        assert_eq!(watch.snapshot().unwrap().difference(&third), Some(folder.join("Cargo.toml")));
        fs::remove_dir_all(&folder).unwrap();
        assert!(Watch::of(&[folder]).is_err());
    }
}
