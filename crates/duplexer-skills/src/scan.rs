//! Finds the skills below directories, and makes a snapshot of what they consist of.
//!
//! A skill that is broken is left out of the snapshot and becomes a fault. Files whose size and times have not changed
//! since an earlier snapshot are not read again.

mod manifest;
mod read;
mod walk;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use duplexer_server::__private::files;
use duplexer_types::skill::MANIFEST;

use self::walk::Walked;
use crate::snapshot::Snapshot;

pub(crate) use manifest::SkillDraft;
pub(crate) use read::{Keep, LoadError, Loaded, Stamp, load};

/// Maximum number of files of a skill.
pub const MAX_FILES: usize = 512;

/// Maximum size of all files of a skill together, in bytes.
pub const MAX_SKILL_SIZE: u64 = 16 * 1024 * 1024;

/// Maximum number of skills of a server.
const MAX_SKILLS: usize = 1024;

/// A directory with skills, and the path that their URIs begin with.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) under: String,
}

/// Fault of a skill, or of a directory with skills.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SkillFault {
    path: PathBuf,
    reason: String,
}

impl SkillFault {
    fn new(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }

    /// Returns the file or directory with the fault.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Result of a scan.
pub(crate) struct Scanned {
    pub(crate) snapshot: Snapshot,
    pub(crate) faults: Vec<SkillFault>,
}

/// Scans directories. Digests of `earlier` are used again, except those of the URIs in `stale`.
pub(crate) fn scan(roots: &[Root], earlier: &Snapshot, stale: &HashSet<String>) -> Scanned {
    let mut scan =
        Scan { earlier, stale, drafts: BTreeMap::new(), names: HashMap::new(), faults: Vec::new() };
    for root in roots {
        if let Err(fault) = scan.root(root) {
            scan.faults.push(fault);
        }
    }
    scan.refuse_nesting_of_roots();
    Scanned { snapshot: Snapshot::new(scan.drafts.into_values()), faults: scan.faults }
}

struct Scan<'a> {
    earlier: &'a Snapshot,
    stale: &'a HashSet<String>,
    /// Skills by the URIs of their directories.
    drafts: BTreeMap<String, SkillDraft>,
    /// Directories of the skills by name.
    names: HashMap<String, PathBuf>,
    faults: Vec<SkillFault>,
}

impl Scan<'_> {
    fn root(&mut self, root: &Root) -> Result<(), SkillFault> {
        let fail = |reason: String| SkillFault::new(&root.path, reason);
        if files::escape(&root.under).is_some() || root.under.contains('\\') {
            return Err(fail(format!("`{}` is not a path that URIs can begin with", root.under)));
        }
        let base = root.path.canonicalize().map_err(|error| fail(error.to_string()))?;
        if !base.is_dir() {
            return Err(fail("is not a directory".to_owned()));
        }
        let walked = Arc::new(walk::walk(&base).map_err(fail)?);
        for directory in walked.skills() {
            let shown = root.path.join(directory);
            match self.skill(root, &base, &walked, directory) {
                Ok(draft) => self.add(draft, shown),
                Err(fault) => self.faults.push(fault),
            }
        }
        // Faults inside of skills have been reported with the skill.
        for (directory, reason) in walked.faults_outside_of_skills() {
            self.faults.push(SkillFault::new(root.path.join(directory), reason));
        }
        Ok(())
    }

    fn skill(
        &self,
        root: &Root,
        base: &Path,
        walked: &Walked,
        directory: &str,
    ) -> Result<SkillDraft, SkillFault> {
        let shown = root.path.join(directory);
        let fail = |reason: String| SkillFault::new(&shown, reason);
        // A directory that is a skill itself is named by its own name.
        let own_name = || base.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let below = if directory.is_empty() { own_name() } else { directory.to_owned() };
        let path = format!("{}/{below}", root.under);
        if let Some((place, reason)) = walked.fault_below(directory) {
            return Err(SkillFault::new(root.path.join(place), reason));
        }
        let draft = SkillDraft::read(base, &path, walked, directory, (self.earlier, self.stale)).map_err(
            |fault| {
                let place = if fault.file.is_empty() { shown.clone() } else { shown.join(fault.file) };
                SkillFault::new(place, fault.reason)
            },
        )?;
        let name = path.rsplit('/').next().unwrap_or_default();
        if draft.front_matter.name() != name {
            let reason =
                format!("its name is `{}`, and its directory is `{name}`", draft.front_matter.name());
            return Err(SkillFault::new(shown.join(MANIFEST), reason));
        }
        if let Some(key) = draft.front_matter.reserved_key() {
            return Err(fail(format!("the key `{key}` below `metadata` is reserved for the protocol")));
        }
        Ok(draft)
    }

    /// Adds a skill, unless it collides with another one.
    fn add(&mut self, draft: SkillDraft, shown: PathBuf) {
        let mut fail = |reason: String| self.faults.push(SkillFault::new(&shown, reason));
        if self.drafts.len() >= MAX_SKILLS {
            return fail(format!("there are more than {MAX_SKILLS} skills"));
        }
        if let Some(other) = self.names.get(draft.front_matter.name()) {
            let name = draft.front_matter.name();
            return fail(format!("the skill in {} has the name `{name}` too", other.display()));
        }
        self.names.insert(draft.front_matter.name().to_owned(), shown);
        self.drafts.insert(draft.directory.clone(), draft);
    }

    /// Leaves out skills that lie inside of a skill of another root: its list of files would not have theirs.
    fn refuse_nesting_of_roots(&mut self) {
        let nested: Vec<String> = self
            .drafts
            .values()
            .filter(|draft| {
                let outer = draft.directory.match_indices('/').map(|(at, _)| &draft.directory[..at]);
                let outer = outer.filter_map(|directory| self.drafts.get(directory));
                outer.into_iter().any(|outer| outer.base != draft.base)
            })
            .map(|draft| draft.directory.clone())
            .collect();
        for directory in nested {
            if let Some(draft) = self.drafts.remove(&directory) {
                let reason = format!("`{directory}` lies inside of a skill of another directory");
                self.faults.push(SkillFault::new(draft.base.join(&draft.relative), reason));
            }
        }
    }
}

#[cfg(test)]
mod tests;
