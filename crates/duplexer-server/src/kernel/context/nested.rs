//! Reading the server's own resources from within a handler.

use std::sync::Arc;

use duplexer_types::methods::{self, Request};
use duplexer_types::resource::ReadResourceResult;
use duplexer_types::wire::result_type;
use serde::Serialize;

use super::{Context, Scope};
use crate::kernel::runner;
use duplexer_core::dispatch::Message;
use duplexer_core::error::{BoxError, McpError};

/// Maximum depth of resources that read resources.
const MAX_DEPTH: u8 = 8;

/// Error of [`Context::read_resource`].
///
/// It does not become a protocol error of the calling handler: a tool reports [`ReadError::client_message`] to the
/// model, every other handler fails with an internal error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(McpError);

impl ReadError {
    /// Returns the error message that a client would get for the same read, if it would get one.
    pub fn client_message(&self) -> Option<&str> {
        if let McpError::Rpc(error) = &self.0 { Some(&error.message) } else { None }
    }
}

impl From<ReadError> for McpError {
    fn from(error: ReadError) -> Self {
        Self::Internal(BoxError::from(error))
    }
}

#[derive(Serialize)]
struct Params<'a> {
    uri: &'a str,
}

impl<S> Context<S> {
    /// Reads a resource of this server on behalf of the client, with the same visibility and principal. The read does
    /// not pass through middleware, because it is not a message.
    ///
    /// The read does not see the input responses and the state of this request, and reports no progress.
    ///
    /// # Errors
    ///
    /// Fails if the resource cannot be read, if resources read each other too deeply, and if the resource asks for
    /// input in the envelope era, where that would end the request.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ReadError> {
        let depth = self.scope.depth + 1;
        if depth > MAX_DEPTH {
            let text = format!("'{uri}' is read by a resource that is read by a resource, and so on");
            return Err(ReadError(McpError::internal(text)));
        }
        let outcome =
            runner::request(self.nested(uri, depth).map_err(ReadError)?).await.map_err(ReadError)?;
        if outcome.result_type() == result_type::INPUT_REQUIRED {
            let text = format!("'{uri}' asks for input, and is read by a handler");
            return Err(ReadError(McpError::internal(text)));
        }
        let unreadable = |_| ReadError(McpError::internal(format!("'{uri}' has no contents")));
        outcome.into_typed().map_err(unreadable)
    }

    /// Returns the context of a nested `resources/read` request.
    fn nested(&self, uri: &str, depth: u8) -> Result<Context, McpError> {
        let params = serde_json::to_string(&Params { uri }).map_err(McpError::internal)?;
        let message = Message::new(methods::ResourcesRead::METHOD.name(), Some(params.into()));
        let Scope { call, connection, running, principal, .. } = &*self.scope;
        let (connection, principal) = (Arc::clone(connection), principal.clone());
        let mut scope = Scope::new(call.clone(), connection, running.clone(), principal, Arc::new(message));
        scope.depth = depth;
        Ok(Context::new(Arc::new(scope)))
    }
}
