//! Session store in memory, for several services of one process, and as a model for distributed stores.

use std::collections::hash_map::{Entry, HashMap};
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_types::jsonrpc::RequestId;
use tokio::time::Instant;

use super::memory_events::{EndedRequests, TOMBSTONE};
use super::{
    Admission, Admitted, Appended, Change, Created, MAX_REQUESTS_IN_FLIGHT, MemoryEventStore, Placement,
    Revision, SessionRecord, SessionStore, StreamKey,
};
use crate::sync::{Mutex, MutexGuard, lock};

/// Sessions, including those that were deleted a short time ago.
const MAX_SESSIONS: usize = 100_000;
/// Idle time of a session whose client has not confirmed the handshake.
const HALF_OPEN: Duration = Duration::from_secs(60);

/// Session store in memory: for tests, and as a model for distributed stores.
pub struct MemorySessionStore {
    sessions: Mutex<Sessions>,
    events: Arc<MemoryEventStore>,
    idle: Duration,
}

struct Sessions {
    known: HashMap<Arc<str>, Known>,
    /// Time of the last sweep of expired sessions.
    swept: Instant,
}

enum Known {
    Open(Box<Open>),
    /// Deleted. Nothing is written under the id until then. The requests that were in flight are kept, so that a
    /// repetition of the deletion returns them too.
    Deleted(Instant, Vec<Placement>),
}

struct Open {
    id: Arc<str>,
    record: SessionRecord,
    revision: Revision,
    in_flight: HashMap<RequestId, Placement>,
    expires: Instant,
}

impl Known {
    fn has_expired(&self, now: Instant) -> bool {
        match self {
            Self::Open(open) => open.expires <= now,
            Self::Deleted(until, _) => *until <= now,
        }
    }
}

impl MemorySessionStore {
    /// Creates a store that removes sessions which have not been used for `idle`, with the events of their streams.
    pub fn new(idle: Duration, events: Arc<MemoryEventStore>) -> Arc<Self> {
        let sessions = Sessions { known: HashMap::new(), swept: Instant::now() };
        let store = Arc::new(Self { sessions: Mutex::new(sessions), events, idle });
        let requests = Arc::downgrade(&store);
        store.events.set_requests(requests);
        store
    }

