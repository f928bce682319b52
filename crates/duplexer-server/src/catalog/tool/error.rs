//! Why a tool failed, into_outcome to the model.

use std::fmt;

use crate::kernel::context::ReadError;
use duplexer_core::error::{BoxError, CallError, McpError};
use duplexer_types::content::Content;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;

/// A tool's failure. The model reads it and can do better: it travels in the result, with `isError: true`.
///
/// Texts, boxed errors and the errors of the standard library become one by `?`; for an error type of your own, write
/// `impl From<MyError> for ToolError`, which is where you decide what the model gets to see. A
/// `Result<T, Box<dyn Error + Send + Sync>>` takes everything, and shows its text.
///
/// What is the fault of the *client* is not for the model: an [`McpError`] stays a protocol error when it becomes one.
#[derive(Debug)]
pub struct ToolError(Box<Failure>);

#[derive(Debug)]
pub(crate) enum Failure {
    ToolResult(CallToolResult),
    Protocol(McpError),
}

impl ToolError {
    /// Tells the model what went wrong, and best also what to do about it.
    pub fn new(text: impl Into<String>) -> Self {
        Self::from(CallToolResult::error(text))
    }

    /// Shows an error's text, without its causes.
    pub fn of(error: impl fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// More than a text.
    pub fn content(content: impl Into<Vec<Content>>) -> Self {
        Self::from(CallToolResult::new(content).is_error(true))
    }

    /// A failure nobody outside should know the cause of: logged in full, and an internal error for the client.
    pub fn internal(cause: impl Into<BoxError>) -> Self {
        Self::from(McpError::internal(cause))
    }

    /// The same with details for programs.
    #[must_use]
    pub fn details(mut self, details: impl Into<Json>) -> Self {
        if let Failure::ToolResult(result) = &mut *self.0 {
            result.structured_content = Some(details.into());
        }
        self
    }

    pub(crate) fn into_failure(self) -> Failure {
        *self.0
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Failure::ToolResult(result) => {
                let words: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
                f.write_str(&words.join("\n"))
            }
            Failure::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ToolError {}

/// A result made by hand; it counts as an error whatever it says.
impl From<CallToolResult> for ToolError {
    fn from(result: CallToolResult) -> Self {
        Self(Box::new(Failure::ToolResult(result.is_error(true))))
    }
}

impl From<McpError> for ToolError {
    fn from(error: McpError) -> Self {
        Self(Box::new(Failure::Protocol(error)))
    }
}

impl From<CallError> for ToolError {
    fn from(error: CallError) -> Self {
        McpError::from(error).into()
    }
}

/// The model is into_outcome what a client would have been; everything else has failed.
impl From<ReadError> for ToolError {
    fn from(error: ReadError) -> Self {
        match error.told() {
            Some(text) => Self::new(text),
            None => McpError::from(error).into(),
        }
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// What is boxed keeps its meaning; of other errors the text is shown.
impl From<BoxError> for ToolError {
    fn from(error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(own) => return *own,
            Err(error) => error,
        };
        let error = match error.downcast::<McpError>() {
            Ok(protocol) => return (*protocol).into(),
            Err(error) => error,
        };
        match error.downcast::<CallError>() {
            Ok(call) => (*call).into(),
            Err(error) => Self::of(error),
        }
    }
}

macro_rules! shown {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for ToolError {
            fn from(error: $error) -> Self {
                Self::of(error)
            }
        }
    )*};
}

shown!(
    std::io::Error,
    fmt::Error,
    std::num::ParseIntError,
    std::num::ParseFloatError,
    std::num::TryFromIntError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    std::time::SystemTimeError,
    serde_json::Error,
    crate::catalog::CatalogError,
    crate::catalog::NotInCatalog,
);
