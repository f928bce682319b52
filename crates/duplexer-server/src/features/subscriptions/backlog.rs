//! Bounded queue of the events that wait for one listener. Equal events are merged.

use std::collections::{HashSet, VecDeque};

use super::bus::Event;

/// The result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The event was queued.
    Taken,
    /// An equal event already waits, and carries the same information.
    Merged,
    /// The queue is full.
    Full,
}

/// A queue of different events. A repeated change carries no further information.
pub(super) struct Backlog {
    waiting: VecDeque<Event>,
    known: HashSet<Event>,
    capacity: usize,
}

impl Backlog {
    /// Creates a queue with this capacity.
    pub(super) fn new(capacity: usize) -> Self {
        Self { waiting: VecDeque::new(), known: HashSet::new(), capacity }
    }

    pub(super) fn push(&mut self, event: &Event) -> Pushed {
        if self.known.contains(event) {
            return Pushed::Merged;
        }
        if self.waiting.len() >= self.capacity {
            return Pushed::Full;
        }
        self.known.insert(event.clone());
        self.waiting.push_back(event.clone());
        Pushed::Taken
    }

    /// Removes the oldest event. From here on an equal event is queued again.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        self.known.remove(&event);
        Some(event)
    }

    /// Removes an event that the listener has unsubscribed from.
    pub(super) fn remove(&mut self, event: &Event) {
        if self.known.remove(event) {
            self.waiting.retain(|waiting| waiting != event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(uri: &str) -> Event {
        Event::resource_updated(uri)
    }

    /// SUB-06: bounded; equal events take one slot, at the position of the first.
    #[test]
    fn equal_events_that_wait_are_one() {
        let mut backlog = Backlog::new(2);
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken);
        assert_eq!(backlog.push(&Event::ToolsChanged), Pushed::Taken);
        assert_eq!(backlog.push(&updated("a")), Pushed::Merged);
        assert_eq!(backlog.push(&updated("b")), Pushed::Full);
        assert_eq!(backlog.pop(), Some(updated("a")));
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken, "queued again after it was removed");
        assert_eq!(backlog.pop(), Some(Event::ToolsChanged));
        backlog.remove(&updated("a"));
        backlog.remove(&updated("never there"));
        assert_eq!(backlog.pop(), None);
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken);
    }
}
