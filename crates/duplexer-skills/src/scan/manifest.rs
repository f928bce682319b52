//! Reads one skill: its front matter, and the digests of its files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use duplexer_types::skill::MANIFEST;

use super::read::{Keep, LoadError, Stamp, load};
use super::walk::Walked;
use super::{MAX_FILES, MAX_SKILL_SIZE};
use crate::front_matter::FrontMatter;
use crate::snapshot::{ServedFile, Snapshot};
use crate::uri;

/// A skill that was found.
pub(crate) struct SkillDraft {
    /// URI of its directory.
    pub(crate) directory: String,
    pub(crate) front_matter: Arc<FrontMatter>,
    /// Its files, by path.
    pub(crate) files: Vec<Arc<ServedFile>>,
    /// URIs of the directories below it.
    pub(crate) directories: Vec<String>,
    /// The directory that was scanned, and the path of the skill in it.
    pub(crate) base: Arc<Path>,
    pub(crate) relative: PathBuf,
}

/// Fault of a file of a skill. The path is empty for the skill itself.
pub(crate) struct FileFault {
    pub(crate) file: String,
    pub(crate) reason: String,
}

impl FileFault {
    fn of_skill(reason: String) -> Self {
        Self { file: String::new(), reason }
    }
}

/// The earlier snapshot, and the URIs whose digests in it are wrong.
type Known<'a> = (&'a Snapshot, &'a HashSet<String>);

impl SkillDraft {
    /// Reads the skill in `relative`, whose URIs begin with `path`.
    pub(super) fn read(
        base: &Path,
        path: &str,
        walked: &Walked,
        relative: &str,
        known: Known<'_>,
    ) -> Result<Self, FileFault> {
        check_limits(walked, relative)?;
        let (directory, base) = (uri::of_path(path), Arc::<Path>::from(base));
        let mut draft = Self {
            front_matter: front_matter(&base, relative, &directory, known)?,
            directory,
            files: Vec::new(),
            directories: Vec::new(),
            base: Arc::clone(&base),
            relative: PathBuf::from(relative),
        };
        let mut size = 0;
        for (file, stamp) in walked.files_below(relative) {
            let served = served(&base, (relative, path), (file, stamp), known)
                .map_err(|error| FileFault { file: file.to_owned(), reason: error.to_string() })?;
            if let Some(served) = served {
                size += served.stamp.size;
                draft.files.push(served);
            }
        }
        if size > MAX_SKILL_SIZE {
            return Err(too_large());
        }
        let directories = walked.directories_below(relative);
        draft.directories.extend(directories.map(|below| uri::of_path(&format!("{path}/{below}"))));
        Ok(draft)
    }
}

/// Checks the limits before anything is read.
fn check_limits(walked: &Walked, relative: &str) -> Result<(), FileFault> {
    let (files, size) = walked
        .files_below(relative)
        .fold((0_usize, 0_u64), |(files, size), (_, stamp)| (files + 1, size.saturating_add(stamp.size)));
    if files > MAX_FILES || walked.directories_below(relative).count() > MAX_FILES {
        return Err(FileFault::of_skill(format!("the skill has more than {MAX_FILES} files or directories")));
    }
    if size > MAX_SKILL_SIZE { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> FileFault {
    FileFault::of_skill(format!("the files of the skill are larger than {MAX_SKILL_SIZE} bytes together"))
}

fn join(directory: &str, file: &str) -> String {
    if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") }
}

/// Returns the front matter of a skill; the earlier one if its file has not changed.
fn front_matter(
    base: &Path,
    relative: &str,
    directory: &str,
    (earlier, stale): Known<'_>,
) -> Result<Arc<FrontMatter>, FileFault> {
    let fail = |reason: String| FileFault { file: MANIFEST.to_owned(), reason };
    let uri = format!("{directory}/{MANIFEST}");
    let path = join(relative, MANIFEST);
    let known = earlier.skill(&uri).zip(earlier.file(&uri)).filter(|(_, file)| file.is_at(base, &path));
    if let Some((skill, file)) = known
        && !stale.contains(&uri)
        && file.is_unchanged()
    {
        return Ok(Arc::clone(&skill.front_matter));
    }
    let loaded = match (load(base, &path, MAX_SKILL_SIZE, Keep::Contents), known) {
        (Ok(loaded), _) => loaded,
        (Err(error), Some((skill, _))) if error.is_transient() => return Ok(Arc::clone(&skill.front_matter)),
        (Err(error), _) => return Err(fail(error.to_string())),
    };
    let text = String::from_utf8(loaded.bytes).map_err(|_| fail("the file is not UTF-8".to_owned()))?;
    FrontMatter::parse(&text).map(Arc::new).map_err(|error| fail(error.to_string()))
}

/// Returns a file with its digest; the earlier one if the file has not changed, or is being changed now. `None` if it is
/// gone.
fn served(
    base: &Arc<Path>,
    (relative, path): (&str, &str),
    (file, stamp): (&str, &Stamp),
    (earlier, stale): Known<'_>,
) -> Result<Option<Arc<ServedFile>>, LoadError> {
    let (uri, relative) = (uri::of_path(&format!("{path}/{file}")), join(relative, file));
    let known = earlier.file(&uri).filter(|known| known.is_at(base, &relative));
    if let Some(known) = known.filter(|known| known.stamp == *stamp && !stale.contains(&uri)) {
        return Ok(Some(Arc::clone(known)));
    }
    match (load(base, &relative, MAX_SKILL_SIZE, Keep::Nothing), known) {
        (Ok(loaded), _) => Ok(Some(Arc::new(ServedFile::new(uri, Arc::clone(base), relative, loaded)))),
        // A read finds that the digest is old, and a later scan reads the file again.
        (Err(LoadError::Changing), Some(known)) => Ok(Some(Arc::clone(known))),
        (Err(LoadError::Io(error)), _) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        (Err(error), _) => Err(error),
    }
}
