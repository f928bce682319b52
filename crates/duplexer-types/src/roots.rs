//! Roots: directories and files that a client exposes to servers.

use crate::json::JsonObject;
use crate::model::model;

model! {
    /// [Root](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#root) directory or file that a server may work on.
    ///
    /// ```
    /// use duplexer_types::roots::{ListRootsResult, Root};
    ///
    /// let shared = ListRootsResult::new([Root::new("file:///work").name("Work")]);
    /// assert_eq!(shared.roots[0].uri, "file:///work");
    /// ```
    pub struct Root {
        /// URI of the root; its scheme is `file`.
        uri: String = "uri",
    } optional {
        /// Display name.
        name: String = "name",
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Result of a [`roots/list`](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#listing-roots) request.
    ///
    /// ```
    /// use duplexer_types::roots::{ListRootsResult, Root};
    ///
    /// let shared = ListRootsResult::new([Root::new("file:///work"), Root::new("file:///notes")]);
    /// assert_eq!(shared.roots.len(), 2);
    /// ```
    #[doc(alias = "roots/list")]
    pub result ListRootsResult meta until V2025_11_25 {
        /// The roots of the client.
        roots: Vec<Root> = "roots",
    }
}