    /// Returns the sessions, without this one if it has expired. The others are swept at intervals.
    fn living(&self, id: &str) -> MutexGuard<'_, Sessions> {
        let mut sessions = lock(&self.sessions);
        let now = Instant::now();
        if now.duration_since(sessions.swept) >= self.idle / 8 {
            sessions.swept = now;
            sessions.known.retain(|id, known| !self.drops(id, known, now));
        } else if sessions.known.get(id).is_some_and(|known| self.drops(id, known, now)) {
            sessions.known.remove(id);
        }
        sessions
    }

    /// Returns whether an entry has expired, and removes the events of an expired session.
    fn drops(&self, id: &str, known: &Known, now: Instant) -> bool {
        let has_expired = known.has_expired(now);
        if has_expired && matches!(known, Known::Open(_)) {
            self.events.remove(id);
        }
        has_expired
    }

    fn renew(&self, open: &mut Open) {
        let idle = if open.record.connection.initialized { self.idle } else { self.idle.min(HALF_OPEN) };
        open.expires = Instant::now() + idle;
    }

    fn put(&self, id: &str, record: &SessionRecord) -> Result<Created, StoreError> {
        let mut sessions = self.living(id);
        let full = sessions.known.len() >= MAX_SESSIONS;
        let id: Arc<str> = id.into();
        match sessions.known.entry(Arc::clone(&id)) {
            Entry::Occupied(entry) => {
                let is_same = matches!(entry.get(), Known::Open(open) if open.record == *record);
                Ok(if is_same { Created::New } else { Created::Exists })
            }
            Entry::Vacant(_) if full => Err(StoreError::Full),
            Entry::Vacant(entry) => {
                let mut open = Open {
                    id,
                    record: record.clone(),
                    revision: Revision(1),
                    in_flight: HashMap::new(),
                    expires: Instant::now(),
                };
                self.renew(&mut open);
                entry.insert(Known::Open(Box::new(open)));
                Ok(Created::New)
            }
        }
    }

    fn enter(&self, id: &str, admission: &Admission<'_>) -> Result<Admitted, StoreError> {
        let mut sessions = self.living(id);
        let Some(open) = sessions.open(id) else { return Ok(Admitted::Unknown) };
        if open.record.principal.as_ref() != admission.principal {
            return Ok(Admitted::Unknown);
        }
        if let Some(request) = &admission.request {
            let placement = Placement { run: request.run, stream: request.stream };
            match open.in_flight.get(request.id) {
                Some(known) if *known != placement => return Ok(Admitted::InFlight),
                None if open.in_flight.len() >= MAX_REQUESTS_IN_FLIGHT => return Ok(Admitted::TooMany),
                _ => {}
            }
            if let Some(stream) = request.stream {
                let key = StreamKey::new(Arc::clone(&open.id), stream);
                if self.events.open(&key, request.run, Some(request.id))? == Appended::Closed {
                    return Ok(Admitted::InFlight);
                }
            }
            open.in_flight.insert(request.id.clone(), placement);
        }
        self.renew(open);
        Ok(if admission.known == Some(open.revision) {
            Admitted::Current
        } else {
            Admitted::Record(Box::new(open.record.clone()), open.revision)
        })
    }

    fn change(&self, id: &str, changes: &[Change]) -> Option<Revision> {
        let mut sessions = self.living(id);
        let open = sessions.open(id)?;
        let mut is_changed = false;
        for change in changes {
            is_changed |= change.apply(&mut open.record.connection);
        }
        if is_changed {
            open.revision.0 += 1;
        }
        self.renew(open);
        Some(open.revision)
    }

    /// Removes a request from those in flight, if its placement is the one that is meant.
    fn remove_request(&self, id: &str, request: &RequestId, placement: Placement) -> bool {
        let mut sessions = self.living(id);
        let Some(open) = sessions.open(id) else { return false };
        let is_removed = open.in_flight.get(request) == Some(&placement);
        if is_removed {
            open.in_flight.remove(request);
        }
        is_removed
    }

    fn remove(&self, id: &str) -> Vec<Placement> {
        let mut sessions = self.living(id);
        let Some(known) = sessions.known.get_mut(id) else { return Vec::new() };
        if let Known::Open(open) = known {
            let placements = open.in_flight.values().copied().collect();
            *known = Known::Deleted(Instant::now() + TOMBSTONE, placements);
            self.events.remove(id);
        }
        match known {
            Known::Deleted(_, placements) => placements.clone(),
            Known::Open(_) => Vec::new(),
        }
    }
}

impl Sessions {
    fn open(&mut self, id: &str) -> Option<&mut Open> {
        match self.known.get_mut(id)? {
            Known::Open(open) => Some(open),
            Known::Deleted(..) => None,
        }
    }
}

impl EndedRequests for MemorySessionStore {
    fn ended(&self, session: &str, request: &RequestId, placement: Placement) {
        self.remove_request(session, request, placement);
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessionStore").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl SessionStore for MemorySessionStore {
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: &'a SessionRecord,
    ) -> BoxFuture<'a, Result<Created, StoreError>> {
        Box::pin(ready(self.put(id, record)))
    }

    fn admit<'a>(
        &'a self,
        id: &'a str,
        admission: Admission<'a>,
    ) -> BoxFuture<'a, Result<Admitted, StoreError>> {
        Box::pin(ready(self.enter(id, &admission)))
    }

    fn update<'a>(
        &'a self,
        id: &'a str,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Option<Revision>, StoreError>> {
        Box::pin(ready(Ok(self.change(id, changes))))
    }

    fn locate<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<Placement>, StoreError>> {
        let placement = self.living(id).open(id).and_then(|open| open.in_flight.get(request).copied());
        Box::pin(ready(Ok(placement)))
    }

    fn release<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
        placement: Placement,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let is_removed = self.remove_request(id, request, placement);
        if let Some(stream) = placement.stream.filter(|_| is_removed) {
            self.events.remove_unused(&StreamKey::new(id.into(), stream), placement.run);
        }
        Box::pin(ready(Ok(())))
    }

    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), StoreError>> {
        for id in ids {
            if let Some(open) = self.living(id).open(id) {
                self.renew(open);
            }
        }
        Box::pin(ready(Ok(())))
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Placement>, StoreError>> {
        Box::pin(ready(Ok(self.remove(id))))
    }
}

#[cfg(test)]
mod tests;
