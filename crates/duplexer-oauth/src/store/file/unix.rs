//! Private files on Unix: modes, owners, links that are not followed, advisory locks.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use duplexer_core::error::StoreError;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::records::{PrivateFiles, denied, failed};

#[derive(Debug)]
pub(super) struct UnixFiles;

impl PrivateFiles for UnixFiles {
    fn create_folder(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn check_folder(path: &Path) -> Result<(), StoreError> {
        let found = fs::symlink_metadata(path).map_err(failed)?;
        let shown = path.display();
        if !found.is_dir() {
            return Err(denied(format!("'{shown}' is not a folder")));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(denied(format!("'{shown}' belongs to another user")));
        }
        if found.mode() & 0o077 != 0 {
            let text = format!("'{shown}' is accessible to other users: run `chmod 700 {shown}`");
            return Err(denied(text));
        }
        Ok(())
    }

    fn open(options: &mut OpenOptions, path: &Path) -> Result<File, StoreError> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = options.mode(0o600).custom_flags(flags.cast_signed()).open(path);
        let file = opened.map_err(|error| {
            // `ELOOP`: a symbolic link where none must be.
            if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
                return denied("a file of the store is a symbolic link".to_owned());
            }
            failed(error)
        })?;
        check_file(&file)?;
        Ok(file)
    }

    fn try_lock(path: &Path) -> Result<Option<File>, StoreError> {
        let file = Self::open(OpenOptions::new().read(true).write(true).create(true), path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }
}

fn check_file(file: &File) -> Result<(), StoreError> {
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(denied("a file of the store is not a file of this user".to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        let text = "a file of the store is accessible to other users: log in again after removing it";
        return Err(denied(text.to_owned()));
    }
    Ok(())
}
