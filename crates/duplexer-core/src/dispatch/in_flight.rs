//! Calls in flight, in both directions. No I/O, no clock, no runtime.
//!
//! [`Outstanding`] holds our requests that wait for the peer, [`InFlight`] the peer's that wait for us. Each entry is removed
//! exactly once, and the code that removes it decides the outcome.

use std::collections::hash_map::{Entry, HashMap};

use duplexer_types::jsonrpc::RequestId;

/// Entries by id. A fast hash suffices: a peer that makes its ids collide slows down only itself, within the limits.
type Table<T> = HashMap<RequestId, T, foldhash::fast::RandomState>;

/// Our own requests that have no response yet.
#[derive(Debug)]
pub(crate) struct Outstanding<W> {
    waiting: Table<W>,
    /// How many of them have an id that is text, which only callers choose.
    texts: usize,
    last: i64,
}

/// The id is in flight already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken(pub(crate) RequestId);

impl<W> Outstanding<W> {
    pub(crate) fn new() -> Self {
        Self { waiting: Table::default(), texts: 0, last: 0 }
    }

    /// Registers a request under the chosen id, or under the next free one.
    pub(crate) fn register(&mut self, chosen: Option<RequestId>, waiter: W) -> Result<RequestId, Taken> {
        if let Some(id) = chosen {
            return self.begin(id.clone(), waiter).map(|()| id);
        }
        let id = self.next_id();
        self.waiting.insert(id.clone(), waiter);
        Ok(id)
    }

    /// Returns a fresh id: counting from one, skipping those that callers have chosen themselves.
    pub(crate) fn next_id(&mut self) -> RequestId {
        loop {
            self.last = self.last.wrapping_add(1);
            let id = RequestId::from(self.last);
            if !self.is_taken(&id) {
                return id;
            }
        }
    }

    /// Registers a request. An id and its number/string twin cannot wait at the same time: an echo could mean either.
    pub(crate) fn begin(&mut self, id: RequestId, waiter: W) -> Result<(), Taken> {
        if self.is_taken(&id) {
            return Err(Taken(id));
        }
        self.texts += usize::from(is_text(&id));
        self.waiting.insert(id, waiter);
        Ok(())
    }

    /// Removes the request that a response with this id answers.
    pub(crate) fn settle(&mut self, echoed: &RequestId) -> Option<W> {
        match self.abandon(echoed) {
            None => self.abandon(&self.twin(echoed)?),
            found => found,
        }
    }

    /// Returns the request that a progress token belongs to.
    pub(crate) fn find(&self, echoed: &RequestId) -> Option<&W> {
        self.waiting.get(echoed).or_else(|| self.waiting.get(&self.twin(echoed)?))
    }

    /// Removes a request whose caller no longer waits.
    pub(crate) fn abandon(&mut self, id: &RequestId) -> Option<W> {
        let waiter = self.waiting.remove(id)?;
        self.texts -= usize::from(is_text(id));
        Some(waiter)
    }

    /// Removes every request.
    pub(crate) fn drain(&mut self) -> Vec<W> {
        self.texts = 0;
        self.waiting.drain().map(|(_, waiter)| waiter).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of requests.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn is_taken(&self, id: &RequestId) -> bool {
        self.find(id).is_some()
    }

    /// Returns the twin of an id, unless no request can wait under it: writing a number as text is slow.
    fn twin(&self, id: &RequestId) -> Option<RequestId> {
        if is_text(id) || self.texts > 0 { id.twin() } else { None }
    }
}

fn is_text(id: &RequestId) -> bool {
    matches!(id, RequestId::String(_))
}

/// Distinguishes one use of an id from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// The peer's requests that have no response yet. Keyed exactly: `1` and `"1"` can run at the same time.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    calls: Table<(Generation, C)>,
    generations: u64,
}

impl<C> InFlight<C> {
    pub(crate) fn new() -> Self {
        Self { calls: Table::default(), generations: 0 }
    }

    /// Accepts a request, unless its id is in flight already: then the first one continues undisturbed.
    pub(crate) fn accept(&mut self, id: RequestId, call: impl FnOnce(Generation) -> C) -> Result<&C, Taken> {
        match self.calls.entry(id) {
            Entry::Occupied(entry) => Err(Taken(entry.key().clone())),
            Entry::Vacant(entry) => {
                self.generations += 1;
                let generation = Generation(self.generations);
                Ok(&entry.insert((generation, call(generation))).1)
            }
        }
    }

    /// Removes a request that the peer cancels. The caller ensures that it is never answered.
    pub(crate) fn cancel(&mut self, echoed: &RequestId) -> Option<C> {
        let found = match self.calls.remove(echoed) {
            None => self.calls.remove(&echoed.twin()?),
            found => found,
        };
        found.map(|(_, call)| call)
    }

    /// Removes a request whose handler has ended. If there is an entry, the caller sends the response.
    pub(crate) fn finish(&mut self, id: &RequestId, generation: Generation) -> Option<C> {
        let (current, call) = self.calls.remove(id)?;
        if current == generation {
            return Some(call);
        }
        // A later use of the id, which is rare: it was removed only because looking first would hash twice.
        self.calls.insert(id.clone(), (current, call));
        None
    }

    /// Returns every request in flight.
    pub(crate) fn all(&self) -> impl Iterator<Item = &C> {
        self.calls.values().map(|(_, call)| call)
    }

    /// Removes every request in flight. The caller sends the responses.
    pub(crate) fn drain(&mut self) -> Vec<(RequestId, C)> {
        self.calls.drain().map(|(id, (_, call))| (id, call)).collect()
    }
}
