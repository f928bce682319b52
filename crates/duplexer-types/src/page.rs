//! Pagination. A page without `nextCursor` is the last; the empty string is a cursor like any other.

use crate::model::model;

model! {
    /// Parameters of a [paginated](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination) request: `tools/list`, `resources/list`,
    /// `resources/templates/list`, `prompts/list`, `skills/list`, `tasks/list`.
    ///
    /// ```
    /// use duplexer_types::page::PaginatedParams;
    ///
    /// let next = PaginatedParams::new().cursor("from the page before");
    /// assert_eq!(next.cursor.as_deref(), Some("from the page before"));
    /// ```
    #[doc(alias = "tools/list")]
    #[doc(alias = "resources/list")]
    #[doc(alias = "resources/templates/list")]
    #[doc(alias = "prompts/list")]
    #[doc(alias = "skills/list")]
    #[doc(alias = "tasks/list")]
    pub struct PaginatedParams {} optional {
        /// Cursor from the `nextCursor` of the previous page. Absent for the first page.
        cursor: String = "cursor",
    }
}
