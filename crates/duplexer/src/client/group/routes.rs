//! Which server has which item of a group.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::dispatch::lock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }
}

/// Items of one kind by their names in the group: the index of the server, and the server's own name.
#[derive(Default)]
pub(super) struct Table(HashMap<String, (usize, String)>);

impl Table {
    /// Adds an item. Fails with the index of the server that has the name already.
    pub(super) fn insert(&mut self, name: String, server: usize, own: String) -> Result<(), usize> {
        if let Some((first, _)) = self.0.get(&name) {
            return Err(*first);
        }
        self.0.insert(name, (server, own));
        Ok(())
    }
}

/// Tables of the last listings. Their size is that of the lists, which clients bound.
#[derive(Default)]
pub(super) struct Routes(Mutex<[Table; 3]>);

impl Routes {
    pub(super) fn find(&self, kind: Kind, name: &str) -> Option<(usize, String)> {
        lock(&self.0)[kind as usize].0.get(name).cloned()
    }

    pub(super) fn replace(&self, kind: Kind, table: Table) {
        lock(&self.0)[kind as usize] = table;
    }

    /// Copies what is known of one server into a new table.
    pub(super) fn keep(&self, kind: Kind, server: usize, table: &mut Table) {
        for (name, (index, own)) in &lock(&self.0)[kind as usize].0 {
            if *index == server {
                // A name that another server has taken meanwhile is its name now.
                let _ = table.insert(name.clone(), server, own.clone());
            }
        }
    }
}
