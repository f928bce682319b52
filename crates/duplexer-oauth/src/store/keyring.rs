//! Credentials in the keyring of the platform: of the kernel on Linux, Keychain on macOS, Credential Manager on Windows.
//!
//! A keyring has no compare-and-swap: the lock files of [`FileCredentials`] make one for all processes. Nothing is cached,
//! because another process may have renewed a token.

use std::sync::{Arc, Mutex, PoisonError};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, StoreError};
use duplexer_oauth_base::secret;
use keyring_core::api::CredentialStoreApi;
use keyring_core::{Entry, Error};
use zeroize::Zeroizing;

use super::encoding::{decode, encode};
use super::file::FileCredentials;
use super::{CredentialStore, Generation, Key, Record, StoreLock, Swapped};

type Platform = Arc<dyn CredentialStoreApi + Send + Sync>;

/// Excludes the other threads of this process from a compare-and-swap, also one whose caller is gone with its lock file.
static SWAPPING: Mutex<()> = Mutex::new(());

/// Stores credentials in the keyring of the platform (feature `keyring`).
///
/// On Linux this is the keyring of the kernel: it needs no daemon, and forgets everything at the next start of the
/// machine, or after three days without use. A service without a login session needs a kernel with persistent keyrings;
/// without them it forgets at once. Credential Manager holds 2560 bytes per server: long tokens do not fit.
/// Logins of web applications ([`OAuth::login_on_web`](crate::OAuth::login_on_web)) are refused, because nothing would
/// remove those that are never finished.
///
/// Processes lock each other out with empty files in the folder of [`FileCredentials`].
///
/// ```
/// use duplexer_oauth::{KeyringCredentials, OAuth};
///
/// let login = OAuth::login_with_browser("my-program");
/// // Fails where the platform has no keyring.
/// let login = match KeyringCredentials::for_application("my-program") {
///     Ok(keyring) => login.store(keyring),
///     Err(_) => login,
/// };
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone)]
pub struct KeyringCredentials {
    application: String,
    platform: Platform,
    locks: FileCredentials,
}

impl KeyringCredentials {
    /// Uses the entries of an application in the keyring of the user.
    ///
    /// # Errors
    /// Fails if the platform has no keyring, or if [`FileCredentials::for_application`] does.
    pub fn for_application(name: &str) -> Result<Self, StoreError> {
        Ok(Self {
            application: name.to_owned(),
            platform: platform()?,
            locks: FileCredentials::for_application(name)?,
        })
    }

    /// Returns the entry of a key. Names are short everywhere, so it is the digest of the key.
    fn entry(&self, key: &Key) -> Result<Entry, StoreError> {
        let build = || self.platform.build(&self.application, &secret::digest(key.as_str()), None);
        // On Linux a thread without a session keyring gets one by the first call, which itself still uses another one.
        build().and_then(|_| build()).map_err(failure)
    }

    /// Runs an operation of the keyring on a thread where it can wait, for example for the person to unlock it.
    async fn blocking<T: Send + 'static>(
        &self,
        key: &Key,
        operation: impl FnOnce(&Entry) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (this, key) = (self.clone(), key.clone());
        let run = move || operation(&this.entry(&key)?);
        tokio::task::spawn_blocking(run).await.map_err(|error| StoreError::Failed(error.into()))?
    }
}

#[cfg(target_os = "linux")]
fn platform() -> Result<Platform, StoreError> {
    Ok(linux_keyutils_keyring_store::Store::new().map_err(failure)?)
}

#[cfg(target_os = "macos")]
fn platform() -> Result<Platform, StoreError> {
    Ok(apple_native_keyring_store::keychain::Store::new().map_err(failure)?)
}

#[cfg(windows)]
fn platform() -> Result<Platform, StoreError> {
    Ok(windows_native_keyring_store::Store::new().map_err(failure)?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
fn platform() -> Result<Platform, StoreError> {
    Err(StoreError::Denied("this platform has no keyring".into()))
}

fn read(entry: &Entry) -> Result<Option<Record>, StoreError> {
    match entry.get_secret().map(Zeroizing::new) {
        Ok(bytes) => {
            let damaged = || StoreError::Unreadable("the entry of the keyring is damaged".into());
            decode(&bytes).map(Some).ok_or_else(damaged)
        }
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

fn swapped(entry: &Entry, expected: Option<Generation>, new: Option<&Record>) -> Result<Swapped, StoreError> {
    let _swapping = SWAPPING.lock().unwrap_or_else(PoisonError::into_inner);
    let found = read(entry)?;
    if found.as_ref().map(Record::generation) != expected {
        return Ok(Swapped::Conflict(found));
    }
    let done = match new {
        Some(record) => entry.set_secret(&encode(record)),
        None => entry.delete_credential(),
    };
    match done {
        Ok(()) | Err(Error::NoEntry) => Ok(Swapped::Done),
        Err(error) => Err(failure(error)),
    }
}

/// Some errors contain the secret, so only those that do not are passed on.
fn failure(error: Error) -> StoreError {
    match error {
        Error::NoStorageAccess(source) | Error::PlatformFailure(source) => StoreError::Unavailable(source),
        Error::TooLong(_, limit) => {
            StoreError::Denied(format!("the keyring holds at most {limit} bytes per entry").into())
        }
        Error::BadEncoding(_) | Error::BadDataFormat(..) | Error::BadStoreFormat(_) | Error::Ambiguous(_) => {
            StoreError::Unreadable("the entry of the keyring is damaged".into())
        }
        other => StoreError::Failed(BoxError::from(other.to_string())),
    }
}

impl CredentialStore for KeyringCredentials {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(self.blocking(key, read))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(async move {
            if new.as_ref().is_some_and(|record| record.expires_at().is_some()) {
                let text = "a keyring does not hold unfinished logins: use another store on the web";
                return Err(StoreError::Denied(text.into()));
            }
            let _writer = self.locks.lock_swap(key).await?;
            self.blocking(key, move |entry| swapped(entry, expected, new.as_ref())).await
        })
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        self.locks.lock(key)
    }
}

impl std::fmt::Debug for KeyringCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyringCredentials").field("application", &self.application).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(unix)]
#[path = "keyring/tests.rs"]
mod tests;
