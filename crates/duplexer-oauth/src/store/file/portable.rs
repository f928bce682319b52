//! Private files on other platforms: they inherit the permissions of the folder of the user, and links are refused.
//!
//! A lock is a file that is open. It ends with its process, whatever happens to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use duplexer_core::error::StoreError;

use super::records::{PrivateFiles, denied, failed};

#[derive(Debug)]
pub(super) struct PortableFiles;

impl PrivateFiles for PortableFiles {
    fn create_folder(path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn check_folder(path: &Path) -> Result<(), StoreError> {
        let found = fs::symlink_metadata(path).map_err(failed)?;
        if found.is_dir() { Ok(()) } else { Err(denied(format!("'{}' is not a folder", path.display()))) }
    }

    fn open(options: &mut OpenOptions, path: &Path) -> Result<File, StoreError> {
        check_file(path)?;
        options.open(path).map_err(failed)
    }

    fn try_lock(path: &Path) -> Result<Option<File>, StoreError> {
        check_file(path)?;
        try_hold(OpenOptions::new().read(true).write(true).create(true), path).map_err(failed)
    }
}

/// Refuses a link in place of a file. Only the user can put one into the folder.
fn check_file(path: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(denied("a file of the store is a symbolic link".to_owned())),
        Ok(found) if !found.is_file() => Err(denied("a file of the store is not a file".to_owned())),
        _ => Ok(()),
    }
}

/// Opens a file that no other process can open meanwhile.
#[cfg(windows)]
fn try_hold(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt as _;

    /// `ERROR_SHARING_VIOLATION` and `ERROR_LOCK_VIOLATION`.
    const HELD: [Option<i32>; 2] = [Some(32), Some(33)];
    match options.share_mode(0).open(path) {
        Err(error) if HELD.contains(&error.raw_os_error()) => Ok(None),
        opened => opened.map(Some),
    }
}

#[cfg(unix)]
fn try_hold(options: &mut OpenOptions, path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};

    let file = options.open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(unix, windows)))]
fn try_hold(_: &mut OpenOptions, _: &Path) -> io::Result<Option<File>> {
    Err(io::ErrorKind::Unsupported.into())
}
