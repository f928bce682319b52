//! Credentials in files that only their owner can read: one per server, replaced as a whole, locked across processes.

#[cfg_attr(
    unix,
    allow(dead_code, reason = "Unix has a path of its own; this one is compiled and tested there too")
)]
mod portable;
mod records;
#[cfg(test)]
#[cfg(unix)]
mod tests;
#[cfg(unix)]
mod unix;

use std::path::PathBuf;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;

use super::{CredentialStore, Generation, Key, Record, StoreLock, Swapped};
#[cfg(not(unix))]
use portable::PortableFiles as NativeFiles;
use records::{Records, denied};
#[cfg(unix)]
use unix::UnixFiles as NativeFiles;

/// Stores credentials in files of a folder that only the user can use.
///
/// On Unix the folder has mode 0700 and its files 0600, and what others can use is refused. On Windows they inherit the
/// permissions of the parent folder: choose one inside the profile of the user. Symbolic links are refused everywhere
/// below the folder.
///
/// ```
/// use duplexer_oauth::{FileCredentials, OAuth};
///
/// # let folder = std::env::temp_dir().join(format!("duplexer-credentials-{}", std::process::id()));
/// let login = OAuth::login_with_browser("my-program").store(FileCredentials::at(folder)?).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileCredentials(Records<NativeFiles>);

impl FileCredentials {
    /// Uses the folder of an application below the user's data folder: `$XDG_DATA_HOME`, or `~/.local/share`, or on Windows
    /// `%LOCALAPPDATA%`.
    ///
    /// # Errors
    /// Fails if none of these variables is set, or if the folder is not private.
    pub fn for_application(name: &str) -> Result<Self, StoreError> {
        let data = data_folder()?;
        if name.is_empty() || name.contains(['/', '\\', ':']) || name.starts_with('.') {
            return Err(denied(format!("'{name}' cannot name a folder")));
        }
        Self::at(data.join(name).join("oauth"))
    }

    /// Uses this folder, which is created with the first record.
    ///
    /// # Errors
    /// Fails if the folder belongs to another user, or is accessible to others.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Records::new(folder.into()).map(Self)
    }

    /// Locks a key for a compare-and-swap, which other processes do in turn.
    #[cfg(feature = "keyring")]
    pub(super) async fn lock_swap(&self, key: &Key) -> Result<std::fs::File, StoreError> {
        self.0.lock_swap(key).await
    }
}

/// Returns the folder of the user for data of applications.
fn data_folder() -> Result<PathBuf, StoreError> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (variable, usual) = if cfg!(windows) {
        ("LOCALAPPDATA", absolute("LOCALAPPDATA"))
    } else {
        ("HOME", absolute("HOME").map(|home| home.join(".local/share")))
    };
    let data = absolute("XDG_DATA_HOME").or(usual);
    data.ok_or_else(|| denied(format!("neither XDG_DATA_HOME nor {variable} is set")))
}

impl CredentialStore for FileCredentials {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(async move { self.0.load(key) })
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(self.0.swap(key, expected, new))
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        Box::pin(async move { Ok(StoreLock::new(self.0.lock(key).await?)) })
    }
}
