//! Bounded store of results, ordered by the time at which they become stale.

use std::collections::{BTreeMap, HashMap};

use bytestring::ByteString;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use tokio::time::Instant;

use super::Scope;

/// What distinguishes one result from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) server: Scope,
    /// `None` for results that all callers of the server can have.
    pub(super) partition: Option<Scope>,
    pub(super) version: ProtocolVersion,
    pub(super) method: Method,
    /// URI of a resource; empty for lists.
    pub(super) uri: String,
}

struct Entry {
    text: ByteString,
    stale: (Instant, u64),
}

#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

pub(super) struct Store {
    pub(super) limits: Limits,
    entries: HashMap<Key, Entry>,
    /// Keys by the time at which they become stale. The number makes the times unique.
    by_time: BTreeMap<(Instant, u64), Key>,
    bytes: usize,
    stored: u64,
    /// Number of invalidations. A result that was requested before one is not stored after it.
    pub(super) generation: u64,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            limits: Limits { entries: 256, bytes: 4 * 1024 * 1024 },
            entries: HashMap::new(),
            by_time: BTreeMap::new(),
            bytes: 0,
            stored: 0,
            generation: 0,
        }
    }
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a fresh result. A stale one is removed.
    pub(super) fn get(&mut self, key: &Key) -> Option<ByteString> {
        let entry = self.entries.get(key)?;
        if entry.stale.0 > Instant::now() {
            return Some(entry.text.clone());
        }
        self.remove(key);
        None
    }

    /// Stores a result until `stale`. The results that become stale first make way for it.
    pub(super) fn put(&mut self, key: Key, text: &str, stale: Instant) {
        self.remove(&key);
        let size = size(&key, text);
        if size > self.limits.bytes || self.limits.entries == 0 {
            return;
        }
        while self.entries.len() >= self.limits.entries || self.bytes + size > self.limits.bytes {
            let Some((_, first)) = self.by_time.first_key_value() else { return };
            let first = first.clone();
            self.remove(&first);
        }
        self.stored += 1;
        let stale = (stale, self.stored);
        self.bytes += size;
        self.by_time.insert(stale, key.clone());
        // A copy, because the text can share the buffer of a whole message.
        self.entries.insert(key, Entry { text: ByteString::from(text), stale });
    }

    /// Removes what `concerned` selects.
    pub(super) fn invalidate(&mut self, concerned: impl Fn(&Key) -> bool) {
        self.generation += 1;
        let keys: Vec<Key> = self.entries.keys().filter(|key| concerned(key)).cloned().collect();
        for key in keys {
            self.remove(&key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.by_time.remove(&entry.stale);
            self.bytes -= size(key, &entry.text);
        }
    }
}

/// Size of an entry: its text, its key twice, and about as much for the maps as they take.
fn size(key: &Key, text: &str) -> usize {
    text.len() + 2 * key.uri.len() + 256
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(uri: &str) -> Key {
        let version = ProtocolVersion::LATEST_ENVELOPE;
        let method = Method::ResourcesRead;
        Key { server: Scope::Session(1), partition: None, version, method, uri: uri.to_owned() }
    }

    /// CCACHE-01: the cache has a bound in entries and in bytes; what becomes stale first makes way.
    #[tokio::test(start_paused = true)]
    async fn entries_and_bytes_are_bounded() {
        let mut store = Store { limits: Limits { entries: 2, bytes: 1000 }, ..Store::default() };
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        store.put(key("late"), "1", after(30));
        store.put(key("soon"), "2", after(10));
        store.put(key("new"), "3", after(20));
        let mut held = |uri: &str| store.get(&key(uri)).is_some();
        assert_eq!((held("late"), held("soon"), held("new")), (true, false, true));
        store.put(key("huge"), &"x".repeat(1000), after(60));
        assert_eq!((store.len(), store.get(&key("huge"))), (2, None));
        store.put(key("large"), &"x".repeat(600), after(60));
        assert_eq!(store.len(), 1);
        store.put(key("large"), "small", after(60));
        assert_eq!(store.bytes, size(&key("large"), "small"));
        store.invalidate(|_| true);
        assert_eq!((store.len(), store.bytes, store.by_time.len()), (0, 0, 0));
    }
}
