//! In-memory store and backend, bounded, for development and tests. The data is lost when the process ends.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_oauth_base::clock::{self, Clock};
use http::Response;
use http::request::Parts;

use super::backend::{Assertion, AuthBackend, User};
use super::client::RegisteredClient;
use super::store::{Record, RecordKey, RecordKind, Retention, Store, Swapped, When};
use crate::error::OAuthError;

/// Default maximum of records per kind.
const MAX_RECORDS: usize = 10_000;
/// Minimum time between two removals of expired records while the store is full.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// In-memory [`Store`].
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use duplexer_auth::{MemoryStore, Record, RecordKey, RecordKind, Store, Swapped, When};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer_auth::StoreError> {
/// let store = MemoryStore::new();
/// let code = RecordKey::new(RecordKind::Code, "digest");
/// let record = Record::new("{}".to_owned(), SystemTime::now() + Duration::from_secs(60));
/// store.swap(&code, When::Absent, Some(record)).await?;
/// // A code can be taken once.
/// assert_eq!(store.swap(&code, When::Present, None).await?, Swapped::Done(Some("{}".to_owned())));
/// assert_eq!(store.swap(&code, When::Present, None).await?, Swapped::Not(None));
/// # Ok(())
/// # }
/// ```
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
    /// Ids of evictable records by their expiry.
    evictable: HashMap<RecordKind, BTreeSet<(SystemTime, String)>>,
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
        self.lock().current(key, self.clock.now())
    }

    fn replace(&self, key: &RecordKey, when: &When, record: Option<Record>) -> Result<Swapped, StoreError> {
        let now = self.clock.now();
        let mut table = self.lock();
        let current = table.current(key, now);
        if !when.allows(current.as_deref()) {
            return Ok(Swapped::Not(current));
        }
        let is_new = !table.records.contains_key(key);
        if record.is_some() && is_new && table.count(key.kind) >= self.max {
            table.sweep(now);
            if table.count(key.kind) >= self.max && !table.evict(key.kind) {
                return Err(StoreError::Full);
            }
        }
        match record {
            Some(record) => table.insert(key.clone(), record),
            None => table.remove(key),
        }
        Ok(Swapped::Done(current))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the value of a key, unless it has expired.
    fn current(&self, key: &RecordKey, now: SystemTime) -> Option<String> {
        self.records.get(key).filter(|record| record.expires_at > now).map(|record| record.value.clone())
    }

    fn count(&self, kind: RecordKind) -> usize {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    fn insert(&mut self, key: RecordKey, record: Record) {
        self.remove(&key);
        self.count_in(&key, &record);
        self.records.insert(key, record);
    }

    fn count_in(&mut self, key: &RecordKey, record: &Record) {
        *self.counts.entry(key.kind).or_default() += 1;
        if record.retention == Retention::Evictable {
            self.evictable.entry(key.kind).or_default().insert((record.expires_at, key.id.clone()));
        }
    }

    fn remove(&mut self, key: &RecordKey) {
        let Some(record) = self.records.remove(key) else { return };
        if let Some(count) = self.counts.get_mut(&key.kind) {
            *count -= 1;
        }
        if let Some(evictable) = self.evictable.get_mut(&key.kind) {
            evictable.remove(&(record.expires_at, key.id.clone()));
        }
    }

    /// Removes the evictable record of this kind that expires first. Returns whether there was one.
    fn evict(&mut self, kind: RecordKind) -> bool {
        let first = self.evictable.get_mut(&kind).and_then(BTreeSet::pop_first);
        if let Some((_, id)) = &first {
            self.remove(&RecordKey::new(kind, id));
        }
        first.is_some()
    }

    fn sweep(&mut self, now: SystemTime) {
        if self.swept.is_some_and(|swept| clock::until(now, swept) < SWEEP_INTERVAL && swept <= now) {
            return;
        }
        self.swept = Some(now);
        let mut records = std::mem::take(&mut self.records);
        records.retain(|_, record| record.expires_at > now);
        self.counts.clear();
        self.evictable.clear();
        for (key, record) in &records {
            self.count_in(key, record);
        }
        self.records = records;
    }
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(std::future::ready(Ok(self.look_up(key))))
    }

    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        when: When,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(std::future::ready(self.replace(key, &when, record)))
    }
}

