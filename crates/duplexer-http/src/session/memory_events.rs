//! Bounded event store in memory. It evicts the oldest events: of the session that exceeds its limit, or else of all
//! sessions.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::ready;
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;

use super::{EventStore, StoredEvent, StreamId, StreamKey};
use crate::server::lock;

/// Estimated memory of an event besides its message.
const EVENT_OVERHEAD: usize = 128;

/// Event store in memory. A client that resumes late receives only the newest events.
pub struct MemoryEventStore {
    kept: Mutex<Kept>,
    limits: Limits,
}

#[derive(Clone, Copy)]
struct Limits {
    session: usize,
    all: usize,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<Arc<str>, Session>,
    /// Session of every event, oldest first. Entries of forgotten sessions remain until they are evicted.
    order: VecDeque<Arc<str>>,
    events: usize,
    bytes: usize,
}

#[derive(Default)]
struct Session {
    streams: HashMap<StreamId, VecDeque<StoredEvent>>,
    /// Stream of every event, oldest first.
    order: VecDeque<StreamId>,
    bytes: usize,
}

impl Session {
    /// Evicts the oldest event. Returns the number of freed bytes.
    fn evict(&mut self) -> usize {
        let Some(stream) = self.order.pop_front() else { return 0 };
        let Some(events) = self.streams.get_mut(&stream) else { return 0 };
        let freed = events.pop_front().map_or(0, |event| size(&event));
        if events.is_empty() {
            self.streams.remove(&stream);
        }
        self.bytes -= freed;
        freed
    }
}

fn size(event: &StoredEvent) -> usize {
    event.data.len() + EVENT_OVERHEAD
}

impl MemoryEventStore {
    /// Creates a store with 1 MiB per session and 256 MiB in total.
    pub fn new() -> Self {
        Self::with_limits(1024 * 1024, 256 * 1024 * 1024)
    }

    /// Creates a store with these limits in bytes, per session and in total. One event is always kept.
    pub fn with_limits(session: usize, all: usize) -> Self {
        Self { kept: Mutex::default(), limits: Limits { session, all } }
    }

    fn keep(&self, key: &StreamKey, event: StoredEvent) {
        let mut kept = lock(&self.kept);
        let kept = &mut *kept;
        let added = size(&event);
        let session = kept.sessions.entry(Arc::clone(&key.session)).or_default();
        session.streams.entry(key.stream).or_default().push_back(event);
        session.order.push_back(key.stream);
        session.bytes += added;
        kept.bytes += added;
        kept.events += 1;
        kept.order.push_back(Arc::clone(&key.session));
        while session.bytes > self.limits.session && session.order.len() > 1 {
            kept.bytes -= session.evict();
            kept.events -= 1;
        }
        while kept.bytes > self.limits.all && kept.order.len() > 1 {
            let Some(oldest) = kept.order.pop_front() else { break };
            kept.evict_from(&oldest);
        }
        // Without this, entries of events that were evicted or forgotten with their session would accumulate.
        if kept.order.len() > 2 * kept.events + 64 {
            kept.compact();
        }
    }
}

impl Kept {
    fn evict_from(&mut self, session: &Arc<str>) {
        let Some(oldest) = self.sessions.get_mut(session) else { return };
        self.bytes -= oldest.evict();
        self.events -= 1;
        if oldest.order.is_empty() {
            self.sessions.remove(session);
        }
    }

    /// Rebuilds `order` with one entry per event that exists.
    fn compact(&mut self) {
        let mut left: HashMap<&Arc<str>, usize> =
            self.sessions.iter().map(|(id, session)| (id, session.order.len())).collect();
        let mut order = VecDeque::new();
        for session in self.order.iter().rev() {
            if let Some(count) = left.get_mut(session)
                && *count > 0
            {
                *count -= 1;
                order.push_front(Arc::clone(session));
            }
        }
        self.order = order;
    }
}

impl Default for MemoryEventStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEventStore").finish_non_exhaustive()
    }
}

impl EventStore for MemoryEventStore {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>> {
        self.keep(stream, event);
        Box::pin(ready(Ok(())))
    }

    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>> {
        let kept = lock(&self.kept);
        let events =
            kept.sessions.get(&stream.session).and_then(|session| session.streams.get(&stream.stream));
        let later =
            events.map(|events| events.iter().filter(|event| event.sequence > after).cloned().collect());
        drop(kept);
        Box::pin(ready(Ok(later)))
    }

    fn forget(&self, session: &str) -> BoxFuture<'_, Result<(), BoxError>> {
        let mut kept = lock(&self.kept);
        if let Some(gone) = kept.sessions.remove(session) {
            kept.bytes -= gone.bytes;
            kept.events -= gone.order.len();
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::EventKind;
    use super::*;

    fn key(session: &str, stream: u128) -> StreamKey {
        StreamKey::new(session.into(), StreamId(stream))
    }

    fn event(sequence: u64, size: usize) -> StoredEvent {
        StoredEvent::new(sequence, Bytes::from(vec![b'x'; size]), EventKind::Message)
    }

    async fn numbers(store: &MemoryEventStore, key: &StreamKey, after: u64) -> Option<Vec<u64>> {
        let events = store.replay(key, after).await.unwrap();
        events.map(|events| events.iter().map(|event| event.sequence).collect())
    }

    /// HTTPL-18, P-LEG-16: only later events, only of this stream, only in this session.
    #[tokio::test]
    async fn events_are_kept_by_session_and_stream() {
        let store = MemoryEventStore::new();
        for sequence in 0..4 {
            store.append(&key("a", 1), event(sequence, 1)).await.unwrap();
        }
        store.append(&key("a", 2), event(0, 1)).await.unwrap();
        assert_eq!(numbers(&store, &key("a", 1), 1).await, Some(vec![2, 3]));
        assert_eq!(numbers(&store, &key("a", 1), 9).await, Some(vec![]));
        assert_eq!(numbers(&store, &key("b", 1), 0).await, None);
        store.forget("a").await.unwrap();
        assert_eq!(numbers(&store, &key("a", 1), 0).await, None);
    }

    #[tokio::test]
    async fn the_oldest_go_first_and_a_loud_session_only_harms_itself() {
        let store = MemoryEventStore::with_limits(3 * (1000 + EVENT_OVERHEAD), 5 * (1000 + EVENT_OVERHEAD));
        store.append(&key("quiet", 1), event(0, 1000)).await.unwrap();
        store.append(&key("quiet", 1), event(1, 1000)).await.unwrap();
        for sequence in 0..100 {
            store.append(&key("loud", 1), event(sequence, 1000)).await.unwrap();
        }
        assert_eq!(numbers(&store, &key("loud", 1), 0).await, Some(vec![97, 98, 99]));
        assert_eq!(numbers(&store, &key("quiet", 1), 0).await, Some(vec![1]));
        assert!(store.kept.lock().unwrap().order.len() < 100, "what is gone is not named for ever");
        for session in 0..5 {
            store.append(&key(&session.to_string(), 1), event(0, 1000)).await.unwrap();
        }
        assert_eq!(numbers(&store, &key("quiet", 1), 0).await, None);
        assert_eq!(store.kept.lock().unwrap().bytes, 5 * (1000 + EVENT_OVERHEAD));
    }
}
