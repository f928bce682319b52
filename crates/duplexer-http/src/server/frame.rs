//! One owned JSON-RPC frame.

use bytestring::ByteString;
use duplexer_core::dispatch::Invocation;
use duplexer_core::error::CallError;
use duplexer_types::jsonrpc::{self, Malformed, RequestId};

/// One JSON-RPC frame of the client.
pub(super) enum Frame {
    Request(RequestId, Invocation),
    Notification(Invocation),
    /// The response to a request of the server.
    Response(RequestId, Result<ByteString, CallError>),
    ErrorWithoutId,
    Batch(ByteString),
}

impl Frame {
    /// Parses a frame. Its parts share the memory of `text`.
    pub(super) fn parse(text: &ByteString) -> Result<Self, Malformed> {
        Ok(match jsonrpc::read(text)? {
            jsonrpc::Frame::Request { id, call } => Self::Request(id, Invocation::of_frame(text, &call)),
            jsonrpc::Frame::Notification(call) => Self::Notification(Invocation::of_frame(text, &call)),
            jsonrpc::Frame::Success { id, result } => Self::Response(id, Ok(text.slice_ref(result))),
            jsonrpc::Frame::Failure { id: Some(id), error } => {
                let error = serde_json::from_str(error).map_or_else(CallError::Unexpected, CallError::Peer);
                Self::Response(id, Err(error))
            }
            jsonrpc::Frame::Failure { id: None, .. } => Self::ErrorWithoutId,
            jsonrpc::Frame::Batch(_) => Self::Batch(text.clone()),
        })
    }
}
