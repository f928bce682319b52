//! Credentials in files that only their owner can read: one per server, replaced as a whole, locked across processes.
//!
//! A file is written next to its place and renamed. Symbolic links are refused everywhere below the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, StoreError};
use duplexer_oauth_base::secret;
use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::time::{Instant, sleep};
use zeroize::Zeroizing;

use super::encoding::{PREFIX, decode, encode, prefix};
use super::{CredentialStore, Generation, Key, Record, StoreLock, Swapped};

/// Maximum size of a file.
const MAX_SIZE: u64 = 1024 * 1024;
/// Maximum time for which a lock of another process is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(20);
/// Maximum files that one write looks through for expired ones.
const MAX_SWEPT: usize = 1000;

/// Stores credentials in a folder of the user, mode 0700, in files of mode 0600. For Unix only.
///
/// ```
/// use duplexer_oauth::{FileCredentials, OAuth};
///
/// # let folder = std::env::temp_dir().join(format!("duplexer-credentials-{}", std::process::id()));
/// let login = OAuth::login_with_browser("my-program").store(FileCredentials::at(folder)?).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileCredentials {
    folder: PathBuf,
}

impl FileCredentials {
    /// Uses the folder of an application below the user's data folder: `$XDG_DATA_HOME`, or `~/.local/share`.
    ///
    /// # Errors
    /// Fails if there is neither variable, or if the folder is not private.
    pub fn for_application(name: &str) -> Result<Self, StoreError> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data =
            absolute("XDG_DATA_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
        let data = data.ok_or_else(|| denied("neither XDG_DATA_HOME nor HOME is set".into()))?;
        if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
            return Err(denied(format!("'{name}' cannot name a folder").into()));
        }
        Self::at(data.join(name).join("oauth"))
    }

    /// Uses this folder, which is created with the first record.
    ///
    /// # Errors
    /// Fails if the folder belongs to another user, or is accessible to others.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        check_folder(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, key: &Key, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", secret::digest(key.as_str())))
    }

    /// Locks a key for a compare-and-swap, which other processes do in turn.
    pub(super) async fn lock_swap(&self, key: &Key) -> Result<File, StoreError> {
        self.locked(self.path(key, "swap")).await
    }

    /// Takes an advisory lock. A file of its own, so that the record can be replaced meanwhile.
    async fn locked(&self, name: PathBuf) -> Result<File, StoreError> {
        self.create_folder()?;
        let file =
            options().read(true).write(true).create(true).truncate(false).open(&name).map_err(failed)?;
        check_file(&file)?;
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if Instant::now() < end => {
                    sleep(LOCK_POLL).await;
                }
                Err(error) => return Err(StoreError::Unavailable(io::Error::from(error).into())),
            }
        }
    }

    fn create_folder(&self) -> Result<(), StoreError> {
        if let Some(parent) = self.folder.parent() {
            DirBuilder::new().mode(0o700).recursive(true).create(parent).map_err(failed)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            _ => check_folder(&self.folder),
        }
    }

    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let file = match options().read(true).open(self.path(key, "json")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        check_file(&file)?;
        let mut content = Zeroizing::new(Vec::new());
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
            let mut file = options().write(true).create_new(true).open(&beside)?;
            file.write_all(&encode(record))?;
            file.sync_all()?;
            fs::rename(&beside, self.path(key, "json"))
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&beside);
            failed(error)
        })
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
            if is_old && (ending == Some("new") || ending == Some("json") && has_expired(&path, now)) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn has_expired(path: &Path, now: SystemTime) -> bool {
    let mut start = [0; PREFIX];
    let read = options().read(true).open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && prefix(&start).is_some_and(|(_, expiry)| expiry.is_some_and(|end| end < now))
}

impl CredentialStore for FileCredentials {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move {
            check_folder(&self.folder)?;
            self.read(key)
        })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(async move {
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
        })
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        Box::pin(async move { Ok(StoreLock::new(self.locked(self.path(key, "lock")).await?)) })
    }
}

/// Options with which a symbolic link is not followed, and a new file is private.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.mode(0o600).custom_flags(flags.cast_signed());
    options
}

/// Checks that a folder, if it exists, is one that only its owner can use.
fn check_folder(path: &Path) -> Result<(), StoreError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    let shown = path.display();
    if !found.is_dir() {
        return Err(denied(format!("'{shown}' is not a folder").into()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(denied(format!("'{shown}' belongs to another user").into()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(denied(
            format!("'{shown}' is accessible to other users: run `chmod 700 {shown}`").into(),
        ));
    }
    Ok(())
}

fn check_file(file: &File) -> Result<(), StoreError> {
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(denied("a file of the store is not a file of this user".into()));
    }
    if found.mode() & 0o077 != 0 {
        return Err(denied(
            "a file of the store is accessible to other users: log in again after removing it".into(),
        ));
    }
    Ok(())
}

fn failed(error: io::Error) -> StoreError {
    // `ELOOP`: a symbolic link where none must be.
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return denied("a file of the store is a symbolic link".into());
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => StoreError::Denied(error.into()),
        _ => StoreError::Unavailable(error.into()),
    }
}

fn denied(error: BoxError) -> StoreError {
    StoreError::Denied(error)
}
