//! The violations found so far, and the place that is being checked.

use serde_json::Value;

use super::Stop;
use crate::report::Violation;
use crate::text::{push_token, shown};

pub(super) struct Findings {
    /// JSON pointer of the place.
    pointer: String,
    pub(super) violations: Vec<Violation>,
    most: usize,
    pub(super) is_cut: bool,
}

impl Findings {
    pub(super) fn new(most: usize) -> Self {
        Self { pointer: String::new(), violations: Vec::new(), most, is_cut: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.violations.len()
    }

    /// Goes to a member or an item; the result is what `ascend` needs to come back.
    pub(super) fn descend(&mut self, token: &str) -> usize {
        let length = self.pointer.len();
        push_token(&mut self.pointer, token);
        length
    }

    pub(super) fn ascend(&mut self, length: usize) {
        self.pointer.truncate(length);
    }

    fn push(&mut self, violation: Violation) -> Result<(), Stop> {
        if self.violations.len() >= self.most {
            self.is_cut = true;
            return Err(Stop::Full);
        }
        self.violations.push(violation);
        Ok(())
    }

    /// Adds the reason why there are no further violations, also to a full list.
    pub(super) fn push_last(&mut self, violation: Violation) {
        self.violations.push(violation);
    }

    pub(super) fn mismatch(&mut self, expected: String, found: &Value) -> Result<(), Stop> {
        self.push(Violation::mismatch(self.pointer.clone(), expected, shown(found)))
    }

    pub(super) fn missing(&mut self, name: &str) -> Result<(), Stop> {
        let pointer = self.member(name);
        self.push(Violation::missing(pointer))
    }

    /// A required member is absent that has few possible values.
    pub(super) fn missing_tag(&mut self, name: &str, expected: String) -> Result<(), Stop> {
        let pointer = self.member(name);
        self.push(Violation::mismatch(pointer, expected, "nothing".to_owned()))
    }

    /// The value at the current place should not be there at all.
    pub(super) fn unknown(&mut self, noun: &'static str, found: &Value) -> Result<(), Stop> {
        self.push(Violation::unknown(self.pointer.clone(), noun, shown(found)))
    }

    fn member(&self, name: &str) -> String {
        let mut pointer = self.pointer.clone();
        push_token(&mut pointer, name);
        pointer
    }
}
