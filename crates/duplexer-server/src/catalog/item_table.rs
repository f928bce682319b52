//! Things of one kind, in the order they were put there, found by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CatalogError, CatalogItem, Pages};

/// Something with a name of its own among its kind.
pub(crate) trait Item: Send + Sync + 'static {
    /// What it is, in an error's words.
    const KIND: &'static str;

    fn key(&self) -> &str;

    /// Which server it belongs to.
    fn scope(&self) -> usize;

    /// What those make of it who decide about visibility, and who do not know the first `prefix` bytes of its name.
    fn offered(&self, prefix: usize, decide: &dyn Fn(CatalogItem<'_>) -> bool) -> bool;

    /// Becomes part of another server: its scope has scope_offset, and names get a prefix.
    fn merge(&mut self, scope_offset: usize, prefix: &str) -> Result<(), CatalogError>;
}

/// Things of one kind. A change makes another item_table.
pub(crate) struct ItemTable<T> {
    /// In order of their numbers, which never change and are never used again.
    items: Vec<(u64, Arc<T>)>,
    places: HashMap<String, usize, foldhash::fast::RandomState>,
    /// What is hidden for the time being.
    disabled: Vec<(u64, Arc<T>)>,
    next: u64,
    pub(crate) pages: Pages,
}

impl<T: Item> ItemTable<T> {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.places.get(key).and_then(|at| self.items.get(*at)).map(|(_, item)| item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Numbers and items after the one numbered `after`.
    pub(crate) fn after(&self, after: Option<u64>) -> &[(u64, Arc<T>)] {
        let start = after.map_or(0, |after| self.items.partition_point(|(number, _)| *number <= after));
        self.items.get(start..).unwrap_or_default()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter().map(|(_, item)| item)
    }

    /// Puts one more thing there, if its name is free.
    pub(crate) fn add(&mut self, item: T) -> Result<(), CatalogError> {
        let name = item.key().to_owned();
        if self.places.contains_key(&name) || self.disabled.iter().any(|(_, item)| item.key() == name) {
            return Err(CatalogError::Duplicate { kind: T::KIND, name });
        }
        self.places.insert(name, self.items.len());
        self.items.push((self.next, Arc::new(item)));
        self.next += 1;
        self.pages = Pages::default();
        Ok(())
    }

    /// Puts what another server offers behind what is there.
    pub(crate) fn merge_from(
        &mut self,
        other: Self,
        scope_offset: usize,
        prefix: &str,
    ) -> Result<(), CatalogError> {
        // While a server is described, nobody else holds what it offers.
        let items = other.items.into_iter().filter_map(|(_, item)| Arc::into_inner(item));
        for mut item in items {
            item.merge(scope_offset, prefix)?;
            self.add(item)?;
        }
        Ok(())
    }

    /// Puts a thing in the place of the one with its name, or adds it.
    pub(crate) fn replace(&mut self, item: T) -> Result<(), CatalogError> {
        if let Some((_, old)) = self.places.get(item.key()).and_then(|at| self.items.get_mut(*at)) {
            *old = Arc::new(item);
        } else {
            self.disabled.retain(|(_, hidden)| hidden.key() != item.key());
            self.add(item)?;
        }
        self.pages = Pages::default();
        Ok(())
    }

    /// Takes a thing away, hidden or not. Whether it was there.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let before = self.items.len() + self.disabled.len();
        self.items.retain(|(_, item)| item.key() != key);
        self.disabled.retain(|(_, item)| item.key() != key);
        self.rebuild_index();
        self.items.len() + self.disabled.len() < before
    }

    /// Hides a thing. Whether it is hidden now.
    pub(crate) fn disable(&mut self, key: &str) -> bool {
        if let Some(at) = self.places.get(key).copied() {
            let hidden = self.items.remove(at);
            self.disabled.push(hidden);
            self.rebuild_index();
        }
        self.disabled.iter().any(|(_, item)| item.key() == key)
    }

    /// Shows a hidden thing again, in its old place. Whether it is shown now.
    pub(crate) fn enable(&mut self, key: &str) -> bool {
        if let Some(at) = self.disabled.iter().position(|(_, item)| item.key() == key) {
            let shown = self.disabled.remove(at);
            let place = self.items.partition_point(|(number, _)| *number < shown.0);
            self.items.insert(place, shown);
            self.rebuild_index();
        }
        self.places.contains_key(key)
    }

    fn rebuild_index(&mut self) {
        let places = self.items.iter().enumerate();
        self.places = places.map(|(at, (_, item))| (item.key().to_owned(), at)).collect();
        self.pages = Pages::default();
    }
}

impl<T> Default for ItemTable<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: HashMap::default(),
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
            places: self.places.clone(),
            disabled: self.disabled.clone(),
            next: self.next,
            pages: Pages::default(),
        }
    }
}
