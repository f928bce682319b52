//! In-memory store and backend, bounded, for development and tests. The data is lost when the process ends.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use http::Response;
use http::request::Parts;

use super::backend::{Assertion, AuthBackend, User};
use super::client::Client;
use super::store::{Record, RecordKey, RecordKind, Store, StoreError};
use crate::clock::{self, Clock};
use crate::error::OAuthError;

/// Default maximum of records per kind.
const MAX_RECORDS: usize = 10_000;
/// Minimum time between two removals of expired records while the store is full.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// In-memory [`Store`].
#[derive(Debug)]
pub struct MemoryStore {
    max: usize,
    clock: Clock,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    records: HashMap<RecordKey, Record>,
    counts: HashMap<RecordKind, usize>,
    swept: Option<SystemTime>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates a store for 10 000 records of each kind.
    pub fn new() -> Self {
        Self { max: MAX_RECORDS, clock: Clock::default(), table: Mutex::default() }
    }

    /// Sets the maximum number of records of each kind.
    #[must_use]
    pub fn max(mut self, entries: usize) -> Self {
        self.max = entries;
        self
    }

    /// Sets the source of the current time. For tests.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    fn look_up(&self, key: &RecordKey) -> Option<String> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table
            .records
            .get(key)
            .filter(|record| record.expires_at > self.clock.now())
            .map(|record| record.value.clone())
    }

    fn replace(&self, key: &RecordKey, record: Option<Record>) -> Result<Option<String>, StoreError> {
        let now = self.clock.now();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !table.records.contains_key(key);
        if record.is_some() && is_new && table.count(key.kind) >= self.max {
            table.sweep(now);
            if table.count(key.kind) >= self.max {
                return Err(StoreError::Full);
            }
        }
        let before = match record {
            Some(record) => table.insert(key.clone(), record),
            None => table.remove(key),
        };
        Ok(before.filter(|record| record.expires_at > now).map(|record| record.value))
    }
}

impl Table {
    fn count(&self, kind: RecordKind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    fn insert(&mut self, key: RecordKey, record: Record) -> Option<Record> {
        let kind = key.kind;
        let before = self.records.insert(key, record);
        if before.is_none() {
            *self.counts.entry(kind).or_default() += 1;
        }
        before
    }

    fn remove(&mut self, key: &RecordKey) -> Option<Record> {
        let before = self.records.remove(key);
        if let (Some(_), Some(count)) = (&before, self.counts.get_mut(&key.kind)) {
            *count -= 1;
        }
        before
    }

    fn sweep(&mut self, now: SystemTime) {
        if self.swept.is_some_and(|swept| clock::until(now, swept) < SWEEP_INTERVAL && swept <= now) {
            return;
        }
        self.swept = Some(now);
        self.records.retain(|_, record| record.expires_at > now);
        self.counts.clear();
        for key in self.records.keys() {
            *self.counts.entry(key.kind).or_default() += 1;
        }
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.look_up(key))))
    }

    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(self.replace(key, record)))
    }
}

/// Backend for development: every browser is its single user. Not for a server that others can reach.
#[derive(Debug)]
pub struct DevBackend {
    user: User,
    store: MemoryStore,
}

impl DevBackend {
    /// Creates a backend with this user.
    pub fn new(user: impl Into<String>) -> Self {
        Self { user: User::new(user), store: MemoryStore::new() }
    }

    /// Sets the store.
    #[must_use]
    pub fn keep_in(mut self, store: MemoryStore) -> Self {
        self.store = store;
        self
    }
}

impl AuthBackend for DevBackend {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn user<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<User, Response<Bytes>>> {
        Box::pin(std::future::ready(Ok(self.user.clone())))
    }

    /// The users of a trusted issuer are users here, with the same subject.
    fn assertion<'a>(
        &'a self,
        _: &'a Client,
        assertion: &'a Assertion,
    ) -> BoxFuture<'a, Result<User, OAuthError>> {
        Box::pin(std::future::ready(Ok(User::new(&*assertion.subject))))
    }
}
