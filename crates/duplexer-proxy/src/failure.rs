//! What a client sees when the server behind the proxy does not answer.

use std::error::Error;

use duplexer_client::ClientError;
use duplexer_core::error::{CallError, Chain, McpError};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::text::shown;

/// Converts the failure of a forwarded request. Errors of the server pass unchanged.
pub(crate) fn of_call(error: CallError) -> McpError {
    match error {
        CallError::Rpc(error) | CallError::Unsupported(error) => McpError::Rpc(error),
        CallError::Timeout(text) => McpError::new(ErrorCode::REQUEST_TIMEOUT, text),
        other => lost(&other),
    }
}

/// Converts the failure of a request of the client library.
pub(crate) fn of_client(error: ClientError) -> McpError {
    match error {
        ClientError::Call(error) => of_call(error),
        other => lost(&other),
    }
}

/// Returns the error of a request whose connection to the server was lost. The request may have run.
fn lost(error: &(dyn Error + 'static)) -> McpError {
    let text = format!("The connection to the server behind this proxy was lost: {}", described(error));
    McpError::Rpc(ErrorObject::new(ErrorCode::CONNECTION_CLOSED, text))
}

/// Returns the error of a request that was not sent, because there is no session with the server.
pub(crate) fn unavailable(reason: &str) -> McpError {
    let text = format!("The server behind this proxy is not available: {reason}");
    // Not the code of a closed connection: the client's own connection is open.
    McpError::Rpc(ErrorObject::new(ErrorCode::INTERNAL_ERROR, text))
}

/// Returns the error of something that the era of the other side has no form for.
pub(crate) fn inexpressible(what: &str) -> McpError {
    let text =
        format!("The server behind this proxy speaks another era of the protocol, which has no {what}");
    McpError::Rpc(ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, text))
}

/// Returns an error with its causes, without characters that a terminal would interpret.
pub(crate) fn described(error: &(dyn Error + 'static)) -> String {
    shown(&Chain(error).to_string())
}
