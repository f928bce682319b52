//! Who an item is for and how much it matters.

use crate::model::{model, open_enum};

model! {
    /// Hints for the one who shows or uses an item.
    pub struct Annotations {} optional {
        /// Whom the item is for.
        audience: Vec<Role> = "audience",
        /// From 0 (may be left out) to 1 (cannot be left out).
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        priority: f64 = "priority",
        /// When the item last changed, in ISO 8601.
        last_modified: String = "lastModified" since V2025_06_18,
    }
}

open_enum! {
    /// Who speaks in a conversation, or listens.
    pub enum Role {
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
    }
}
