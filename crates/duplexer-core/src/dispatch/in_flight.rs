//! Who waits for whom, in both directions. No I/O, no clock, no runtime.
//!
//! [`Outstanding`] holds our requests that wait for the peer, [`InFlight`] the peer's that wait for us. Each
//! entry leaves exactly once, and whoever takes it out owns the outcome.

use std::collections::hash_map::{Entry, HashMap};

use duplexer_types::jsonrpc::RequestId;

/// By id. A quick hash will do: a peer that makes its ids collide slows down nobody but itself, within the limits.
type Table<T> = HashMap<RequestId, T, foldhash::fast::RandomState>;

/// Our own requests that have no answer yet.
#[derive(Debug)]
pub(crate) struct Outstanding<W> {
    waiting: Table<W>,
    last: i64,
}

/// The id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken;

impl<W> Outstanding<W> {
    pub(crate) fn new() -> Self {
        Self { waiting: Table::default(), last: 0 }
    }

    /// A fresh id: counting from one, stepping over what callers have chosen themselves.
    pub(crate) fn next_id(&mut self) -> RequestId {
        loop {
            self.last = self.last.wrapping_add(1);
            let id = RequestId::from(self.last);
            if !self.is_taken(&id) {
                return id;
            }
        }
    }

    /// Registers a waiter. An id and its twin cannot wait at the same time: an echo could mean either.
    pub(crate) fn begin(&mut self, id: RequestId, waiter: W) -> Result<(), Taken> {
        if self.is_taken(&id) {
            return Err(Taken);
        }
        self.waiting.insert(id, waiter);
        Ok(())
    }

    /// The waiter that an answer with this id is for.
    pub(crate) fn settle(&mut self, echoed: &RequestId) -> Option<W> {
        let id = self.resolve(echoed)?;
        self.waiting.remove(&id)
    }

    /// The waiter that a progress token belongs to.
    pub(crate) fn find(&self, echoed: &RequestId) -> Option<&W> {
        self.resolve(echoed).and_then(|id| self.waiting.get(&id))
    }

    /// Nobody waits any more.
    pub(crate) fn abandon(&mut self, id: &RequestId) -> Option<W> {
        self.waiting.remove(id)
    }

    /// Everybody who still waits.
    pub(crate) fn drain(&mut self) -> Vec<W> {
        self.waiting.drain().map(|(_, waiter)| waiter).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn is_taken(&self, id: &RequestId) -> bool {
        self.resolve(id).is_some()
    }

    fn resolve(&self, echoed: &RequestId) -> Option<RequestId> {
        exact_or_twin(&self.waiting, echoed)
    }
}

/// Tells one use of an id from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// The peer's requests that have no answer yet. Keyed exactly: `1` and `"1"` may run together.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    calls: Table<(Generation, C)>,
    generations: u64,
}

impl<C> InFlight<C> {
    pub(crate) fn new() -> Self {
        Self { calls: Table::default(), generations: 0 }
    }

    /// Takes a request in, unless its id is in flight already: then the first runs on undisturbed.
    pub(crate) fn accept(&mut self, id: RequestId, call: impl FnOnce(Generation) -> C) -> Result<&C, Taken> {
        match self.calls.entry(id) {
            Entry::Occupied(_) => Err(Taken),
            Entry::Vacant(entry) => {
                self.generations += 1;
                let generation = Generation(self.generations);
                Ok(&entry.insert((generation, call(generation))).1)
            }
        }
    }

    /// The peer cancels: whoever gets the call here owns its silence.
    pub(crate) fn cancel(&mut self, echoed: &RequestId) -> Option<C> {
        let id = exact_or_twin(&self.calls, echoed)?;
        self.calls.remove(&id).map(|(_, call)| call)
    }

    /// The handler has ended: whoever gets the call here owns its answer.
    pub(crate) fn finish(&mut self, id: &RequestId, generation: Generation) -> Option<C> {
        let (current, call) = self.calls.remove(id)?;
        if current == generation {
            return Some(call);
        }
        // A later use of the id, which is rare: it was taken out only because looking first would hash twice.
        self.calls.insert(id.clone(), (current, call));
        None
    }

    /// Everything that is in flight.
    pub(crate) fn all(&self) -> impl Iterator<Item = &C> {
        self.calls.values().map(|(_, call)| call)
    }

    /// Everything that is still in flight, to be answered by the caller.
    pub(crate) fn drain(&mut self) -> Vec<(RequestId, C)> {
        self.calls.drain().map(|(id, (_, call))| (id, call)).collect()
    }
}

/// Peers echo ids with another JSON type at times: the exact id is preferred, then its number/string twin.
fn exact_or_twin<T>(table: &Table<T>, echoed: &RequestId) -> Option<RequestId> {
    if table.contains_key(echoed) {
        return Some(echoed.clone());
    }
    echoed.twin().filter(|twin| table.contains_key(twin))
}
