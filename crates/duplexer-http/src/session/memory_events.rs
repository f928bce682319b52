//! Bounded event store in memory: for one process, and as a model for distributed stores.

mod log;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::ready;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_types::jsonrpc::RequestId;
use tokio::time::Instant;

use self::log::{Log, Written};
use super::{
    Appended, Attach, Attached, Batch, Concluded, EventKind, EventStore, Page, Placement, StoredEvent,
    StreamId, StreamKey, Wake,
};
use crate::sync::{Mutex, lock};

/// Time for which a stream that has ended is kept, and for which one is whose last event was received.
const ENDED: Duration = Duration::from_secs(5 * 60);
const RECEIVED: Duration = Duration::from_secs(60);
/// Time for which nothing is written to a session that has ended.
pub(super) const TOMBSTONE: Duration = Duration::from_secs(10 * 60);

/// Estimated memory of an event besides its message.
pub(super) const EVENT_OVERHEAD: usize = 64;

/// Event store in memory. A client that resumes late receives only the newest events.
pub struct MemoryEventStore {
    state: Mutex<State>,
    limits: EventLimits,
    requests: OnceLock<Weak<dyn EndedRequests>>,
}

/// Learns which requests have had their last event. The placement distinguishes a request from a later one with its id.
pub(super) trait EndedRequests: Send + Sync {
    fn ended(&self, session: &str, request: &RequestId, placement: Placement);
}

/// Limits of a [`MemoryEventStore`]. At the limit of a stream its oldest events are evicted; at the limit of a session,
/// or of the store, the oldest streams that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventLimits {
    /// Bytes of one stream. Default: 1 MiB.
    pub stream_bytes: usize,
    /// Events of one stream. Default: 1000.
    pub stream_events: usize,
    /// Bytes of one session. Default: 4 MiB.
    pub session_bytes: usize,
    /// Streams of one session, besides those in flight. Default: 256.
    pub session_streams: usize,
    /// Bytes of all sessions. Default: 256 MiB.
    pub total_bytes: usize,
}

impl Default for EventLimits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            stream_bytes: MIB,
            stream_events: 1000,
            session_bytes: 4 * MIB,
            session_streams: 256,
            total_bytes: 256 * MIB,
        }
    }
}

#[derive(Default)]
struct State {
    sessions: HashMap<Arc<str>, Session>,
    /// Streams that have ended, oldest first. Some are gone.
    ended: VecDeque<(Instant, StreamKey)>,
    /// Sessions that have ended, oldest first.
    tombstones: VecDeque<(Instant, Arc<str>)>,
    forgotten: HashMap<Arc<str>, usize>,
    bytes: usize,
}

#[derive(Default)]
struct Session {
    streams: HashMap<StreamId, Log>,
    bytes: usize,
}

impl MemoryEventStore {
    /// Creates a store with default limits.
    pub fn new() -> Self {
        Self::with_limits(EventLimits::default())
    }

    /// Creates a store with other limits.
    pub fn with_limits(limits: EventLimits) -> Self {
        Self { state: Mutex::default(), limits, requests: OnceLock::new() }
    }

    /// Tells `requests` of every request that has had its last event.
    pub(super) fn set_requests(&self, requests: Weak<dyn EndedRequests>) {
        let _ = self.requests.set(requests);
    }

