//! Which of the servers that were put together something belongs to.
//!
//! Every server has a scope: what its names have before them here, who may see what it offers, and what its calls pass
//! through. What surrounds an outer server surrounds the inner ones too.

use std::sync::Arc;

use crate::kernel::context::Context;
use crate::registry::SlotId;

use super::{Item, Visible};
use crate::catalog::tool::{Chain, ToolMiddleware};

/// A server that is merged into another.
pub(crate) struct Merged<'a> {
    /// What its names get before them, if it is nested.
    pub(crate) prefix: Option<&'a str>,
    /// Its lifespans, and those of servers that were merged into it.
    pub(crate) slots: Vec<SlotId>,
}

/// What stands between a prefix and a name. Models' interfaces take letters, digits, `_` and `-`.
const SEPARATOR: char = '_';

/// The scopes of a server, its own first: there is always that one. A scope stands behind the one it lies in.
pub(crate) struct Scopes(Vec<Scope>);

#[derive(Default)]
pub(crate) struct Scope {
    outer: Option<usize>,
    /// What stands before the names of this scope, all levels together.
    prefix: String,
    slots: Vec<SlotId>,
    pub(crate) visible: Option<Visible>,
    pub(crate) tool_middleware: Vec<Arc<dyn ToolMiddleware>>,
    /// Those of this scope and all around it, outermost first; made when the server is built.
    chain: Chain,
}

impl Default for Scopes {
    fn default() -> Self {
        Self(vec![Scope::default()])
    }
}

impl Scopes {
    /// The scope of the server that is being described.
    pub(crate) fn own(&mut self) -> &mut Scope {
        &mut self.0[0]
    }

    /// Takes the scopes of another server behind the own ones. Returns how far their numbers have scope_offset.
    pub(crate) fn merge_from(&mut self, other: Self, prefix: &str, merged: &Merged<'_>) -> usize {
        let scope_offset = self.0.len();
        for (number, mut scope) in other.0.into_iter().enumerate() {
            scope.outer = Some(scope.outer.map_or(0, |outer| outer + scope_offset));
            scope.prefix.insert_str(0, prefix);
            if number == 0 {
                scope.slots.clone_from(&merged.slots);
            }
            self.0.push(scope);
        }
        scope_offset
    }

    /// Settles what calls pass through.
    pub(crate) fn link_middleware(&mut self) {
        for number in 0..self.0.len() {
            let scope = &self.0[number];
            let around = scope.outer.map(|outer| Arc::clone(&self.0[outer].chain));
            let own = scope.tool_middleware.iter().map(|one| (scope.prefix.len(), Arc::clone(one)));
            let chain = around.iter().flat_map(|around| around.iter().cloned()).chain(own).collect();
            self.0[number].chain = chain;
        }
    }

    /// The scope of handlers with this state: the innermost, since outer ones know the slots of inner ones.
    pub(crate) fn of(&self, slot: SlotId) -> usize {
        self.0.iter().rposition(|scope| scope.slots.contains(&slot)).unwrap_or(0)
    }

    pub(crate) fn prefix(&self, scope: usize) -> &str {
        self.0.get(scope).map_or("", |scope| &scope.prefix)
    }

    pub(crate) fn chain(&self, scope: usize) -> Option<&Chain> {
        self.0.get(scope).map(|scope| &scope.chain).filter(|chain| !chain.is_empty())
    }

    /// Whether anybody decides about visibility.
    pub(crate) fn hide(&self) -> bool {
        self.0.iter().any(|scope| scope.visible.is_some())
    }

    /// Whether the caller may see something, and therefore use it: all around it agree.
    pub(crate) fn show(&self, cx: &Context, item: &impl Item) -> bool {
        let mut next = self.0.get(item.scope());
        while let Some(scope) = next {
            if let Some(visible) = &scope.visible
                && !item.offered(scope.prefix.len(), &|offered| visible(cx, offered))
            {
                return false;
            }
            next = scope.outer.and_then(|outer| self.0.get(outer));
        }
        true
    }
}

/// What names get before them under a prefix.
pub(crate) fn prefix(merged: &Merged<'_>) -> String {
    merged.prefix.map(|prefix| format!("{prefix}{SEPARATOR}")).unwrap_or_default()
}
