//! A table of entries that knows which one was added last.

/// Entries by their slot. Slots are used again, so that adding and removing an entry costs the same however many there are.
pub(crate) struct Slots<T> {
    entries: Vec<Option<Numbered<T>>>,
    free: Vec<usize>,
    added: u64,
}

struct Numbered<T> {
    /// How many entries were added before it.
    number: u64,
    entry: T,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new(), added: 0 }
    }
}

impl<T> Slots<T> {
    /// Adds an entry and returns its slot.
    pub(crate) fn add(&mut self, entry: T) -> usize {
        let entry = Some(Numbered { number: self.added, entry });
        self.added += 1;
        if let Some(slot) = self.free.pop() {
            self.entries[slot] = entry;
            return slot;
        }
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Replaces the entry in a slot. It keeps its place in the order.
    pub(crate) fn replace(&mut self, slot: usize, entry: T) {
        if let Some(Some(replaced)) = self.entries.get_mut(slot) {
            replaced.entry = entry;
        }
    }

    /// Removes an entry. Its slot must not be used again.
    pub(crate) fn remove(&mut self, slot: usize) -> Option<T> {
        let removed = self.entries.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(removed.entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns the latest entry that `accepts`.
    pub(crate) fn latest(&self, accepts: impl Fn(&T) -> bool) -> Option<&T> {
        let accepted = self.entries.iter().flatten().filter(|numbered| accepts(&numbered.entry));
        accepted.max_by_key(|numbered| numbered.number).map(|numbered| &numbered.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn the_latest_entry_is_the_one_that_was_added_last() {
        let mut slots = Slots::default();
        let latest = |slots: &Slots<&'static str>| slots.latest(|_| true).copied();
        let (first, second) = (slots.add("first"), slots.add("second"));
        assert_eq!(latest(&slots), Some("second"));
        assert_eq!(slots.latest(|entry| *entry != "second"), Some(&"first"));
        slots.remove(first);
        // It takes the slot of the first one, and is later than the second.
        let third = slots.add("third");
        assert_eq!((third, slots.len()), (first, 2));
        assert_eq!(latest(&slots), Some("third"));
        slots.replace(second, "replaced");
        assert_eq!(latest(&slots), Some("third"), "a replaced entry keeps its place");
        slots.remove(third);
        assert_eq!(latest(&slots), Some("replaced"));
        assert_eq!(slots.remove(second), Some("replaced"));
        assert_eq!((latest(&slots), slots.len()), (None, 0));
    }
}