    /// Returns the memory that is counted for all events.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    fn write(&self, key: &StreamKey, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        if batch.events.is_empty() {
            return self.open(key, batch.writer, batch.request);
        }
        let mut state = lock(&self.state);
        state.expire();
        let Some(log) = state.log(key) else { return Ok(Appended::Unknown) };
        let before = log.bytes();
        let written = log.write(batch, &self.limits);
        let (after, reader) = (log.bytes(), log.reader().map(|reader| reader.run));
        let (request, changed) = (log.request().cloned(), log.changed());
        let last = match written {
            Written::UpTo(last) => last,
            Written::Full => return Ok(Appended::Full),
            Written::Closed => return Ok(Appended::Closed),
        };
        let has_ended = log.has_ended();
        state.account(key, before, after);
        if has_ended && batch.events.last().is_some_and(|event| event.kind == EventKind::Final) {
            state.note_end(key);
        }
        state.evict(key, &self.limits);
        drop(state);
        changed.notify_waiters();
        if has_ended {
            self.tell_end(key, request.as_ref(), batch.writer);
        }
        Ok(Appended::UpTo { last, reader })
    }

    pub(super) fn open(
        &self,
        key: &StreamKey,
        writer: RunId,
        request: Option<&RequestId>,
    ) -> Result<Appended, StoreError> {
        let mut state = lock(&self.state);
        state.expire();
        if state.forgotten.contains_key(&key.session) {
            return Ok(Appended::Closed);
        }
        if state.bytes >= self.limits.total_bytes && state.ended.is_empty() {
            return Err(StoreError::Full);
        }
        let session = state.sessions.entry(Arc::clone(&key.session)).or_default();
        let opened = match session.streams.entry(key.stream) {
            Entry::Vacant(entry) => {
                entry.insert(Log::of_request(writer, request.cloned()));
                Appended::UpTo { last: 0, reader: Some(writer) }
            }
            Entry::Occupied(entry) => entry.get().opened_by(writer),
        };
        state.evict(key, &self.limits);
        Ok(opened)
    }

    fn tell_end(&self, key: &StreamKey, request: Option<&RequestId>, writer: RunId) {
        if let (Some(requests), Some(request)) = (self.requests.get().and_then(Weak::upgrade), request) {
            let placement = Placement { run: writer, stream: Some(key.stream) };
            requests.ended(&key.session, request, placement);
        }
    }

    fn end(&self, key: &StreamKey, writer: RunId, last: &Bytes) -> Concluded {
        let mut state = lock(&self.state);
        state.expire();
        let Some(log) = state.log(key) else { return Concluded::Unknown };
        let before = log.bytes();
        if !log.conclude(writer, StoredEvent::new(last.clone(), EventKind::Final)) {
            return Concluded::Already;
        }
        let (after, request, changed) = (log.bytes(), log.request().cloned(), log.changed());
        state.account(key, before, after);
        state.note_end(key);
        drop(state);
        changed.notify_waiters();
        self.tell_end(key, request.as_ref(), writer);
        Concluded::Ended
    }

    fn take_reader(&self, key: &StreamKey, attach: Attach) -> Attached {
        let mut state = lock(&self.state);
        state.expire();
        if key.stream == StreamId::STANDALONE && !state.forgotten.contains_key(&key.session) {
            let session = state.sessions.entry(Arc::clone(&key.session)).or_default();
            session.streams.entry(key.stream).or_insert_with(Log::standalone);
        }
        let Some(log) = state.log(key) else { return Attached::Unknown };
        let (attached, changed) = (log.attach(attach), log.changed());
        drop(state);
        changed.notify_waiters();
        attached
    }

    /// Removes the stream of a writer, if it has had no events.
    pub(super) fn remove_unused(&self, key: &StreamKey, writer: RunId) {
        let mut state = lock(&self.state);
        if state.log(key).is_some_and(|log| log.is_unused_by(writer)) {
            state.drop_stream(key);
        }
    }

    /// Removes a session. Nothing is written under its id for some time.
    pub(super) fn remove(&self, session: &str) {
        let mut state = lock(&self.state);
        state.expire();
        let id = match state.sessions.remove_entry(session) {
            Some((id, gone)) => {
                state.bytes -= gone.bytes;
                for log in gone.streams.values() {
                    log.changed().notify_waiters();
                }
                id
            }
            None => session.into(),
        };
        *state.forgotten.entry(Arc::clone(&id)).or_default() += 1;
        state.tombstones.push_back((Instant::now() + TOMBSTONE, id));
    }
}

impl State {
    fn log(&mut self, key: &StreamKey) -> Option<&mut Log> {
        let log = self.sessions.get_mut(&key.session)?.streams.get_mut(&key.stream)?;
        (!log.has_expired()).then_some(log)
    }

    /// Removes what has expired.
    fn expire(&mut self) {
        let now = Instant::now();
        while self.ended.front().is_some_and(|(due, _)| *due <= now) {
            self.evict_ended();
        }
        while self.tombstones.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, session)) = self.tombstones.pop_front() else { return };
            if let Entry::Occupied(mut count) = self.forgotten.entry(session) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    fn account(&mut self, key: &StreamKey, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
        if let Some(session) = self.sessions.get_mut(&key.session) {
            session.bytes = session.bytes + after - before;
        }
    }

    fn note_end(&mut self, key: &StreamKey) {
        self.ended.push_back((Instant::now() + ENDED, key.clone()));
    }

    /// Evicts streams that have ended until the limits hold: of the session, then of all sessions.
    fn evict(&mut self, key: &StreamKey, limits: &EventLimits) {
        while let Some(session) = self.sessions.get(&key.session)
            && (session.bytes > limits.session_bytes || session.streams.len() > limits.session_streams)
        {
            let own = |(_, ended): &(Instant, StreamKey)| {
                ended.session == key.session && ended.stream != key.stream
            };
            let Some(index) = self.ended.iter().position(own) else { break };
            if let Some((_, oldest)) = self.ended.remove(index) {
                self.drop_stream(&oldest);
            }
        }
        while self.bytes > limits.total_bytes && self.ended.len() > 1 {
            self.evict_ended();
        }
    }

    fn evict_ended(&mut self) {
        if let Some((_, oldest)) = self.ended.pop_front() {
            self.drop_stream(&oldest);
        }
    }

    fn drop_stream(&mut self, key: &StreamKey) {
        let Some(session) = self.sessions.get_mut(&key.session) else { return };
        if let Some(log) = session.streams.remove(&key.stream) {
            session.bytes -= log.bytes();
            self.bytes -= log.bytes();
        }
        if session.streams.is_empty() {
            self.sessions.remove(&key.session);
        }
    }
}

impl Default for MemoryEventStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEventStore").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl EventStore for MemoryEventStore {
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        Box::pin(ready(self.write(stream, &batch)))
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>> {
        let page = lock(&self.state).log(stream).map(|log| log.page(after, at_most));
        Box::pin(ready(Ok(page)))
    }

    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>> {
        Box::pin(ready(Ok(self.take_reader(stream, attach))))
    }

    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(log) = lock(&self.state).log(stream) {
            log.detach(reader, received);
        }
        Box::pin(ready(Ok(())))
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>> {
        Box::pin(ready(Ok(self.end(stream, writer, last))))
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        self.remove(session);
        Box::pin(ready(Ok(())))
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        let changed = lock(&self.state).log(stream).map(|log| log.changed().notified_owned());
        Wake::new(async {
            if let Some(changed) = changed {
                changed.await;
            }
        })
    }
}
