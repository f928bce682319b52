//! Lists in pages. A page without `nextCursor` is the last; the empty string is a cursor like any other.

use crate::model::model;

model! {
    /// Asks for a page of a list: the first, unless a cursor says which.
    pub struct PaginatedParams {} optional {
        /// Where the page before ended.
        cursor: String = "cursor",
    }
}
