//! The dynamic scope: which schema each dynamic anchor names, decided by the outermost resource that has it.

use std::collections::HashMap;

use crate::compile::Compiled;
use crate::node::NodeId;

/// Index of a scope. Equal scopes have equal indices, so that verdicts can be kept by scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Scope(u32);

impl Scope {
    pub(super) const EMPTY: Self = Self(0);
}

pub(super) struct Scopes<'s> {
    dynamic: &'s [Vec<(usize, NodeId)>],
    all: Vec<Vec<Option<NodeId>>>,
    indices: HashMap<Vec<Option<NodeId>>, Scope>,
}

impl<'s> Scopes<'s> {
    pub(super) fn new(schema: &'s Compiled) -> Self {
        let empty = vec![None; schema.anchors];
        Self {
            dynamic: &schema.dynamic,
            all: vec![empty.clone()],
            indices: HashMap::from([(empty, Scope::EMPTY)]),
        }
    }

    pub(super) fn find(&self, scope: Scope, anchor: usize) -> Option<NodeId> {
        *self.all.get(scope.0 as usize)?.get(anchor)?
    }

    /// The scope behind the entry into a resource.
    pub(super) fn enter(&mut self, scope: Scope, resource: u32) -> Scope {
        let anchors = self.dynamic.get(resource as usize).map(Vec::as_slice).unwrap_or_default();
        if anchors.iter().all(|(anchor, _)| self.find(scope, *anchor).is_some()) {
            return scope;
        }
        let mut entered = self.all[scope.0 as usize].clone();
        for (anchor, node) in anchors {
            entered[*anchor].get_or_insert(*node);
        }
        if let Some(known) = self.indices.get(&entered) {
            return *known;
        }
        let Ok(index) = u32::try_from(self.all.len()) else { return scope };
        self.all.push(entered.clone());
        self.indices.insert(entered, Scope(index));
        Scope(index)
    }
}
