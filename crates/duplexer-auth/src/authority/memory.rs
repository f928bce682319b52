//! Everything in memory, within bounds: for development and tests. What is kept ends with the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use http::Response;
use http::request::Parts;

use super::client::Client;
use super::provider::{Assertion, Provider, User};
use super::store::{Entry, Key, Kind, Store, StoreError};
use crate::clock::{self, Clock};
use crate::error::OAuthError;

/// How many of one kind are kept, unless told otherwise.
const MAX: usize = 10_000;
/// How often at most it is looked for what has ended, when there is no room.
const SWEEP: Duration = Duration::from_secs(1);

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    max: usize,
    clock: Clock,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    counts: HashMap<Kind, usize>,
    swept: Option<SystemTime>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store for ten thousand of each kind.
    pub fn new() -> Self {
        Self { max: MAX, clock: Clock::default(), kept: Mutex::default() }
    }

    /// Keeps so many of each kind.
    #[must_use]
    pub fn max(mut self, entries: usize) -> Self {
        self.max = entries;
        self
    }

    /// Where the time comes from. For tests.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    fn look_up(&self, key: &Key) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entries
            .get(key)
            .filter(|entry| entry.expires_at > self.clock.now())
            .map(|entry| entry.value.clone())
    }

    fn exchange(&self, key: &Key, entry: Option<Entry>) -> Result<Option<String>, StoreError> {
        let now = self.clock.now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !kept.entries.contains_key(key);
        if entry.is_some() && is_new && kept.count(key.kind) >= self.max {
            kept.sweep(now);
            if kept.count(key.kind) >= self.max {
                return Err(StoreError::Full);
            }
        }
        let before = match entry {
            Some(entry) => kept.insert(key.clone(), entry),
            None => kept.remove(key),
        };
        Ok(before.filter(|entry| entry.expires_at > now).map(|entry| entry.value))
    }
}

impl Kept {
    fn count(&self, kind: Kind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    fn insert(&mut self, key: Key, entry: Entry) -> Option<Entry> {
        let kind = key.kind;
        let before = self.entries.insert(key, entry);
        if before.is_none() {
            *self.counts.entry(kind).or_default() += 1;
        }
        before
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let before = self.entries.remove(key);
        if let (Some(_), Some(count)) = (&before, self.counts.get_mut(&key.kind)) {
            *count -= 1;
        }
        before
    }

    fn sweep(&mut self, now: SystemTime) {
        if self.swept.is_some_and(|swept| clock::until(now, swept) < SWEEP && swept <= now) {
            return;
        }
        self.swept = Some(now);
        self.entries.retain(|_, entry| entry.expires_at > now);
        self.counts.clear();
        for key in self.entries.keys() {
            *self.counts.entry(key.kind).or_default() += 1;
        }
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.look_up(key))))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        entry: Option<Entry>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(self.exchange(key, entry)))
    }
}

/// A provider for development: whoever opens the page is its one user. Not for a server that others can reach.
#[derive(Debug)]
pub struct Development {
    user: User,
    store: MemoryStore,
}

impl Development {
    /// Everybody is this user.
    pub fn new(user: impl Into<String>) -> Self {
        Self { user: User::new(user), store: MemoryStore::new() }
    }

    /// Keeps things there.
    #[must_use]
    pub fn keep_in(mut self, store: MemoryStore) -> Self {
        self.store = store;
        self
    }
}

impl Provider for Development {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn user<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<User, Response<Bytes>>> {
        Box::pin(std::future::ready(Ok(self.user.clone())))
    }

    /// The users of a trusted issuer are users here, under their own names.
    fn assertion<'a>(
        &'a self,
        _: &'a Client,
        assertion: &'a Assertion,
    ) -> BoxFuture<'a, Result<User, OAuthError>> {
        Box::pin(std::future::ready(Ok(User::new(&*assertion.subject))))
    }
}
