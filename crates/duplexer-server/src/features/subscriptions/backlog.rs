//! Events that wait for one listener: bounded, and equal ones are one.

use std::collections::{HashSet, VecDeque};

use super::bus::Event;

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It waits.
    Taken,
    /// An equal one waits already, and says the same.
    Merged,
    /// There is no room.
    Full,
}

/// A queue of different events. To say twice that something has changed says nothing more.
pub(super) struct Backlog {
    waiting: VecDeque<Event>,
    known: HashSet<Event>,
    room: usize,
}

impl Backlog {
    /// Room for so many different events.
    pub(super) fn new(room: usize) -> Self {
        Self { waiting: VecDeque::new(), known: HashSet::new(), room }
    }

    pub(super) fn push(&mut self, event: &Event) -> Pushed {
        if self.known.contains(event) {
            return Pushed::Merged;
        }
        if self.waiting.len() >= self.room {
            return Pushed::Full;
        }
        self.known.insert(event.clone());
        self.waiting.push_back(event.clone());
        Pushed::Taken
    }

    /// The oldest. From here on an equal one is another.
    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        self.known.remove(&event);
        Some(event)
    }

    /// Nobody wants to hear of it any more.
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

    /// SUB-06: bounded; equal events take one place, at the position of the first.
    #[test]
    fn equal_events_that_wait_are_one() {
        let mut backlog = Backlog::new(2);
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken);
        assert_eq!(backlog.push(&Event::ToolsChanged), Pushed::Taken);
        assert_eq!(backlog.push(&updated("a")), Pushed::Merged);
        assert_eq!(backlog.push(&updated("b")), Pushed::Full);
        assert_eq!(backlog.pop(), Some(updated("a")));
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken, "told after it was taken out");
        assert_eq!(backlog.pop(), Some(Event::ToolsChanged));
        backlog.remove(&updated("a"));
        backlog.remove(&updated("never there"));
        assert_eq!(backlog.pop(), None);
        assert_eq!(backlog.push(&updated("a")), Pushed::Taken);
    }
}
