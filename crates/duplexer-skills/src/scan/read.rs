//! Reads files that can change meanwhile.

use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

use duplexer_server::__private::files::open_below;

use crate::digest::Hasher;

/// Number of times that a file is read before it counts as one that keeps changing.
const ATTEMPTS: usize = 3;

/// Size and times of a file. A file with the same stamp is taken to be unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    modified: Option<SystemTime>,
    /// Device, number, and time of the last change of the file's metadata.
    identity: Identity,
}

#[cfg(unix)]
type Identity = (u64, u64, i64, i64);
#[cfg(not(unix))]
type Identity = ();

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), modified: metadata.modified().ok(), identity: identity(metadata) }
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {}

/// A file as it was at one moment.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) stamp: Stamp,
    pub(crate) digest: String,
    /// The contents, if they are kept.
    pub(crate) bytes: Vec<u8>,
}

/// Whether the contents of a file are needed, or only its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Contents,
    Nothing,
}

/// Failure of reading a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the file keeps changing while it is read")]
    Changing,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LoadError {
    /// Whether the file was changed or replaced meanwhile, so that the next attempt can succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Changing => true,
            Self::Io(error) => error.kind() == io::ErrorKind::NotFound,
            Self::TooLarge(_) => false,
        }
    }
}

/// Reads a file below `base`. Reads it again if it changes meanwhile.
pub(crate) fn load(base: &Path, relative: &str, limit: u64, keep: Keep) -> Result<Loaded, LoadError> {
    let mut failure = LoadError::Changing;
    for _ in 0..ATTEMPTS {
        match load_once(base, relative, limit, keep) {
            Ok(Some(loaded)) => return Ok(loaded),
            Ok(None) => {}
            // Another file may be taking its place.
            Err(error) if error.is_transient() => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

/// Reads a file. Returns `None` if it has changed meanwhile.
fn load_once(base: &Path, relative: &str, limit: u64, keep: Keep) -> Result<Option<Loaded>, LoadError> {
    let mut file = open_below(base, relative)?;
    let before = Stamp::of(&file.metadata()?);
    if before.size > limit {
        return Err(LoadError::TooLarge(limit));
    }
    let (mut hasher, mut bytes, mut size) = (Hasher::default(), Vec::new(), 0_u64);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let part = buffer.get(..count).unwrap_or_default();
        size += part.len() as u64;
        if size > limit {
            return Err(LoadError::TooLarge(limit));
        }
        hasher.update(part);
        if keep == Keep::Contents {
            bytes.extend_from_slice(part);
        }
    }
    let stamp = Stamp::of(&file.metadata()?);
    let is_stable = stamp == before && size == stamp.size;
    Ok(is_stable.then(|| Loaded { stamp, digest: hasher.finish(), bytes }))
}
