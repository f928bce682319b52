//! Response driver of both eras: polls a handler and chooses between one JSON body and an SSE stream.
//!
//! The first poll needs no timer, because most handlers finish in it. A handler that is still pending is polled beside
//! two timers: `sse_after`, and the abort at the end of the shutdown grace.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::RequestId;
use http::{HeaderMap, StatusCode};
use tokio::time::sleep;

use super::body::ResponseBody;
use super::config::Responses;
use super::event_queue::QueueState;
use super::reply::{self, Reply};
use super::rpc_response::RpcResponse;
use super::service_state::ServiceState;

/// Form of the response to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseMode {
    /// One JSON body.
    Json,
    /// One JSON body; a stream if there are events before the response, or after `sse_after`.
    Either,
    /// A stream, unless the request fails before its first event.
    Stream,
}

impl From<Responses> for ResponseMode {
    fn from(responses: Responses) -> Self {
        match responses {
            Responses::Streaming => Self::Either,
            Responses::JsonOnly => Self::Json,
        }
    }
}

impl ResponseMode {
    /// Returns whether events can be sent before the response.
    pub(super) fn queue_state(self) -> QueueState {
        if self == Self::Json { QueueState::Closed } else { QueueState::Open }
    }
}

/// First part of a response.
pub(super) enum ResponseStart {
    /// A body of its own, and all there is.
    Response(RpcResponse),
    /// A stream. Everything so far is queued in the source.
    Stream,
}

/// A request in flight whose response has not started.
pub(super) trait ResponseSource: Sized {
    fn service(&self) -> &Arc<ServiceState>;

    /// Polls the handler, and registers the task for events that are queued elsewhere.
    fn poll_start(&mut self, cx: &mut Context<'_>, mode: ResponseMode) -> Poll<ResponseStart>;

    /// Drops the handler and returns the error response. `None` if the source handles the abort in [`Self::poll_start`].
    fn abort(&mut self) -> Option<RpcResponse>;

    /// Continues as the body of an SSE response.
    fn into_body(self) -> ResponseBody;

    /// Ends after the response, and returns an empty map for its headers.
    fn into_headers(self) -> HeaderMap;
}

/// Drives a request until its response has started.
pub(super) async fn respond<S: ResponseSource>(mut source: S, mode: ResponseMode) -> Reply {
    let first = poll_fn(|cx| Poll::Ready(source.poll_start(cx, mode))).await;
    let start = match first {
        Poll::Ready(start) => start,
        Poll::Pending => Box::pin(wait(&mut source, mode)).await,
    };
    match start {
        ResponseStart::Response(response) => response.into_reply_with(source.into_headers()),
        ResponseStart::Stream => reply::events(source.into_body()),
    }
}

/// Drives a request in [`ResponseMode::Json`] to its end, for a response that is part of another body.
pub(super) async fn complete<S: ResponseSource>(mut source: S, id: &RequestId) -> RpcResponse {
    match wait(&mut source, ResponseMode::Json).await {
        ResponseStart::Response(response) => response,
        // Does not occur in this mode.
        ResponseStart::Stream => RpcResponse::failure(id, &ErrorObject::internal(), StatusCode::OK),
    }
}

/// Drives a request that is pending, with its timers.
async fn wait<S: ResponseSource>(source: &mut S, mode: ResponseMode) -> ResponseStart {
    let service = Arc::clone(source.service());
    let mut sse_after = pin!(sleep(service.config.timing.sse_after));
    let mut abort = pin!(service.abort.cancelled());
    let mut is_aborted = false;
    poll_fn(|cx| {
        if let Poll::Ready(start) = source.poll_start(cx, mode) {
            return Poll::Ready(start);
        }
        if !is_aborted && abort.as_mut().poll(cx).is_ready() {
            is_aborted = true;
            if let Some(response) = source.abort() {
                return Poll::Ready(ResponseStart::Response(response));
            }
        }
        if mode != ResponseMode::Json && sse_after.as_mut().poll(cx).is_ready() {
            return Poll::Ready(ResponseStart::Stream);
        }
        Poll::Pending
    })
    .await
}
