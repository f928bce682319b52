//! Stack of the open containers during a scan, one bit each, so that nesting needs no recursion.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Array,
    Object,
}

/// Stack of containers, one bit each. The first 128 need no allocation.
#[derive(Default)]
pub(super) struct OpenContainers {
    len: usize,
    bits: u128,
    spilled: Vec<u128>,
}

impl OpenContainers {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, container: Container) {
        if self.len > 0 && self.len.is_multiple_of(128) {
            self.spilled.push(self.bits);
        }
        self.bits = self.bits << 1 | u128::from(container == Container::Object);
        self.len += 1;
    }

    pub(super) fn last(&self) -> Option<Container> {
        match self.len {
            0 => None,
            _ if self.bits & 1 == 1 => Some(Container::Object),
            _ => Some(Container::Array),
        }
    }

    pub(super) fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
        self.bits = if self.len > 0 && self.len.is_multiple_of(128) {
            self.spilled.pop().unwrap_or_default()
        } else {
            self.bits >> 1
        };
    }
}
