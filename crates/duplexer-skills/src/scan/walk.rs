//! Walks a directory: its files, its directories, and what cannot be offered.
//!
//! Hidden files, and links that lead out of the directory or back to one that contains them, are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use duplexer_server::__private::files::{is_hidden, resolve};
use duplexer_types::skill::MANIFEST;

use super::read::Stamp;

/// Maximum number of files and directories below a directory with skills.
const MAX_ENTRIES: usize = 65_536;

/// Maximum number of things that cannot be offered, below a directory with skills.
const MAX_FAULTS: usize = 256;

/// Maximum number of directories inside of each other.
const MAX_LEVELS: usize = 32;

/// What is below a directory. Paths are relative to it, with `/` on every platform; its own is empty.
#[derive(Debug, Default)]
pub(super) struct Walked {
    files: BTreeMap<String, Stamp>,
    directories: BTreeSet<String>,
    /// Directories with something that cannot be offered, and the reason.
    faults: Vec<(String, String)>,
}

/// Walks a directory, given as a canonical path.
pub(super) fn walk(base: &Path) -> Result<Walked, String> {
    let mut walk = Walk { base, found: Walked::default(), entries: 0, open: Vec::new() };
    walk.directory("", base.to_owned()).map_err(|Stop(reason)| reason)?;
    Ok(walk.found)
}

struct Walk<'a> {
    base: &'a Path,
    found: Walked,
    entries: usize,
    /// Canonical paths of the directories that are being walked, outermost first.
    open: Vec<PathBuf>,
}

/// Why a directory is not walked to its end.
struct Stop(String);

impl Walk<'_> {
    fn directory(&mut self, relative: &str, path: PathBuf) -> Result<(), Stop> {
        if self.open.contains(&path) {
            return Ok(());
        }
        if self.open.len() >= MAX_LEVELS {
            let reason = format!("more than {MAX_LEVELS} directories are inside of each other");
            return self.fault(relative, reason);
        }
        let listing = match path.read_dir() {
            Ok(listing) => listing,
            Err(error) => return self.fault(relative, format!("the directory cannot be read: {error}")),
        };
        self.found.directories.insert(relative.to_owned());
        self.open.push(path);
        for entry in listing {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(Stop(format!("there are more than {MAX_ENTRIES} files and directories in it")));
            }
            match entry {
                Ok(entry) => self.entry(relative, &entry)?,
                Err(error) => self.fault(relative, format!("the directory cannot be read: {error}"))?,
            }
        }
        self.open.pop();
        Ok(())
    }

    fn entry(&mut self, parent: &str, entry: &DirEntry) -> Result<(), Stop> {
        let Ok(name) = entry.file_name().into_string() else {
            let name = entry.file_name().to_string_lossy().escape_debug().to_string();
            return self.fault(parent, format!("the name `{name}` is not UTF-8, so it has no URI"));
        };
        if is_hidden(&name) {
            return Ok(());
        }
        let relative = if parent.is_empty() { name } else { format!("{parent}/{name}") };
        match self.target(entry, &relative) {
            Ok((path, metadata)) if metadata.is_dir() => self.directory(&relative, path)?,
            Ok((_, metadata)) if metadata.is_file() => {
                self.found.files.insert(relative, Stamp::of(&metadata));
            }
            // A device, or a link that leads nowhere or out of the directory.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.fault(parent, format!("{relative}: {error}"))?,
        }
        Ok(())
    }

    /// Returns the path and the metadata of what an entry is or leads to.
    fn target(&self, entry: &DirEntry, relative: &str) -> io::Result<(PathBuf, Metadata)> {
        let metadata = entry.metadata()?;
        if !metadata.is_symlink() {
            return Ok((entry.path(), metadata));
        }
        // A link that cannot be followed leads nowhere, whatever the reason.
        let path = resolve(self.base, relative).map_err(|_| io::ErrorKind::NotFound)?;
        let metadata = path.metadata().map_err(|_| io::ErrorKind::NotFound)?;
        Ok((path, metadata))
    }

    fn fault(&mut self, directory: &str, reason: String) -> Result<(), Stop> {
        if self.found.faults.len() >= MAX_FAULTS {
            return Err(Stop(reason));
        }
        self.found.faults.push((directory.to_owned(), reason));
        Ok(())
    }
}

impl Walked {
    /// Returns the directories that are skills.
    pub(super) fn skills(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter_map(|file| match file.strip_suffix(MANIFEST) {
            Some("") => Some(""),
            Some(directory) => directory.strip_suffix('/'),
            None => None,
        })
    }

    /// Returns the files below a directory, by their paths relative to it.
    pub(super) fn files_below<'a>(
        &'a self,
        directory: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Stamp)> {
        let range = self.files.range(begin_of(directory)..);
        range.map_while(move |(file, stamp)| below(directory, file).map(|file| (file, stamp)))
    }

    /// Returns the directories below a directory, by their paths relative to it.
    pub(super) fn directories_below<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a str> {
        let range = self.directories.range(begin_of(directory)..);
        range.filter(|found| !found.is_empty()).map_while(move |found| below(directory, found))
    }

    /// Returns a fault of a directory or of one below it.
    pub(super) fn fault_below(&self, directory: &str) -> Option<(&str, &str)> {
        let inside = |place: &str| place == directory || below(directory, place).is_some();
        self.faults.iter().find(|(place, _)| inside(place)).map(|(place, reason)| (&**place, &**reason))
    }

    /// Returns the faults that belong to no skill.
    pub(super) fn faults_outside_of_skills(&self) -> impl Iterator<Item = (&str, &str)> {
        let skills: Vec<&str> = self.skills().collect();
        let inside =
            move |place: &str| skills.iter().any(|skill| place == *skill || below(skill, place).is_some());
        self.faults
            .iter()
            .filter(move |(place, _)| !inside(place))
            .map(|(place, reason)| (&**place, &**reason))
    }
}

/// Returns the text that paths below a directory begin with.
fn begin_of(directory: &str) -> String {
    if directory.is_empty() { String::new() } else { format!("{directory}/") }
}

fn below<'a>(directory: &str, path: &'a str) -> Option<&'a str> {
    if directory.is_empty() { Some(path) } else { path.strip_prefix(directory)?.strip_prefix('/') }
}
