//! Servers made of servers.

use std::any::Any;
use std::collections::HashMap;

use duplexer_types::json::JsonObject;
use duplexer_types::methods::{Kind, METHODS};

use super::{Advertised, BuildError, Handlers, Rest, ServerBuilder};
use crate::catalog::Merged;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Makes another server a part of this one: what it offers is offered here, under the same names. Its handlers keep
    /// their own state, whose lifespans start before this server's own and end after them.
    ///
    /// - Whatever there can be only one of fails the build if both have it: a name, a URI, a custom method, a handler of the
    ///   same method, a bus. An extension may be spoken by both, with the same settings.
    /// - Name, version and instructions are this server's. So is middleware, which sees every message: a server that has
    ///   some, or seals request states, cannot be merged.
    /// - What decides about visibility, and what intercepts calls of tools, stays around the other server's own tools,
    ///   prompts and resources.
    /// - Capabilities follow from everything together. A bus, and hints about freshness, are taken over where this server
    ///   has none.
    pub fn merge<T: Any + Send + Sync>(self, other: ServerBuilder<T>) -> Self {
        self.join(other, None)
    }

    /// The same under a prefix: the tool or prompt `name` is `prefix_name` here. The other server itself goes on to know
    /// them by their short names, where it changes what it offers and where it decides who sees it.
    ///
    /// URIs and custom methods have prefixes of their own and stay as they are. Handlers of the protocol's methods would not
    /// know of the prefix: a server that has some cannot be nested.
    pub fn nest<T: Any + Send + Sync>(mut self, prefix: impl AsRef<str>, other: ServerBuilder<T>) -> Self {
        let requests = METHODS.iter().filter(|row| row.kind == Kind::Request);
        if let Some(row) = requests.into_iter().find(|row| other.handlers.spec(row.method).is_some()) {
            self.rest.faults.push(BuildError::NoPrefix(row.method.name()));
        }
        self.join(other, Some(prefix.as_ref()))
    }

    /// Describes a part of the server that must not replace a handler of anybody else: if it does, the build fails.
    pub fn without_replacing(mut self, describe: impl FnOnce(Self) -> Self) -> Self {
        let before = std::mem::replace(&mut self.rest.keeps, true);
        let mut described = describe(self);
        described.rest.keeps = before;
        described
    }

    fn join<T>(mut self, other: ServerBuilder<T>, prefix: Option<&str>) -> Self {
        if !other.middleware.is_empty() {
            self.rest.faults.push(BuildError::MergedMiddleware(other.info.name));
        }
        let merged = Merged { prefix, slots: other.lifespans.iter().map(|lifespan| lifespan.slot).collect() };
        let before = self.rest.merged;
        self.rest.merged += other.lifespans.len();
        self.lifespans.splice(before..before, other.lifespans);
        self.handlers.absorb(other.handlers, &mut self.rest.faults);
        self.rest.absorb(other.rest, &merged);
        self
    }
}

impl Rest {
    fn absorb(&mut self, other: Self, merged: &Merged<'_>) {
        self.faults.extend(other.faults);
        self.logging |= other.logging;
        // A later hint goes before an earlier one.
        self.hints.splice(0..0, other.hints);
        match (&self.tool_headers, other.tool_headers) {
            (Some(_), Some(_)) => self.faults.push(clash("look-up of", "tool headers")),
            (None, theirs @ Some(_)) => self.tool_headers = theirs,
            (_, None) => {}
        }
        self.advertised.absorb(other.advertised, &mut self.faults);
        if let Some(theirs) = other.catalog {
            self.catalog.get_or_insert_default().merge_from(theirs, merged);
        }
    }
}

pub(super) fn clash(what: &'static str, name: impl Into<String>) -> BuildError {
    BuildError::Clash { what, name: name.into() }
}

impl Handlers {
    fn absorb(&mut self, other: Self, faults: &mut Vec<BuildError>) {
        for (row, theirs) in METHODS.iter().zip(other.spec) {
            let Some(theirs) = theirs else { continue };
            if self.spec(row.method).is_some() {
                faults.push(clash("handler of", row.method.name()));
            }
            self.set(row.method, theirs);
        }
        union(&mut self.custom, other.custom, "custom method", faults);
        union(&mut self.custom_notifications, other.custom_notifications, "custom notification", faults);
    }
}

fn union<T>(
    ours: &mut HashMap<String, T>,
    theirs: HashMap<String, T>,
    what: &'static str,
    faults: &mut Vec<BuildError>,
) {
    for (name, entry) in theirs {
        if ours.contains_key(&name) {
            faults.push(clash(what, name.clone()));
        }
        ours.insert(name, entry);
    }
}

impl Advertised {
    fn absorb(&mut self, other: Self, faults: &mut Vec<BuildError>) {
        let (ours, theirs) = (&mut self.changes, other.changes);
        ours.prompts_changed |= theirs.prompts_changed;
        ours.resources_changed |= theirs.resources_changed;
        ours.tools_changed |= theirs.tools_changed;
        match (&self.subscriptions, other.subscriptions) {
            (Some(_), Some(_)) => faults.push(clash("bus", "subscriptions")),
            (None, theirs @ Some(_)) => self.subscriptions = theirs,
            (_, None) => {}
        }
        same(&mut self.experimental, other.experimental, "experimental capability", faults);
        same(&mut self.extensions, other.extensions, "extension", faults);
    }
}

/// Both may say the same.
fn same(ours: &mut JsonObject, theirs: JsonObject, what: &'static str, faults: &mut Vec<BuildError>) {
    for (name, settings) in theirs {
        if ours.get(&name).is_some_and(|known| *known != settings) {
            faults.push(clash(what, name.clone()));
        }
        ours.insert(name, settings);
    }
}
