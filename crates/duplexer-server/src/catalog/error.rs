//! Faults of items that are registered with a server.

/// Fault of an item that is registered with a server. Its text says what to change.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The name is not valid in the protocol.
    #[error("the {kind} '{name}' cannot be called so: {reason}")]
    Name {
        /// Kind of the item.
        kind: &'static str,
        /// The name.
        name: String,
        /// What is wrong with the name.
        reason: String,
    },
    /// Two items of a kind have the same name.
    #[error("there are two {kind}s '{name}': rename one of them")]
    Duplicate {
        /// Kind of the items.
        kind: &'static str,
        /// Their common name.
        name: String,
    },
    /// The schema or a setting of a tool is invalid.
    #[error("the tool '{tool}' cannot be offered: {reason}")]
    Schema {
        /// Name of the tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// A resource is invalid.
    #[error("the resource '{uri}' cannot be offered: {reason}")]
    Resource {
        /// The resource's URI, or its template.
        uri: String,
        /// What is wrong.
        reason: String,
    },
    /// A prompt is invalid.
    #[error("the prompt '{prompt}' cannot be offered: {reason}")]
    Prompt {
        /// Name of the prompt.
        prompt: String,
        /// What is wrong.
        reason: String,
    },
}
