//! Credentials in memory, for one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;

use super::{CredentialStore, Generation, Key, Record, Swapped};

/// Maximum records, across all servers and logins in progress.
const MAX_RECORDS: usize = 4096;

/// Stores credentials in memory. They are lost when the process ends. Clones share their records.
///
/// ```
/// use duplexer_oauth::{MemoryCredentials, OAuth};
///
/// // Each user has their own tokens in one store.
/// let store = MemoryCredentials::new();
/// let of_user = |user: &str| OAuth::login_on_web("shop", "https://shop.example/callback").store(store.clone()).account(user).build();
/// let (ada, bob) = (of_user("ada")?, of_user("bob")?);
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryCredentials(Arc<Mutex<HashMap<Key, Record>>>);

impl MemoryCredentials {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn records(&self) -> MutexGuard<'_, HashMap<Key, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn swapped(
        &self,
        key: &Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> Result<Swapped, StoreError> {
        let mut records = self.records();
        let now = SystemTime::now();
        let found = records.get(key).cloned();
        if found.as_ref().map(Record::generation) != expected {
            return Ok(Swapped::Conflict(found));
        }
        match new {
            None => drop(records.remove(key)),
            Some(record) => {
                if records.len() >= MAX_RECORDS && found.is_none() {
                    records.retain(|_, record| record.expires_at().is_none_or(|end| now < end));
                }
                if records.len() >= MAX_RECORDS && found.is_none() {
                    return Err(StoreError::Full);
                }
                records.insert(key.clone(), record);
            }
        }
        Ok(Swapped::Done)
    }
}

impl CredentialStore for MemoryCredentials {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        let found = self.records().get(key).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<Generation>,
        new: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        let swapped = self.swapped(key, expected, new);
        Box::pin(std::future::ready(swapped))
    }
}
