//! Items of one kind, in the order of their registration and indexed by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CatalogError, CatalogItem, Pages};

/// An item with a name that is unique among its kind.
pub(crate) trait Item: Send + Sync + 'static {
    /// The kind, as errors name it.
    const KIND: &'static str;

    fn key(&self) -> &str;

    /// Returns the number of the scope that the item belongs to.
    fn scope(&self) -> usize;

    /// Applies a visibility filter that does not know the first `prefix` bytes of the name.
    fn is_visible(&self, prefix: usize, visible: &dyn Fn(CatalogItem<'_>) -> bool) -> bool;

    /// Makes the item part of another server: its scope number grows, and its name gets a prefix.
    fn merge(&mut self, scope_offset: usize, prefix: &str) -> Result<(), CatalogError>;
}

/// Items of one kind. Edits modify a clone; the items themselves are shared.
pub(crate) struct ItemTable<T> {
    /// Sorted by number. Numbers never change and are never reused.
    items: Vec<(u64, Arc<T>)>,
    index: HashMap<String, usize, foldhash::fast::RandomState>,
    disabled: Vec<(u64, Arc<T>)>,
    next: u64,
    pub(crate) pages: Pages,
}

impl<T: Item> ItemTable<T> {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.index.get(key).and_then(|at| self.items.get(*at)).map(|(_, item)| item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the items with a number above `after`.
    pub(crate) fn after(&self, after: Option<u64>) -> &[(u64, Arc<T>)] {
        let start = after.map_or(0, |after| self.items.partition_point(|(number, _)| *number <= after));
        self.items.get(start..).unwrap_or_default()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter().map(|(_, item)| item)
    }

    /// Adds an item. Fails if its name exists, enabled or not.
    pub(crate) fn add(&mut self, item: T) -> Result<(), CatalogError> {
        let name = item.key().to_owned();
        if self.index.contains_key(&name) || self.disabled.iter().any(|(_, item)| item.key() == name) {
            return Err(CatalogError::Duplicate { kind: T::KIND, name });
        }
        self.index.insert(name, self.items.len());
        self.items.push((self.next, Arc::new(item)));
        self.next += 1;
        self.pages = Pages::default();
        Ok(())
    }

    /// Appends the items of another server.
    pub(crate) fn merge_from(
        &mut self,
        other: Self,
        scope_offset: usize,
        prefix: &str,
    ) -> Result<(), CatalogError> {
        // Items of a server that is not built yet are not shared, so each `Arc` unwraps.
        let items = other.items.into_iter().filter_map(|(_, item)| Arc::into_inner(item));
        for mut item in items {
            item.merge(scope_offset, prefix)?;
            self.add(item)?;
        }
        Ok(())
    }

    /// Replaces the item of the same name, or adds the item.
    pub(crate) fn replace(&mut self, item: T) -> Result<(), CatalogError> {
        if let Some((_, old)) = self.index.get(item.key()).and_then(|at| self.items.get_mut(*at)) {
            *old = Arc::new(item);
        } else {
            self.disabled.retain(|(_, hidden)| hidden.key() != item.key());
            self.add(item)?;
        }
        self.pages = Pages::default();
        Ok(())
    }

    /// Removes an item, enabled or not. Returns whether it existed.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let before = self.items.len() + self.disabled.len();
        self.items.retain(|(_, item)| item.key() != key);
        self.disabled.retain(|(_, item)| item.key() != key);
        self.rebuild_index();
        self.items.len() + self.disabled.len() < before
    }

    /// Disables an item. Returns whether it is disabled now.
    pub(crate) fn disable(&mut self, key: &str) -> bool {
        if let Some(at) = self.index.get(key).copied() {
            let hidden = self.items.remove(at);
            self.disabled.push(hidden);
            self.rebuild_index();
        }
        self.disabled.iter().any(|(_, item)| item.key() == key)
    }

    /// Enables an item again, at its old position. Returns whether it is enabled now.
    pub(crate) fn enable(&mut self, key: &str) -> bool {
        if let Some(at) = self.disabled.iter().position(|(_, item)| item.key() == key) {
            let shown = self.disabled.remove(at);
            let position = self.items.partition_point(|(number, _)| *number < shown.0);
            self.items.insert(position, shown);
            self.rebuild_index();
        }
        self.index.contains_key(key)
    }

    fn rebuild_index(&mut self) {
        let positions = self.items.iter().enumerate();
        self.index = positions.map(|(at, (_, item))| (item.key().to_owned(), at)).collect();
        self.pages = Pages::default();
    }
}

impl<T> Default for ItemTable<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            index: HashMap::default(),
            disabled: Vec::new(),
            next: 0,
            pages: Pages::default(),
        }
    }
}

impl<T> Clone for ItemTable<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            index: self.index.clone(),
            disabled: self.disabled.clone(),
            next: self.next,
            pages: Pages::default(),
        }
    }
}
