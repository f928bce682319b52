//! How a stream stands.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;

use super::keeping::Start;
use crate::server::exchange::Answer;
use crate::session::{EventKind, StoredEvent};

/// Events that wait, at most; then their senders wait.
const MAX_EVENTS: usize = 64;
/// Bytes that wait, at most; one event more may exceed it.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct State {
    pub(super) reader: Reader,
    /// What the reader has not got yet.
    pub(super) live: Vec<u8>,
    pub(super) live_events: usize,
    /// What the store has not got yet.
    pub(super) pending: VecDeque<StoredEvent>,
    pub(super) pending_bytes: usize,
    pub(super) passing: Passing,
    pub(super) store: Store,
    /// The number of the last event that was given a number.
    pub(super) told: u64,
    /// The number of the last event that readers can know of.
    pub(super) passed_on: u64,
    /// The answer that ends a stream whose events are not kept.
    pub(super) answer: Option<Answer>,
    /// A challenge before anything else was told; a response that has not begun can still be it.
    pub(super) challenge: Option<Answer>,
    pub(super) ended: Ended,
    pub(super) readers: u64,
    pub(super) waker: Option<Waker>,
    pub(super) writers: Vec<Waker>,
}

/// Who reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reader {
    #[default]
    Nobody,
    /// The one with this number.
    Attached(u64),
    /// The one with this number, until it has got what waits.
    Leaving(u64),
}

/// Whether a task passes events on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Passing {
    #[default]
    Idle,
    Busy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Store {
    #[default]
    Sound,
    /// It has failed: events are passed on all the same, and cannot be come back for.
    Broken,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ended {
    #[default]
    No,
    /// The answer has been told, but has not reached the readers' side.
    Told,
    /// Nothing will follow.
    Yes,
}

impl State {
    pub(super) fn is_full(&self) -> bool {
        self.live_events.max(self.pending.len()) >= MAX_EVENTS
            || self.live.len().max(self.pending_bytes) >= MAX_BYTES
    }

    /// Whether the reader has more than it should before it.
    pub(super) fn is_reader_full(&self) -> bool {
        self.live_events >= MAX_EVENTS || self.live.len() >= MAX_BYTES
    }

    pub(super) fn keep(&mut self, data: Bytes, kind: EventKind) -> Start {
        self.told += 1;
        self.pending_bytes += data.len();
        self.pending.push_back(StoredEvent::new(self.told, data, kind));
        match std::mem::replace(&mut self.passing, Passing::Busy) {
            Passing::Idle => Start::Yes,
            Passing::Busy => Start::No,
        }
    }

    pub(super) fn leave(&mut self) -> Vec<Waker> {
        self.reader = Reader::Nobody;
        self.live = Vec::new();
        self.live_events = 0;
        self.waker = None;
        std::mem::take(&mut self.writers)
    }
}
