//! Storage of credentials: in memory, in files, in the keyring, or anywhere else behind [`CredentialStore`].

mod encoding;
pub(crate) mod file;
#[cfg(feature = "keyring")]
pub(crate) mod keyring;
pub(crate) mod memory;

use std::any::Any;
use std::fmt;
use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_oauth_base::secret;
use zeroize::Zeroizing;

/// Stores credentials of an application. The records contain secrets.
///
/// A store that several processes share implements [`Self::lock`], so that only one of them spends a refresh token.
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns the record of a key.
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;

    /// Replaces the record of a key by `new`, or removes it, if its generation is still `expected` (`None`: there is no
    /// record). The check and the change are one operation.
    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>>;

    /// Locks a key for all processes until the returned value is dropped. The default locks nothing, for stores of one
    /// process.
    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, StoreError>> {
        let _ = key;
        Box::pin(std::future::ready(Ok(StoreLock::none())))
    }
}

/// Name of a record. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(String);

impl Key {
    pub(crate) fn new(parts: &[&str]) -> Self {
        Self(serde_json::json!(parts).to_string())
    }

    /// Returns the name as text: a JSON array.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Random number that distinguishes one write of a record from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(pub u64);

/// A stored record: opaque bytes that contain secrets. `Debug` does not show them.
#[derive(Clone)]
pub struct Record {
    generation: Generation,
    content: Zeroizing<Vec<u8>>,
    expires_at: Option<SystemTime>,
}

impl Record {
    pub(crate) fn new(content: Vec<u8>) -> Result<Self, StoreError> {
        let random = secret::random::<8>().map_err(|error| StoreError::Failed(error.into()))?;
        let generation = Generation(u64::from_be_bytes(random));
        Ok(Self { generation, content: Zeroizing::new(content), expires_at: None })
    }

    pub(crate) fn until(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    /// Restores a record from what a store has kept.
    pub fn restore(generation: Generation, content: Vec<u8>) -> Self {
        Self { generation, content: Zeroizing::new(content), expires_at: None }
    }

    /// Returns the generation.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the bytes.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// Returns the time after which a store can remove the record.
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// Result of [`CredentialStore::swap`].
#[derive(Debug)]
pub enum Swapped {
    /// The record was replaced.
    Done,
    /// Another write came first: this is what is there.
    Conflict(Option<Record>),
}

/// A lock that is held until it is dropped.
pub struct StoreLock(#[expect(dead_code, reason = "its drop releases the lock")] Box<dyn Any + Send>);

impl StoreLock {
    /// Wraps a value whose drop releases the lock.
    pub fn new(held: impl Send + 'static) -> Self {
        Self(Box::new(held))
    }

    pub(crate) fn none() -> Self {
        Self::new(())
    }
}

impl fmt::Debug for StoreLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreLock")
    }
}
