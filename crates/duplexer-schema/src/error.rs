//! The reason why a schema cannot be used.

use std::fmt;

/// The reason why a schema cannot be compiled, and its place in the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    location: String,
    message: String,
}

impl CompileError {
    pub(crate) fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self { location: location.into(), message: message.into() }
    }

    /// Returns the place in the schema: a JSON pointer, behind the URI of its document if that is not the root.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns what is wrong there.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = if self.location.is_empty() { "(the whole)" } else { &self.location };
        write!(f, "{location}: {}", self.message)
    }
}

impl std::error::Error for CompileError {}
