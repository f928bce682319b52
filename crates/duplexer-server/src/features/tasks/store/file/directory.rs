//! The files of a directory of tasks: names, format, durability and the lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use duplexer_core::error::StoreError;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::OpenTasksError;
use crate::features::tasks::record::{TaskId, TaskRecord};

/// Version of the format of a file. A file of another version is not read.
const FORMAT: u32 = 1;

const LOCK: &str = "lock";
const RECORD: &str = "json";
const UNFINISHED: &str = "new";
const UNREADABLE: &str = "unreadable";

/// A file: a record with the version of its format.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    format: u32,
    record: T,
}

pub(super) struct Directory {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Directory {
    /// Opens a directory for this process alone, and reads its records.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<TaskRecord>), OpenTasksError> {
        let unusable = |source: io::Error| OpenTasksError::Unusable { path: path.to_owned(), source };
        create(path).map_err(unusable)?;
        let lock = match lock_file(&path.join(LOCK)) {
            Ok(Some(lock)) => lock,
            Ok(None) => return Err(OpenTasksError::InUse(path.to_owned())),
            Err(source) => return Err(unusable(source)),
        };
        let records = read_all(path).map_err(unusable)?;
        Ok((Self { path: path.to_owned(), _lock: lock }, records))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a record. When this returns, it survives the end of the process and of the system.
    pub(super) fn write(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&Stored { format: FORMAT, record })
            .map_err(|error| StoreError::Failed(error.into()))?;
        let (place, beside) = (self.place(&record.id, RECORD), self.place(&record.id, UNFINISHED));
        let written = (|| {
            let mut file = private().write(true).create(true).truncate(true).open(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            drop(file);
            fs::rename(&beside, &place)?;
            sync(&self.path)
        })();
        written.map_err(stored)
    }

    pub(super) fn delete(&self, id: &TaskId) -> Result<(), StoreError> {
        match fs::remove_file(self.place(id, RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(stored(error)),
            _ => Ok(()),
        }
    }

    fn place(&self, id: &TaskId, kind: &str) -> PathBuf {
        self.path.join(format!("{}.{kind}", file_name(id)))
    }
}

/// Returns the name of a task's file. It is a digest, because an id could come from anywhere.
fn file_name(id: &TaskId) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(id.as_str().as_bytes());
    let mut name = String::with_capacity(48);
    for byte in digest.iter().take(24) {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

fn stored(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::Denied(error.into())
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full,
        _ => StoreError::Unavailable(error.into()),
    }
}

/// Reads all records. What cannot be read is renamed, and what was not finished is deleted.
fn read_all(path: &Path) -> io::Result<Vec<TaskRecord>> {
    let mut records = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        match file.extension().and_then(|it| it.to_str()) {
            Some(RECORD) => match read(&file) {
                Ok(record) => records.push(record),
                Err(error) => {
                    tracing::error!(file = %file.display(), error, "a task cannot be read, and its file is set aside");
                    fs::rename(&file, file.with_extension(UNREADABLE))?;
                }
            },
            Some(UNFINISHED) => fs::remove_file(&file)?,
            _ => {}
        }
    }
    Ok(records)
}

fn read(file: &Path) -> Result<TaskRecord, duplexer_core::error::BoxError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let text = fs::read(file)?;
    let Format { format } = serde_json::from_slice(&text)?;
    if format != FORMAT {
        return Err(format!("it has the format {format}, and this program reads {FORMAT}").into());
    }
    let stored: Stored<TaskRecord> = serde_json::from_slice(&text)?;
    Ok(stored.record)
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}

/// Makes a rename durable.
#[cfg(unix)]
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Directories cannot be synchronised elsewhere: the file system orders the rename after the content.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "one signature for all platforms")]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Locks a file until it is closed; `None` if another process has it. The system releases the lock of a process that ends.
#[cfg(unix)]
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    let file = private().read(true).write(true).create(true).truncate(false).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(windows)]
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt as _;
    const SHARING_VIOLATION: i32 = 32;
    let opened =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).share_mode(0).open(path);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(not(any(unix, windows)))]
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map(Some)
}
