//! Events of a kept stream that the store has not confirmed.

use std::collections::VecDeque;

use crate::server::event_queue::{self, MAX_BYTES, MAX_EVENTS};
use crate::session::StoredEvent;

/// Events that the store has not confirmed: those that wait, and the batch on its way.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<SentEvent>,
    /// Events and bytes that are not confirmed.
    events: usize,
    bytes: usize,
    /// Number of all events that were sent.
    sent: u64,
    writing: Writing,
}

/// An event, and the request to the client that it is, if it is one.
pub(super) struct SentEvent {
    pub(super) event: StoredEvent,
    pub(super) question: Option<u64>,
}

/// Whether a task writes the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Writing {
    #[default]
    Idle,
    InProgress,
}

impl Outbox {
    /// Adds an event. [`Writing::Idle`] if the caller must start the task that writes.
    pub(super) fn push(&mut self, event: StoredEvent, question: Option<u64>) -> Writing {
        self.sent += 1;
        self.events += 1;
        self.bytes += event.data.len();
        self.waiting.push_back(SentEvent { event, question });
        std::mem::replace(&mut self.writing, Writing::InProgress)
    }

    /// Takes the next batch. Without one the task that writes ends.
    pub(super) fn next_batch(&mut self) -> Vec<SentEvent> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(next) = self.waiting.front() {
            if !batch.is_empty() && (batch.len() >= MAX_EVENTS || bytes + next.event.data.len() > MAX_BYTES) {
                break;
            }
            bytes += next.event.data.len();
            batch.extend(self.waiting.pop_front());
        }
        if batch.is_empty() {
            self.writing = Writing::Idle;
        }
        batch
    }

    /// Removes events of a batch that are stored or dropped.
    pub(super) fn confirm(&mut self, events: usize, bytes: usize) {
        self.events = self.events.saturating_sub(events);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Discards all events that wait.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        (self.events, self.bytes) = (0, 0);
    }

    pub(super) fn is_full(&self) -> bool {
        event_queue::is_full(self.events, self.bytes)
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing == Writing::InProgress
    }

    /// Returns whether no event has been sent.
    pub(super) fn is_unused(&self) -> bool {
        self.sent == 0
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }
}
