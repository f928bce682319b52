//! The handshake era without sessions: every POST is served on a connection of its own, in the revision of its header.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallContext, CatchUnwind, Message};
use duplexer_server::driver::{serve_on, serve_one};
use duplexer_server::{ClientProfile, Connection};
use duplexer_types::headers::Values;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::{ProtocolVersion, feature};
use http::StatusCode;

use super::batch;
use crate::server::event_queue::QueueState;
use crate::server::exchange::{Exchange, ExchangeChannel};
use crate::server::reply::{self, Rejection};
use crate::server::request::{AdmittedRequest, RequestContext};
use crate::server::request_headers::RequestHeaders;
use crate::server::response::{ResponseMode, complete};
use crate::server::route::{self, PostStep};
use crate::server::rpc_response::{ErrorResponder, RpcResponse};
use duplexer_core::dispatch::Frame;

/// Serves the frame of a POST.
pub(super) fn serve(context: RequestContext, frame: Frame) -> Result<PostStep, Rejection> {
    let accepted = || reply::empty(StatusCode::ACCEPTED);
    match frame {
        Frame::Request(id, call) => {
            let mode = context.service().config.responses.into();
            Ok(PostStep::Exchange(exchange(context, id, call, mode), mode))
        }
        Frame::Notification(call) => Ok(PostStep::Boxed(Box::pin(async move {
            notification(context, call).await;
            Ok(accepted())
        }))),
        // The server sends no requests here, so no call waits for the response.
        Frame::Response(..) | Frame::ErrorWithoutId => Ok(PostStep::Reply(accepted())),
        Frame::Batch(text) if version(&context.request.headers).has(feature::BATCHES) => {
            Ok(PostStep::Boxed(Box::pin(async move {
                batch::serve(batch::Host::Stateless, context, &text).await
            })))
        }
        Frame::Batch(_) => Err(route::not_a_message(None).into()),
    }
}

/// Returns the revision of the request. The router has checked that the header, if present, names one of this era.
fn version(headers: &RequestHeaders) -> ProtocolVersion {
    let named = match headers.version() {
        Values::One(version) => {
            std::str::from_utf8(version).ok().and_then(|version| version.trim().parse().ok())
        }
        Values::Absent | Values::Several => None,
    };
    named.unwrap_or(ProtocolVersion::ASSUMED)
}

fn connection(context: &RequestContext) -> Arc<Connection> {
    let ready = Connection::ready(version(&context.request.headers), ClientProfile::UNKNOWN);
    Arc::new(ready.with_caller(context.request.caller.clone()))
}

fn exchange(context: RequestContext, id: RequestId, call: Message, mode: ResponseMode) -> Exchange {
    let (connection, transport) = (connection(&context), Arc::new(context.transport()));
    let RequestContext { running, request: AdmittedRequest { permit, headers, .. } } = context;
    let channel = ExchangeChannel::new(Arc::clone(permit.service()), mode.queue_state());
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&channel) as _);
    let call = Arc::new(call);
    let errors = ErrorResponder { id, message: Arc::clone(&call), status_of: |_| StatusCode::OK };
    let serve = |errors: ErrorResponder| -> BoxFuture<'static, RpcResponse> {
        Box::pin(async move { errors.render(serve_one(&running, connection, cx, call).await) })
    };
    Exchange::new(permit, channel, errors, serve).with_headers(headers)
}

/// Serves a request that is part of a batch.
pub(super) async fn request_in_batch(context: RequestContext, id: RequestId, call: Message) -> RpcResponse {
    complete(exchange(context, id.clone(), call, ResponseMode::Json), &id).await
}

/// Handles a notification before it is acknowledged, because nothing else could own its handler.
pub(super) async fn notification(context: RequestContext, call: Message) {
    let (connection, transport) = (connection(&context), Arc::new(context.transport()));
    let channel = ExchangeChannel::new(Arc::clone(context.service()), QueueState::Closed);
    let cx = CallContext::new(None, transport, channel);
    let running = context.running.clone();
    let handled = async move {
        let principal = context.request.caller.principal;
        serve_on(&running, &connection, principal, cx, call).await;
        connection.close().await;
    };
    if let Err(error) = CatchUnwind::of(Box::pin(handled)).await {
        tracing::error!(%error, "a notification's handler failed");
    }
}
