//! Composition of servers: merging, nesting, and the checks for clashes.

use std::any::Any;
use std::collections::HashMap;

use duplexer_types::methods::{Kind, METHODS};

use super::{Advertised, BuildError, Deferred, Handlers, ServerBuilder};
use crate::catalog::Merged;

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Merges another server into this one, under the same names. Its handlers keep their own state, whose lifespans
    /// start before this server's own and end after them.
    ///
    /// - Everything that must be unique fails the build if both servers have it: a name, a URI, a custom method, a
    ///   handler of the same method, a bus. Both can declare the same extension with the same settings and
    ///   revisions.
    /// - Name, version and instructions are this server's. So is middleware, which sees every message: a server that
    ///   has middleware, or seals request states, cannot be merged.
    /// - Visibility filters and interceptors of the other server apply to its own tools, prompts and resources only.
    /// - Capabilities are derived from everything together. A bus and freshness hints are taken over where this server
    ///   has none.
    pub fn merge<T: Any + Send + Sync>(self, other: ServerBuilder<T>) -> Self {
        self.join(other, None)
    }

    /// Merges another server under a prefix: its tool or prompt `name` becomes `prefix_name`. The other server itself
    /// still uses the short names when it edits its catalog and filters its items.
    ///
    /// URIs and custom methods have prefixes of their own and stay unchanged. Handlers of spec methods do not know the
    /// prefix: a server that has any cannot be nested.
    #[doc(alias("mount", "prefix"))]
    pub fn nest<T: Any + Send + Sync>(mut self, prefix: impl AsRef<str>, other: ServerBuilder<T>) -> Self {
        // Methods of extensions name no tools and prompts.
        let requests = METHODS.iter().filter(|row| row.kind == Kind::Request && row.method.is_core());
        if let Some(row) = requests.into_iter().find(|row| other.handlers.spec(row.method).is_some()) {
            self.deferred.faults.push(BuildError::NoPrefix(row.method.name()));
        }
        self.join(other, Some(prefix.as_ref()))
    }

    /// Describes a part of the server that must not replace a registered handler. If it does, the build fails.
    pub fn without_replacing(mut self, describe: impl FnOnce(Self) -> Self) -> Self {
        let before = std::mem::replace(&mut self.deferred.forbid_replace, true);
        let mut described = describe(self);
        described.deferred.forbid_replace = before;
        described
    }

    fn join<T>(mut self, other: ServerBuilder<T>, prefix: Option<&str>) -> Self {
        if !other.middleware.is_empty() {
            self.deferred.faults.push(BuildError::MergedMiddleware(other.info.name));
        }
        let merged = Merged { prefix, slots: other.lifespans.iter().map(|lifespan| lifespan.slot).collect() };
        let before = self.deferred.merged;
        self.deferred.merged += other.lifespans.len();
        self.lifespans.splice(before..before, other.lifespans);
        self.handlers.absorb(other.handlers, &mut self.deferred.faults);
        self.deferred.absorb(other.deferred, &merged);
        self
    }
}

impl Deferred {
    fn absorb(&mut self, other: Self, merged: &Merged<'_>) {
        self.faults.extend(other.faults);
        self.observers.extend(other.observers);
        self.logging |= other.logging;
        self.max_file_size = self.max_file_size.or(other.max_file_size);
        // A later hint takes precedence over an earlier one.
        self.hints.splice(0..0, other.hints);
        match (&self.tool_headers, other.tool_headers) {
            (Some(_), Some(_)) => self.faults.push(clash("look-up of", "tool headers")),
            (None, theirs @ Some(_)) => self.tool_headers = theirs,
            (_, None) => {}
        }
        match (&self.tasks, other.tasks) {
            (Some(_), Some(_)) => self.faults.push(clash("store of", "tasks")),
            (None, theirs @ Some(_)) => self.tasks = theirs,
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
        self.changes |= other.changes;
        match (&self.subscriptions, other.subscriptions) {
            (Some(_), Some(_)) => faults.push(clash("bus", "subscriptions")),
            (None, theirs @ Some(_)) => self.subscriptions = theirs,
            (_, None) => {}
        }
        // Both can declare the same name with the same settings.
        for (name, settings) in other.experimental {
            if self.experimental.get(&name).is_some_and(|known| *known != settings) {
                faults.push(clash("experimental capability", name.clone()));
            }
            self.experimental.insert(name, settings);
        }
        for (id, declared) in other.extensions {
            if self.extensions.get(&id).is_some_and(|known| *known != declared) {
                faults.push(clash("extension", id.clone()));
            }
            self.extensions.insert(id, declared);
        }
    }
}
