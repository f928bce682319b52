//! Failures of tools, reported to the model.

use std::fmt;

use crate::kernel::context::ReadError;
use duplexer_core::error::{BoxError, CallError, McpError};
use duplexer_types::content::Content;
use duplexer_types::json::Json;
use duplexer_types::tool::CallToolResult;

/// Failure of a tool. It is sent in the result with `isError: true`, so that the model can read it and retry.
///
/// Text, boxed errors and errors of the standard library convert with `?`. For an error type of your own, write
/// `impl From<MyError> for ToolError` and choose there what the model sees. For an error type of another crate, choose with
/// the methods of [`ResultExt`](crate::ResultExt): `or_show`, `or_show_text`, `or_hide`. `Result<T, Box<dyn Error + Send + Sync>>`
/// accepts every error and sends its text.
///
/// A fault of the *client* is not sent to the model: an [`McpError`] remains a protocol error after the conversion.
///
/// ```
/// # use duplexer_server::ResultExt;
/// # use duplexer_server::tool::ToolError;
/// fn read(path: &str) -> Result<String, ToolError> {
///     if path.is_empty() {
///         return Err(ToolError::new("The path is empty; give one such as notes.txt."));
///     }
///     // Only the log gets the cause.
///     std::fs::read_to_string(path).or_hide().map_err(Into::into)
/// }
///
/// assert_eq!(read("").unwrap_err().to_string(), "The path is empty; give one such as notes.txt.");
/// assert_eq!(read("/does/not/exist").unwrap_err().to_string(), "internal error");
/// ```
#[derive(Debug)]
pub struct ToolError(Box<Failure>);

#[derive(Debug)]
pub(crate) enum Failure {
    ToolResult(CallToolResult),
    Protocol(McpError),
}

impl ToolError {
    /// Creates a failure with a text for the model: what went wrong, and ideally how to correct it.
    pub fn new(text: impl Into<String>) -> Self {
        Self::from(CallToolResult::error(text))
    }

    /// Creates a failure with the text of an error, without its sources.
    pub fn of(error: impl fmt::Display) -> Self {
        Self::new(error.to_string())
    }

    /// Creates a failure with content for the model.
    pub fn content(content: impl Into<Vec<Content>>) -> Self {
        Self::from(CallToolResult::new(content).is_error(true))
    }

    /// Creates a failure whose cause stays private: it is logged in full, and the client receives an internal error.
    pub fn internal(cause: impl Into<BoxError>) -> Self {
        Self::from(McpError::internal(cause))
    }

    /// Adds structured details for programs.
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
                let texts: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
                f.write_str(&texts.join("\n"))
            }
            Failure::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ToolError {}

/// The result is sent with `isError: true`, whatever its own flag is.
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

/// The model receives the text that a client would receive. Any other error stays internal.
impl From<ReadError> for ToolError {
    fn from(error: ReadError) -> Self {
        match error.client_message() {
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

/// Boxed errors of this SDK keep their meaning. Other errors are sent as text.
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

macro_rules! from_text_of {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for ToolError {
            fn from(error: $error) -> Self {
                Self::of(error)
            }
        }
    )*};
}

from_text_of!(
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
