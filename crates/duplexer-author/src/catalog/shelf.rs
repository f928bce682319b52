//! Things of one kind, in the order they were put there, found by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CatalogError, Pages};

/// Something with a name of its own among its kind.
pub(crate) trait Item: Send + Sync + 'static {
    /// What it is, in an error's words.
    const KIND: &'static str;

    fn key(&self) -> &str;
}

/// Things of one kind. A change makes another shelf.
pub(crate) struct Shelf<T> {
    /// In order of their numbers, which never change and are never used again.
    items: Vec<(u64, Arc<T>)>,
    places: HashMap<String, usize>,
    next: u64,
    pub(crate) pages: Pages,
}

impl<T: Item> Shelf<T> {
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
        if self.places.contains_key(&name) {
            return Err(CatalogError::Duplicate { kind: T::KIND, name });
        }
        self.places.insert(name, self.items.len());
        self.items.push((self.next, Arc::new(item)));
        self.next += 1;
        self.pages = Pages::default();
        Ok(())
    }
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { items: Vec::new(), places: HashMap::new(), next: 0, pages: Pages::default() }
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            places: self.places.clone(),
            next: self.next,
            pages: Pages::default(),
        }
    }
}
