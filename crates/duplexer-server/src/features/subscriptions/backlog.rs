//! Bounded queue of the events that wait for one listener. Equal events are merged.

use std::collections::{HashSet, VecDeque};

use super::bus::{Event, Position};

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
    /// With the position of the first of the equal events.
    waiting: VecDeque<(Event, Position)>,
    known: HashSet<Event>,
    capacity: usize,
}

impl Backlog {
    /// Creates a queue with this capacity.
    pub(super) fn new(capacity: usize) -> Self {
        Self { waiting: VecDeque::new(), known: HashSet::new(), capacity }
    }

    pub(super) fn push(&mut self, event: &Event, position: Position) -> Pushed {
        if self.known.contains(event) {
            return Pushed::Merged;
        }
        if self.waiting.len() >= self.capacity {
            return Pushed::Full;
        }
        self.known.insert(event.clone());
        self.waiting.push_back((event.clone(), position));
        Pushed::Taken
    }

    /// Replaces everything that waits, because anything can have changed up to this position. The events are all that
    /// the listener is subscribed to: they are bounded, and queued whatever the capacity.
    pub(super) fn replace(&mut self, events: impl Iterator<Item = Event>, position: Position) {
        self.waiting.clear();
        self.known.clear();
        for event in events {
            self.known.insert(event.clone());
            self.waiting.push_back((event, position));
        }
    }

    /// Removes the oldest event. From here on an equal event is queued again.
    pub(super) fn pop(&mut self) -> Option<(Event, Position)> {
        let (event, position) = self.waiting.pop_front()?;
        self.known.remove(&event);
        Some((event, position))
    }

    /// Returns the position of the oldest event.
    pub(super) fn next_position(&self) -> Option<Position> {
        self.waiting.front().map(|(_, position)| *position)
    }

    /// Removes an event that the listener has unsubscribed from.
    pub(super) fn remove(&mut self, event: &Event) {
        if self.known.remove(event) {
            self.waiting.retain(|(waiting, _)| waiting != event);
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
        let mut push = |uri: &str, position| backlog.push(&updated(uri), Position(position));
        assert_eq!(push("a", 1), Pushed::Taken);
        assert_eq!(push("c", 2), Pushed::Taken);
        assert_eq!(push("a", 3), Pushed::Merged);
        assert_eq!(push("b", 4), Pushed::Full);
        assert_eq!(backlog.pop(), Some((updated("a"), Position(1))));
        let after = backlog.push(&updated("a"), Position(5));
        assert_eq!(after, Pushed::Taken, "queued again after it was removed");
        assert_eq!(backlog.next_position(), Some(Position(2)));
        assert_eq!(backlog.pop(), Some((updated("c"), Position(2))));
        backlog.remove(&updated("a"));
        backlog.remove(&updated("never there"));
        assert_eq!(backlog.pop(), None);
        assert_eq!(backlog.push(&updated("a"), Position(6)), Pushed::Taken);
    }

    /// SCL-10: after a gap everything waits, more than the capacity if need be.
    #[test]
    fn a_gap_replaces_what_waits() {
        let mut backlog = Backlog::new(1);
        backlog.push(&updated("a"), Position(1));
        backlog.replace(["a", "b", "c"].into_iter().map(updated), Position(9));
        assert_eq!(backlog.push(&updated("b"), Position(10)), Pushed::Merged);
        for uri in ["a", "b", "c"] {
            assert_eq!(backlog.pop(), Some((updated(uri), Position(9))));
        }
        assert_eq!(backlog.pop(), None);
    }
}
