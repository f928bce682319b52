//! Failures of reading a resource.

use crate::kernel::context::ReadError;
use duplexer_core::error::{BoxError, Chain, McpError};
use duplexer_core::stderr_log;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::version::{ProtocolVersion, feature};
use serde_json::json;

/// Failure of reading a resource.
///
/// ```
/// # use duplexer_server::resource::{Resource, ResourceError};
/// # use serde::Deserialize;
/// #[derive(Deserialize)]
/// struct User {
///     id: u32,
/// }
///
/// let user: Resource<()> = Resource::template("users://{id}", |User { id }| async move {
///     if id == 1 { Ok("Ada") } else { Err(ResourceError::NotFound) }
/// });
/// # let _ = user;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The resource does not exist. (A missing file converts into this.)
    #[error("not found")]
    NotFound,
    /// Failure with a text that is sent to the client.
    #[error("{0}")]
    ClientMessage(String),
    /// Failure whose cause is logged and not sent to the client.
    #[error("the resource could not be read")]
    Internal(#[source] BoxError),
    /// A protocol error.
    #[error(transparent)]
    Protocol(#[from] McpError),
}

impl ResourceError {
    /// Creates a failure with a text that is sent to the client.
    pub fn new(text: impl Into<String>) -> Self {
        Self::ClientMessage(text.into())
    }

    pub(crate) fn into_mcp(self, uri: &str, version: ProtocolVersion) -> McpError {
        let failed = |text: String| {
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
            McpError::from(error.with_data(json!({ "uri": uri })))
        };
        match self {
            Self::NotFound => unknown(uri, version),
            Self::ClientMessage(text) => failed(text),
            Self::Internal(cause) => {
                tracing::error!(uri, cause = %Chain(&*cause), "a resource could not be read");
                stderr_log::error(format_args!("the resource {uri} could not be read: {}", Chain(&*cause)));
                failed(format!("Error reading resource {uri}"))
            }
            Self::Protocol(error) => error,
        }
    }
}

/// Returns the error for an unknown resource, with the revision-specific code.
pub(crate) fn unknown(uri: &str, version: ProtocolVersion) -> McpError {
    let code = if version.has(feature::RESOURCE_NOT_FOUND_CODE) {
        ErrorCode::RESOURCE_NOT_FOUND
    } else {
        ErrorCode::INVALID_PARAMS
    };
    ErrorObject::new(code, format!("Unknown resource: {uri}")).with_data(json!({ "uri": uri })).into()
}

impl From<std::io::Error> for ResourceError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::NotFound {
            Self::NotFound
        } else {
            Self::Internal(error.into())
        }
    }
}

impl From<ReadError> for ResourceError {
    fn from(error: ReadError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<BoxError> for ResourceError {
    fn from(error: BoxError) -> Self {
        Self::Internal(error)
    }
}
