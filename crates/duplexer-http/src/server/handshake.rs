//! The handshake era: with sessions, stateless, or disabled.

mod batch;
mod stateless;

use std::sync::Arc;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::methods::Method;
use duplexer_types::version::{ProtocolVersion, feature};
use http::StatusCode;

use super::config::Handshake;
use super::reply::{self, Rejection, Reply};
use super::request::{AdmittedRequest, RequestContext};
use super::route::{self, PostStep};
use super::session::{self, Ending, Session, Sessions, StreamRequest};
use duplexer_core::dispatch::{BoxFuture, Frame, Message};

/// Serves the frame of a POST.
pub(super) fn post(context: RequestContext, frame: Frame) -> Result<PostStep, Rejection> {
    match context.service().config.handshake {
        Handshake::Sessions => in_session(context, frame),
        Handshake::Stateless => stateless::serve(context, frame),
        Handshake::Disabled => Err(not_served(&frame).into()),
    }
}

fn in_session(context: RequestContext, frame: Frame) -> Result<PostStep, Rejection> {
    let boxed: BoxFuture<'static, _> = match frame {
        // A session id in the request is ignored: the request opens a new session.
        Frame::Request(id, call) if call.known() == Some(Method::Initialize) => {
            Box::pin(session::initialize(context, id, call))
        }
        // Nothing is awaited before the handler.
        Frame::Request(id, call) if context.service().stores.is_none() => {
            let admitted = session::admit_local(&context, session_id(&context)?);
            let session = admitted.map_err(|reason| reason.reply(Some(&id)))?;
            let (call, mode) = session::local_call(session, context, &id, call)?;
            return Ok(PostStep::Session(call, mode));
        }
        Frame::Request(id, call) => Box::pin(stored_call(context, id, call)),
        frame => Box::pin(other_message(context, frame)),
    };
    Ok(PostStep::Boxed(boxed))
}

/// Serves a request of a session whose events, or whose state, are in a store.
async fn stored_call(context: RequestContext, id: RequestId, call: Message) -> Result<Reply, Rejection> {
    let admitted = session::admit_call(&context, session_id(&context)?, &id).await;
    let (session, admitted) = admitted.map_err(|reason| reason.reply(Some(&id)))?;
    session::request(session, context, admitted, call).await
}

/// Serves anything in a session that is not a request.
async fn other_message(context: RequestContext, frame: Frame) -> Result<Reply, Rejection> {
    // No batch can be meant for the era that has no sessions.
    if matches!(frame, Frame::Batch(_)) && !names_session(&context) {
        return Err(route::not_a_message(None).into());
    }
    let session = find(&context).await?;
    match frame {
        Frame::Batch(text) if session.version().has(feature::BATCHES) => {
            return Box::pin(batch::serve(batch::Host::Session(session), context, &text)).await;
        }
        Frame::Request(..) | Frame::Batch(_) => return Err(route::not_a_message(None).into()),
        Frame::Notification(call) => Box::pin(session::notification(&session, context, call)).await?,
        Frame::Response(id, result) => {
            let _activity = session.begin_activity(context.request.permit);
            let settled = session.settle(&id, result).await;
            settled.map_err(|error| reply::store_failed(None, &error))?;
        }
        Frame::ErrorWithoutId => Session::log_error_without_id(),
    }
    Ok(session.stamp(reply::empty(StatusCode::ACCEPTED)))
}

/// Serves a GET: opens or resumes a stream of a session.
pub(super) async fn get(context: RequestContext) -> Result<Reply, Rejection> {
    if !context.request.accepts.events {
        let text = "Not Acceptable: Client must accept text/event-stream";
        return Err(reply::invalid_request(StatusCode::NOT_ACCEPTABLE, text).into());
    }
    if !names_session(&context) {
        let text = "Bad Request: Missing session ID: this is an MCP endpoint, which a browser cannot show; connect an \
                    MCP client to this URL";
        return Err(reply::invalid_request(StatusCode::BAD_REQUEST, text).into());
    }
    let session = find(&context).await?;
    let RequestContext { running, request: AdmittedRequest { permit, headers, caller, .. } } = context;
    let service = Arc::clone(permit.service());
    let activity = session.begin_activity(permit);
    let principal = caller.principal.as_deref();
    let request = StreamRequest { service, running: &running, session, activity, principal };
    match headers.look_up(headers::LAST_EVENT_ID.lower) {
        Values::Absent => request.open().await,
        Values::One(last) => request.resume(last).await,
        Values::Several => {
            Err(reply::invalid_request(StatusCode::BAD_REQUEST, "Bad Request: several Last-Event-ID headers")
                .into())
        }
    }
}

/// Serves a DELETE: ends a session.
pub(super) async fn delete(context: RequestContext) -> Result<Reply, Rejection> {
    let session = find(&context).await?;
    session.delete().await.map_err(|error| reply::store_failed(None, &error))?;
    Sessions::end(context.service(), &session, Ending::Terminated);
    Ok(reply::empty(StatusCode::OK))
}

fn names_session(context: &RequestContext) -> bool {
    context.request.headers.session() != Values::Absent
}

/// Returns the session that a message names, if it belongs to the caller.
async fn find(context: &RequestContext) -> Result<Arc<Session>, Rejection> {
    let admitted = session::admit(context, session_id(context)?, None).await;
    admitted.map_err(|reason| reason.reply(None).into())
}

/// Returns the id of the session that a message names.
fn session_id(context: &RequestContext) -> Result<&str, Rejection> {
    let refused = |text| reply::invalid_request(StatusCode::BAD_REQUEST, text).into();
    match context.request.headers.session() {
        Values::Absent => Err(refused("Bad Request: Missing session ID")),
        Values::Several => Err(refused("Bad Request: several session IDs")),
        Values::One(named) => Ok(std::str::from_utf8(named).unwrap_or_default()),
    }
}

fn not_served(frame: &Frame) -> Reply {
    let text = format!(
        "{} header is missing or names a revision that is not served here; served: {}",
        headers::PROTOCOL_VERSION.lower,
        ProtocolVersion::envelope_names().join(", ")
    );
    let id = if let Frame::Request(id, _) = frame { Some(id) } else { None };
    reply::rpc_error(StatusCode::BAD_REQUEST, id, &ErrorObject::new(ErrorCode::HEADER_MISMATCH, text))
}
