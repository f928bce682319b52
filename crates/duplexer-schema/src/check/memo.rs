//! Verdicts that are known already.

use std::collections::HashMap;

use serde_json::Value;

use super::scope::Scope;
use crate::documents::address;
use crate::node::NodeId;

/// One question: a node, a value and a dynamic scope.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    node: NodeId,
    scope: Scope,
    value: usize,
}

impl Question {
    pub(super) fn new(node: NodeId, value: &Value, scope: Scope) -> Self {
        Self { node, scope, value: address(value) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The question is being answered. A reference that comes back to it without descending adds nothing.
    Open,
    Valid,
    /// `progress` is how many levels below the value the fault lies.
    Failed {
        progress: u16,
    },
    /// A failure whose violations are listed.
    Explained,
}

/// A table of bounded size. When it is full, further questions are answered anew each time.
pub(super) struct Memo {
    known: HashMap<Question, Known>,
    most: usize,
    /// How deep in the value the last fault lies.
    pub(super) fault_level: usize,
}

impl Memo {
    pub(super) fn new(most: usize) -> Self {
        Self { known: HashMap::new(), most, fault_level: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn get(&self, question: &Question) -> Option<Known> {
        self.known.get(question).copied()
    }

    pub(super) fn set(&mut self, question: Question, known: Known) {
        if self.known.len() < self.most || self.known.contains_key(&question) {
            self.known.insert(question, known);
        }
    }
}
