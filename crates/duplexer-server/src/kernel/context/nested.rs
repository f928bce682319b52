//! Reading the server's own resources from within a handler.

use std::sync::Arc;

use duplexer_types::methods::{self, Request};
use duplexer_types::resource::ReadResourceResult;
use duplexer_types::wire::result_type;
use serde::Serialize;

use super::{Context, Scope};
use crate::kernel::runner;
use duplexer_core::dispatch::Invocation;
use duplexer_core::error::{BoxError, McpError};

/// How deep a resource may read a resource that reads a resource.
const DEEPEST: u8 = 8;

/// Why a handler could not read a resource of its server. What its reader was meant to see is its text.
///
/// It is no error of the protocol for whoever called the handler: a tool tells the model the text, anything else has failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReadError(McpError);

impl ReadError {
    /// The text a client would be told that had read the resource itself, if it would be told any.
    pub fn client_message(&self) -> Option<&str> {
        if let McpError::Refused(error) = &self.0 { Some(&error.message) } else { None }
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
    /// Reads a resource of this server as the client could, with everything that follows from who it is. Middleware is not
    /// passed through again: this is no message of its own.
    ///
    /// The reading knows nothing of the answers and the state of this request, reports no progress, and cannot ask for input
    /// where that ends the request (envelope era): a resource that does is an error.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, ReadError> {
        let depth = self.scope.depth + 1;
        if depth > DEEPEST {
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

    /// A request of its own within this one.
    fn nested(&self, uri: &str, depth: u8) -> Result<Context, McpError> {
        let params = serde_json::to_string(&Params { uri }).map_err(McpError::internal)?;
        let message = Invocation::new(methods::ResourcesRead::METHOD.name(), Some(params.into()));
        let Scope { call, connection, running, principal, .. } = &*self.scope;
        let (connection, principal) = (Arc::clone(connection), principal.clone());
        let mut scope = Scope::new(call.clone(), connection, running.clone(), principal, &message);
        scope.depth = depth;
        Ok(Context::new(Arc::new(scope), Arc::new(message)))
    }
}
