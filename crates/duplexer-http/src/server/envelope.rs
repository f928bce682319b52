//! The envelope era: every POST is independent, and the end of its response is the end of its request.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallContext, Message};
use duplexer_server::driver::serve_envelope;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion};
use http::StatusCode;

use super::exchange::{Exchange, ExchangeChannel};
use super::reply::{self, Rejection, Reply};
use super::request::{AdmittedRequest, RequestContext};
use super::request_headers::RequestHeaders;
use super::response::ResponseMode;
use super::route::{self, PostStep};
use super::rpc_response::{ErrorResponder, RpcResponse};
use duplexer_core::dispatch::Frame;

/// Serves the frame of a POST.
pub(super) fn serve(context: RequestContext, frame: Frame) -> Result<PostStep, Rejection> {
    match frame {
        Frame::Request(id, call) => {
            let (exchange, mode) = exchange(context, id, call)?;
            Ok(PostStep::Exchange(exchange, mode))
        }
        Frame::Notification(_) => notification(&context.request.headers).map(PostStep::Reply),
        Frame::Response(..) | Frame::ErrorWithoutId | Frame::Batch(_) => {
            Err(route::not_a_message(None).into())
        }
    }
}

/// Accepts and drops a notification: over HTTP this era has no notifications to the server.
fn notification(headers: &RequestHeaders) -> Result<Reply, Rejection> {
    unambiguous(headers.repeated().find(|name| *name == headers::PROTOCOL_VERSION), None)?;
    if let Values::One(version) = headers.version() {
        let version = String::from_utf8_lossy(version);
        let known = version.trim().parse::<ProtocolVersion>();
        if !known.is_ok_and(|version| version.era() == Era::Envelope) {
            let error = ErrorObject::unsupported_version(&ProtocolVersion::envelope_names(), &version);
            return Err(reply::rpc_error(StatusCode::BAD_REQUEST, None, &error).into());
        }
    }
    Ok(reply::empty(StatusCode::ACCEPTED))
}

fn exchange(
    context: RequestContext,
    id: RequestId,
    call: Message,
) -> Result<(Exchange, ResponseMode), Rejection> {
    let is_subscription = call.known() == Some(Method::SubscriptionsListen);
    if is_subscription && !context.request.accepts.events {
        return Err(reply::empty(StatusCode::NOT_ACCEPTABLE).into());
    }
    unambiguous(context.request.headers.repeated().next(), Some(&id))?;
    let transport = Arc::new(context.transport());
    let RequestContext { running, request: AdmittedRequest { permit, headers, caller, .. } } = context;
    let service = Arc::clone(permit.service());
    let (mode, permit) = if is_subscription {
        let full = || Rejection::new(reply::unavailable(Some(&id), "Too many subscriptions"));
        (ResponseMode::Stream, permit.subscribe().ok_or_else(full)?)
    } else {
        (service.config.responses.into(), permit)
    };
    let expires_at = caller.principal.as_ref().and_then(|principal| principal.expires_at);
    let channel = ExchangeChannel::new(service, mode.queue_state());
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&channel) as _);
    let (call, kept) = (Arc::new(call), Arc::clone(&headers));
    let errors = ErrorResponder { id, message: Arc::clone(&call), status_of: reply::status_of };
    let serve = |errors: ErrorResponder| -> BoxFuture<'static, RpcResponse> {
        Box::pin(async move {
            let look_up = |name: &str| headers.look_up(name);
            errors.render(serve_envelope(&running, cx, call, Some(&look_up), caller).await)
        })
    };
    // A call ends by itself, and its caller was authorized when it began. A subscription does not end.
    let exchange = Exchange::new(permit, channel, errors, serve)
        .with_headers(kept)
        .until(expires_at.filter(|_| is_subscription));
    Ok((exchange, mode))
}

fn unambiguous(repeated: Option<headers::Name>, id: Option<&RequestId>) -> Result<(), Rejection> {
    let Some(name) = repeated else { return Ok(()) };
    let text = format!("{} header appears more than once", name.lower);
    let error = ErrorObject::new(ErrorCode::HEADER_MISMATCH, text);
    Err(reply::rpc_error(StatusCode::BAD_REQUEST, id, &error).into())
}