/// Backend for development: every browser is its single user. Not for a server that others can reach.
///
/// ```
/// use duplexer_auth::{AuthorizationServer, DevBackend, MemoryStore};
///
/// let backend = DevBackend::new("ada").keep_in(MemoryStore::new().max(100));
/// let issuer = AuthorizationServer::builder("http://127.0.0.1:8000", backend)
///     .resource("http://127.0.0.1:8000/mcp")
///     .build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
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
        _: &'a RegisteredClient,
        assertion: &'a Assertion,
    ) -> BoxFuture<'a, Result<User, OAuthError>> {
        Box::pin(std::future::ready(Ok(User::new(&*assertion.subject))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A swap happens exactly if its condition holds, and an expired record counts as absent.
    #[tokio::test]
    async fn a_swap_depends_on_the_current_record() {
        let seconds = Arc::new(AtomicU64::new(0));
        let time = Arc::clone(&seconds);
        let store = MemoryStore::new().clock(move || clock::at(time.load(Ordering::SeqCst)));
        let key = RecordKey::new(RecordKind::Grant, "g");
        let text = |value: &str| Some(value.to_owned());
        let record = |value: &str| Some(Record::new(value.into(), clock::at(10)));
        let swap = async |when, value| store.swap(&key, when, value).await.unwrap();
        assert_eq!(swap(When::Present, record("a")).await, Swapped::Not(None));
        assert_eq!(swap(When::Is("a".into()), record("b")).await, Swapped::Not(None));
        assert_eq!(swap(When::Absent, record("a")).await, Swapped::Done(None));
        assert_eq!(swap(When::Absent, record("b")).await, Swapped::Not(text("a")));
        assert_eq!(swap(When::Is("b".into()), record("c")).await, Swapped::Not(text("a")));
        assert_eq!(swap(When::Is("a".into()), record("b")).await, Swapped::Done(text("a")));
        assert_eq!(swap(When::Present, record("c")).await, Swapped::Done(text("b")));
        assert_eq!(store.get(&key).await.unwrap(), text("c"));
        assert_eq!(swap(When::Always, None).await, Swapped::Done(text("c")));
        assert_eq!(swap(When::Present, None).await, Swapped::Not(None));
        assert_eq!(swap(When::Always, record("d")).await, Swapped::Done(None));
        seconds.store(10, Ordering::SeqCst);
        assert_eq!(store.get(&key).await.unwrap(), None);
        assert_eq!(swap(When::Present, record("e")).await, Swapped::Not(None));
    }

    /// A condition that does not hold is reported also by a full store.
    #[tokio::test]
    async fn a_full_store_refuses_new_records_only() {
        let store = MemoryStore::new().max(1);
        let end = SystemTime::now() + Duration::from_secs(60);
        let swap = async |id: &str, when| {
            let record = Some(Record::new("x".into(), end));
            store.swap(&RecordKey::new(RecordKind::Code, id), when, record).await
        };
        assert!(matches!(swap("1", When::Always).await, Ok(Swapped::Done(None))));
        assert!(matches!(swap("1", When::Present).await, Ok(Swapped::Done(Some(_)))));
        assert!(matches!(swap("2", When::Present).await, Ok(Swapped::Not(None))));
        assert!(matches!(swap("2", When::Absent).await, Err(StoreError::Full)));
    }

    /// Of the evictable records the one that expires first makes room; the others are kept.
    #[tokio::test]
    async fn a_full_store_removes_evictable_records() {
        let store = MemoryStore::new().max(3);
        let key = |id: &str| RecordKey::new(RecordKind::Client, id);
        let put = async |id: &str, seconds, is_evictable: bool| {
            let record = Record::new(id.into(), SystemTime::now() + Duration::from_secs(seconds));
            let record = if is_evictable { record.evictable() } else { record };
            store.swap(&key(id), When::Always, Some(record)).await
        };
        let has = async |id: &str| store.get(&key(id)).await.unwrap().is_some();
        put("used", 10, false).await.unwrap();
        put("late", 30, true).await.unwrap();
        put("soon", 20, true).await.unwrap();
        put("new", 40, true).await.unwrap();
        assert!(has("used").await && has("late").await && has("new").await && !has("soon").await);
        put("late", 30, false).await.unwrap();
        put("newer", 40, false).await.unwrap();
        assert!(has("late").await && !has("new").await, "a record in use is not evictable any more");
        assert!(matches!(put("last", 40, true).await, Err(StoreError::Full)));
    }
}
