//! Where a server may work, as the client suggests it.

use crate::json::JsonObject;
use crate::model::model;

model! {
    /// A place to work in.
    pub struct Root {
        /// A `file:` URI.
        uri: String = "uri",
    } optional {
        /// For people.
        name: String = "name",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// The client's roots.
    pub result ListRootsResult meta until V2025_11_25 {
        /// All of them.
        roots: Vec<Root> = "roots",
    }
}
