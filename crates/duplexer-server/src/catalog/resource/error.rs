//! Why a resource could not be read.

use crate::kernel::context::ReadError;
use duplexer_core::error::{BoxError, McpError};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::version::{ProtocolVersion, feature};
use serde_json::json;

/// Why a resource could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// There is no such thing. (A file that does not exist is one.)
    #[error("not found")]
    NotFound,
    /// The client is told this text.
    #[error("{0}")]
    ClientMessage(String),
    /// The cause is logged, and nobody else learns of it.
    #[error("the resource could not be read")]
    Internal(#[source] BoxError),
    /// An error of the protocol.
    #[error(transparent)]
    Protocol(#[from] McpError),
}

impl ResourceError {
    /// Tells the client this.
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
                tracing::error!(uri, %cause, "a resource could not be read");
                failed(format!("Error reading resource {uri}"))
            }
            Self::Protocol(error) => error,
        }
    }
}

/// There is no such resource, in the words of the revision.
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
