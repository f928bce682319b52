//! The files of a folder: reading, replacing, locking, and removal of what has expired.
//!
//! A file is written next to its place and renamed. What makes files private is behind [`PrivateFiles`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use duplexer_core::error::StoreError;
use duplexer_oauth_base::secret;
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::super::encoding::{PREFIX, decode, encode, prefix};
use super::super::{Generation, Key, Record, Swapped};

/// Maximum size of a file.
const MAX_SIZE: u64 = 1024 * 1024;
/// Maximum time for which a lock of another process is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(20);
/// Maximum files that one write looks through for expired ones.
const MAX_SWEPT: usize = 1000;

/// How a platform keeps files to their owner, and one process from another.
pub(super) trait PrivateFiles: Send + Sync + 'static {
    /// Creates a folder that only the user can use. Its parent exists.
    fn create_folder(path: &Path) -> io::Result<()>;

    /// Checks that an existing folder is one that only the user can use, and not a link to another.
    fn check_folder(path: &Path) -> Result<(), StoreError>;

    /// Opens a file that only the user can use. A link is refused.
    fn open(options: &mut OpenOptions, path: &Path) -> Result<File, StoreError>;

    /// Opens and creates a file that one process has at a time. Returns `None` while another has it.
    fn try_lock(path: &Path) -> Result<Option<File>, StoreError>;
}

/// The records of a folder.
#[derive(Debug)]
pub(super) struct Records<P> {
    folder: PathBuf,
    platform: PhantomData<P>,
}

impl<P> Clone for Records<P> {
    fn clone(&self) -> Self {
        Self { folder: self.folder.clone(), platform: PhantomData }
    }
}

impl<P: PrivateFiles> Records<P> {
    pub(super) fn new(folder: PathBuf) -> Result<Self, StoreError> {
        let records = Self { folder, platform: PhantomData };
        records.check_folder()?;
        Ok(records)
    }

    pub(super) fn load(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.check_folder()?;
        self.read(key)
    }

    pub(super) async fn swap(
        &self,
        key: &Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> Result<Swapped, StoreError> {
        let _writer = self.lock_swap(key).await?;
        let found = self.read(key)?;
        if found.as_ref().map(Record::generation) != expected {
            return Ok(Swapped::Conflict(found));
        }
        self.sweep();
        match new {
            Some(record) => self.write(key, &record)?,
            None => self.remove(key)?,
        }
        Ok(Swapped::Done)
    }

    /// Locks a key until the file is dropped.
    pub(super) async fn lock(&self, key: &Key) -> Result<File, StoreError> {
        self.locked(self.path(key, "lock")).await
    }

    pub(super) async fn lock_swap(&self, key: &Key) -> Result<File, StoreError> {
        self.locked(self.path(key, "swap")).await
    }

    fn path(&self, key: &Key, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", secret::digest(key.as_str())))
    }

    /// Takes a lock. It is a file of its own, so that the record can be replaced meanwhile.
    async fn locked(&self, name: PathBuf) -> Result<File, StoreError> {
        self.create_folder()?;
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match P::try_lock(&name)? {
                Some(file) => return Ok(file),
                None if Instant::now() < end => sleep(LOCK_POLL).await,
                None => return Err(StoreError::Unavailable("another process has locked the store".into())),
            }
        }
    }

    fn check_folder(&self) -> Result<(), StoreError> {
        match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => P::check_folder(&self.folder),
        }
    }

    fn create_folder(&self) -> Result<(), StoreError> {
        create_all::<P>(&self.folder)?;
        P::check_folder(&self.folder)
    }

    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let path = self.path(key, "json");
        if let Err(error) = fs::symlink_metadata(&path)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Ok(None);
        }
        let mut content = Zeroizing::new(Vec::new());
        let file = P::open(OpenOptions::new().read(true), &path)?;
        file.take(MAX_SIZE + 1).read_to_end(&mut content).map_err(failed)?;
        let unreadable = || StoreError::Unreadable("the file is damaged".into());
        if content.len() as u64 > MAX_SIZE {
            return Err(unreadable());
        }
        decode(&content).map(Some).ok_or_else(unreadable)
    }

    /// Writes next to the place and renames, so that a crash leaves the old or the new file, never a part.
    fn write(&self, key: &Key, record: &Record) -> Result<(), StoreError> {
        let random = secret::random_hex::<8>().map_err(|error| StoreError::Failed(error.into()))?;
        let beside = self.path(key, &format!("{random}.new"));
        let written = (|| {
            let mut file = P::open(OpenOptions::new().write(true).create_new(true), &beside)?;
            file.write_all(&encode(record)).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            drop(file);
            fs::rename(&beside, self.path(key, "json")).map_err(failed)
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn remove(&self, key: &Key) -> Result<(), StoreError> {
        match fs::remove_file(self.path(key, "json")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Removes what a process that was killed has left, and logins that were never finished.
    fn sweep(&self) {
        const OLD: Duration = Duration::from_secs(3600);
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let now = SystemTime::now();
        for path in entries.take(MAX_SWEPT).flatten().map(|entry| entry.path()) {
            let age = fs::symlink_metadata(&path).and_then(|found| found.modified());
            let is_old = age.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > OLD));
            let ending = path.extension().and_then(|ending| ending.to_str());
            if is_old && (ending == Some("new") || ending == Some("json") && has_expired::<P>(&path, now)) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn has_expired<P: PrivateFiles>(path: &Path, now: SystemTime) -> bool {
    let mut start = [0; PREFIX];
    let Ok(mut file) = P::open(OpenOptions::new().read(true), path) else { return false };
    let read = file.read_exact(&mut start);
    read.is_ok() && prefix(&start).is_some_and(|(_, expiry)| expiry.is_some_and(|end| end < now))
}

/// Creates a folder and those above it that are missing.
fn create_all<P: PrivateFiles>(path: &Path) -> Result<(), StoreError> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) {
        create_all::<P>(parent)?;
    }
    match P::create_folder(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}

pub(super) fn failed(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => StoreError::Denied(error.into()),
        _ => StoreError::Unavailable(error.into()),
    }
}

pub(super) fn denied(text: String) -> StoreError {
    StoreError::Denied(text.into())
}
