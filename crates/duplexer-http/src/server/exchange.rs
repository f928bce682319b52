//! One request that owns its handler: the envelope era, and the handshake era without sessions.
//!
//! The task that waits for the response polls the handler. No task and no channel are involved: an SSE body takes the
//! exchange over, and a client that disconnects drops it.

mod channel;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use duplexer_core::dispatch::{BoxFuture, CatchUnwind};
use duplexer_types::error::ErrorObject;
use http::HeaderMap;

use super::body::ResponseBody;
use super::request_headers::{self, RequestHeaders};
use super::response::{ResponseMode, ResponseSource, ResponseStart};
use super::rpc_response::{ErrorResponder, RpcResponse};
use super::service_state::{RequestPermit, ServiceState};

pub(super) use channel::ExchangeChannel;

/// A request in flight and its handler.
pub(super) struct Exchange {
    handler: Handler,
    channel: Arc<ExchangeChannel>,
    permit: RequestPermit,
    errors: ErrorResponder,
    headers: Option<Arc<RequestHeaders>>,
    /// Time at which the stream of a subscription ends.
    expires_at: Option<SystemTime>,
}

enum Handler {
    Running(CatchUnwind<RpcResponse>),
    /// The handler has finished. Its response is sent on the stream, after the queued events.
    Finished(Box<RpcResponse>),
    Gone,
}

impl Exchange {
    /// Creates an exchange. `serve` encodes its outcome itself: one future is smaller than one within another.
    pub(super) fn new(
        permit: RequestPermit,
        channel: Arc<ExchangeChannel>,
        errors: ErrorResponder,
        serve: impl FnOnce(ErrorResponder) -> BoxFuture<'static, RpcResponse>,
    ) -> Self {
        let handler = Handler::Running(CatchUnwind::of(serve(errors.clone())));
        Self { handler, channel, permit, errors, headers: None, expires_at: None }
    }

    /// Keeps the headers of the request, whose map the response reuses.
    pub(super) fn with_headers(mut self, headers: Arc<RequestHeaders>) -> Self {
        self.headers = Some(headers);
        self
    }

    /// Ends the stream at a time: when the token of a subscription expires.
    pub(super) fn until(mut self, expires_at: Option<SystemTime>) -> Self {
        self.expires_at = expires_at;
        self
    }

    pub(super) fn expires_at(&self) -> Option<SystemTime> {
        self.expires_at
    }

    pub(super) fn channel(&self) -> &ExchangeChannel {
        &self.channel
    }

    /// Polls the handler. Pending once the response has been returned.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<RpcResponse> {
        let response = match &mut self.handler {
            Handler::Running(handler) => match Pin::new(handler).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(response)) => response,
                Poll::Ready(Err(panicked)) => self.errors.response(&panicked),
            },
            Handler::Finished(_) | Handler::Gone => {
                let Handler::Finished(response) = std::mem::replace(&mut self.handler, Handler::Gone) else {
                    return Poll::Pending;
                };
                *response
            }
        };
        self.handler = Handler::Gone;
        Poll::Ready(response)
    }

    /// Drops the handler and returns the error response: the shutdown grace has ended.
    pub(super) fn abort_handler(&mut self) -> RpcResponse {
        self.handler = Handler::Gone;
        let closed = ErrorObject::shutting_down();
        self.errors.failure(&closed, (self.errors.status_of)(&closed))
    }
}

impl ResponseSource for Exchange {
    fn service(&self) -> &Arc<ServiceState> {
        self.permit.service()
    }

    fn poll_start(&mut self, cx: &mut Context<'_>, mode: ResponseMode) -> Poll<ResponseStart> {
        let Poll::Ready(response) = self.poll(cx) else {
            return self.channel.poll_readable(cx).map(|()| ResponseStart::Stream);
        };
        let is_body = match mode {
            ResponseMode::Json => true,
            ResponseMode::Either => self.channel.is_empty(),
            ResponseMode::Stream => response.has_failed() && self.channel.is_empty(),
        };
        if is_body {
            return Poll::Ready(ResponseStart::Response(response));
        }
        self.handler = Handler::Finished(Box::new(response));
        Poll::Ready(ResponseStart::Stream)
    }

    fn abort(&mut self) -> Option<RpcResponse> {
        Some(self.abort_handler())
    }

    fn into_body(mut self) -> ResponseBody {
        self.headers = None;
        ResponseBody::exchange(self)
    }

    fn into_headers(mut self) -> HeaderMap {
        request_headers::reusable(self.headers.take())
    }
}

impl Drop for Exchange {
    /// Discards events that are sent after the end of the response.
    fn drop(&mut self) {
        // Usually the handler has finished and no other task holds the channel.
        if matches!(self.handler, Handler::Running(_)) || Arc::strong_count(&self.channel) > 1 {
            self.channel.close();
        }
    }
}
