//! One JSON-RPC response message with the HTTP status it has as a body of its own.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_server::driver::PendingResponse;
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::{self, RequestId};
use http::{HeaderMap, StatusCode};

use super::reply::{self, Reply};

/// Maps an error to its HTTP status. The eras differ.
pub(super) type StatusOf = fn(&ErrorObject) -> StatusCode;

/// A response message and the status it has as a body of its own.
pub(super) struct RpcResponse {
    text: Bytes,
    status: StatusCode,
    failed: bool,
    refusal: Option<Refusal>,
}

/// What the head of a refusal says. The message itself was not handled.
enum Refusal {
    /// 403 with a `WWW-Authenticate` header, for a caller without the required scopes.
    Challenge(String),
    /// 429 with a `Retry-After` header.
    RetryAfter(Duration),
}

impl RpcResponse {
    pub(super) fn failure(id: &RequestId, error: &ErrorObject, status: StatusCode) -> Self {
        let mut text = Vec::with_capacity(128);
        jsonrpc::write_failure(&mut text, Some(id), error);
        Self { text: text.into(), status, failed: true, refusal: None }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn into_text(self) -> Bytes {
        self.text
    }

    /// Converts the response into a body of its own.
    pub(super) fn into_reply(self) -> Reply {
        self.into_reply_with(HeaderMap::new())
    }

    /// Does the same with an empty map for the headers of the reply.
    pub(super) fn into_reply_with(self, headers: HeaderMap) -> Reply {
        match self.refusal {
            None => reply::json_with(headers, self.status, self.text),
            Some(Refusal::Challenge(challenge)) => reply::challenged(self.text, &challenge),
            Some(Refusal::RetryAfter(time)) => reply::too_many_requests(self.text, time),
        }
    }

    /// Returns whether this is a refusal with a head of its own, which must not have been sent yet.
    pub(super) fn is_refusal(&self) -> bool {
        self.refusal.is_some()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }
}

/// Encodes the outcome of one request.
#[derive(Clone)]
pub(super) struct ErrorResponder {
    pub(super) id: RequestId,
    pub(super) message: Arc<Message>,
    pub(super) status_of: StatusOf,
}

impl ErrorResponder {
    /// Returns the response to a request that has failed.
    pub(super) fn response(&self, error: &McpError) -> RpcResponse {
        let object = error.to_wire(self.message.method());
        let mut response = self.failure(&object, (self.status_of)(&object));
        response.refusal = match error {
            McpError::Forbidden(challenge) => Some(Refusal::Challenge(challenge.header.clone())),
            McpError::Busy(busy) => Some(Refusal::RetryAfter(busy.retry_after)),
            _ => None,
        };
        response
    }

    pub(super) fn failure(&self, error: &ErrorObject, status: StatusCode) -> RpcResponse {
        RpcResponse::failure(&self.id, error, status)
    }

    /// Encodes an outcome. Runs within the panic isolation of the handler, because results serialize themselves with
    /// user code.
    pub(super) fn render(&self, outcome: Result<PendingResponse, McpError>) -> RpcResponse {
        let error = match outcome {
            Ok(shaped) => match written(|text| jsonrpc::write_success(text, &self.id, &shaped)) {
                Ok(text) => {
                    return RpcResponse { text, status: StatusCode::OK, failed: false, refusal: None };
                }
                Err(error) => McpError::internal(error),
            },
            Err(error) => error,
        };
        self.response(&error)
    }
}

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Longest text that is copied out of the buffer of the thread. Copying it costs less than a buffer of unknown size.
const MAX_COPIED: usize = 4096;

const FIRST_CAPACITY: usize = 512;

/// Returns what `write` writes. A short text gets a block of exactly its size, which can be shared without another one.
fn written<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    let mut buffer = BUFFER.take();
    buffer.clear();
    // Empty after a long text, which took the buffer along.
    buffer.reserve(FIRST_CAPACITY);
    write(&mut buffer)?;
    if buffer.len() > MAX_COPIED {
        return Ok(buffer.into());
    }
    let text = Bytes::copy_from_slice(&buffer);
    BUFFER.set(buffer);
    Ok(text)
}
