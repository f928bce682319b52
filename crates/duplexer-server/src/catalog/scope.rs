//! Scopes: which of the merged servers an item belongs to.
//!
//! Every server has a scope with a name prefix, a visibility filter and tool middleware. The filter and the middleware
//! of an outer server apply to the inner servers too.

use std::sync::Arc;

use crate::kernel::context::Context;
use crate::registry::SlotId;

use super::{Item, Visible};
use crate::catalog::tool::{Chain, ToolMiddleware};

/// A server that is merged into another.
pub(crate) struct Merged<'a> {
    /// Prefix of its names, if it is nested.
    pub(crate) prefix: Option<&'a str>,
    /// Its lifespans, and those of the servers that were merged into it.
    pub(crate) slots: Vec<SlotId>,
}

/// Separator of a prefix and a name. Model APIs accept letters, digits, `_` and `-`.
const SEPARATOR: char = '_';

/// The scopes of a server. Its own is the first and always exists. A scope follows the scope that contains it.
pub(crate) struct Scopes(Vec<Scope>);

#[derive(Default)]
pub(crate) struct Scope {
    outer: Option<usize>,
    /// Full prefix of the names in this scope, of all levels together.
    prefix: String,
    slots: Vec<SlotId>,
    pub(crate) visible: Option<Visible>,
    pub(crate) tool_middleware: Vec<Arc<dyn ToolMiddleware>>,
    /// Middleware of this scope and all outer scopes, outermost first. Filled when the server is built.
    chain: Chain,
}

impl Default for Scopes {
    fn default() -> Self {
        Self(vec![Scope::default()])
    }
}

impl Scopes {
    /// Returns the scope of the server that is being built.
    pub(crate) fn own(&mut self) -> &mut Scope {
        &mut self.0[0]
    }

    /// Appends the scopes of another server. Returns the offset of their numbers.
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

    /// Computes the middleware chain of every scope.
    pub(crate) fn link_middleware(&mut self) {
        for number in 0..self.0.len() {
            let scope = &self.0[number];
            let around = scope.outer.map(|outer| Arc::clone(&self.0[outer].chain));
            let own = scope.tool_middleware.iter().map(|one| (scope.prefix.len(), Arc::clone(one)));
            let chain = around.iter().flat_map(|around| around.iter().cloned()).chain(own).collect();
            self.0[number].chain = chain;
        }
    }

    /// Returns the scope of handlers with this state: the innermost, since outer scopes contain the slots of inner ones.
    pub(crate) fn of(&self, slot: SlotId) -> usize {
        self.0.iter().rposition(|scope| scope.slots.contains(&slot)).unwrap_or(0)
    }

    pub(crate) fn prefix(&self, scope: usize) -> &str {
        self.0.get(scope).map_or("", |scope| &scope.prefix)
    }

    pub(crate) fn chain(&self, scope: usize) -> Option<&Chain> {
        self.0.get(scope).map(|scope| &scope.chain).filter(|chain| !chain.is_empty())
    }

    /// Returns whether any scope has a visibility filter.
    pub(crate) fn hide(&self) -> bool {
        self.0.iter().any(|scope| scope.visible.is_some())
    }

    /// Returns whether the caller can see an item, and therefore use it: the filters of all its scopes accept it.
    pub(crate) fn show(&self, cx: &Context, item: &impl Item) -> bool {
        let mut next = self.0.get(item.scope());
        while let Some(scope) = next {
            if let Some(visible) = &scope.visible
                && !item.is_visible(scope.prefix.len(), &|item| visible(cx, item))
            {
                return false;
            }
            next = scope.outer.and_then(|outer| self.0.get(outer));
        }
        true
    }
}

/// Returns the prefix of a merged server's names, with the separator.
pub(crate) fn prefix(merged: &Merged<'_>) -> String {
    merged.prefix.map(|prefix| format!("{prefix}{SEPARATOR}")).unwrap_or_default()
}
