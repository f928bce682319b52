//! What cannot be offered, and what to change.

/// Why something cannot be part of a server. The text says what to change.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// A name that clients could not use.
    #[error("the {kind} '{name}' cannot be called so: {reason}")]
    Name {
        /// What it is the name of.
        kind: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Two of a kind have the same name.
    #[error("there are two {kind}s '{name}': rename one of them")]
    Duplicate {
        /// What there are two of.
        kind: &'static str,
        /// The name they share.
        name: String,
    },
    /// A tool's schema cannot be used.
    #[error("the tool '{tool}' cannot be offered: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// A resource cannot be offered.
    #[error("the resource '{uri}' cannot be offered: {reason}")]
    Resource {
        /// The resource's URI, or its template.
        uri: String,
        /// What is wrong.
        reason: String,
    },
    /// A prompt cannot be offered.
    #[error("the prompt '{prompt}' cannot be offered: {reason}")]
    Prompt {
        /// The prompt.
        prompt: String,
        /// What is wrong.
        reason: String,
    },
}
