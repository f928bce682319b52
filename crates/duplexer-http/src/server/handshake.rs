//! The handshake era: with sessions, without, or not at all.

mod batch;
mod stateless;

use std::sync::Arc;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::methods::Method;
use duplexer_types::version::{ProtocolVersion, feature};
use http::StatusCode;

use super::config::Handshake;
use super::reply::{self, Rejection, Reply};
use super::route::{self, Message, RequestContext, Served};
use super::session::{self, Ending, Session, Sessions, Unavailable};

/// Serves a message.
pub(super) fn post(context: RequestContext, message: Message) -> Result<Served, Rejection> {
    match context.permit.service().config.handshake {
        Handshake::Sessions => Ok(Served::Later(Box::pin(in_session(context, message)))),
        Handshake::Stateless => stateless::serve(context, message),
        Handshake::Refused => Err(not_served(&message).into()),
    }
}

async fn in_session(context: RequestContext, message: Message) -> Result<Reply, Rejection> {
    let message = match message {
        // Whatever session it names: it opens a new one.
        Message::Request(id, call) if Method::parse(call.method()) == Some(Method::Initialize) => {
            return Box::pin(session::initialize(context, id, call)).await;
        }
        message => message,
    };
    let session = find(&context).await?;
    match message {
        Message::Request(id, call) => session::request(session, context, id, call).await,
        Message::Notification(call) => {
            Box::pin(session::notification(&session, context, call)).await;
            Ok(session.stamp(reply::empty(StatusCode::ACCEPTED)))
        }
        Message::Response(response) => {
            let _activity = session.begin_activity(context.permit);
            session.settle(response);
            Ok(session.stamp(reply::empty(StatusCode::ACCEPTED)))
        }
        Message::Batch(text) if session.version().has(feature::BATCHES) => {
            Box::pin(batch::serve(batch::Host::Session(session), context, &text)).await
        }
        Message::Batch(_) => Err(route::not_a_message(None).into()),
    }
}

/// Serves a reader of a session's streams.
pub(super) async fn get(context: RequestContext) -> Result<Reply, Rejection> {
    if !context.accepts.events {
        let text = "Not Acceptable: Client must accept text/event-stream";
        return Err(reply::invalid_request(StatusCode::NOT_ACCEPTABLE, text).into());
    }
    let session = find(&context).await?;
    let service = Arc::clone(context.permit.service());
    let activity = session.begin_activity(context.permit);
    let principal = context.caller.principal.as_deref();
    match context.headers.look_up(headers::LAST_EVENT_ID.lower) {
        Values::Absent => session::open_stream(&service, &session, activity, principal).await,
        Values::One(last) => session::resume(&service, &session, activity, principal, last).await,
        Values::Several => {
            Err(reply::invalid_request(StatusCode::BAD_REQUEST, "Bad Request: several Last-Event-ID headers")
                .into())
        }
    }
}

/// Ends a session.
pub(super) async fn delete(context: RequestContext) -> Result<Reply, Rejection> {
    let session = find(&context).await?;
    Sessions::end(context.permit.service(), &session, Ending::Terminated);
    Ok(reply::empty(StatusCode::OK))
}

/// The session that a request names, if it is its caller's.
async fn find(context: &RequestContext) -> Result<Arc<Session>, Rejection> {
    let refused = |status, text: &'static str| Rejection::new(reply::invalid_request(status, text));
    let named = match context.headers.look_up(headers::SESSION_ID.lower) {
        Values::Absent => return Err(refused(StatusCode::BAD_REQUEST, "Bad Request: Missing session ID")),
        Values::Several => return Err(refused(StatusCode::BAD_REQUEST, "Bad Request: several session IDs")),
        Values::One(named) => std::str::from_utf8(named).unwrap_or_default(),
    };
    let principal = context.caller.principal.as_ref();
    match session::find(context.permit.service(), &context.running, named, principal).await {
        Ok(Some(session)) => Ok(session),
        Ok(None) => Err(refused(StatusCode::NOT_FOUND, session::NOT_FOUND)),
        Err(Unavailable::Full) => Err(reply::too_many_sessions(None).into()),
        Err(Unavailable::Store) => {
            Err(reply::unavailable(None, "Sessions cannot be looked up at the moment").into())
        }
    }
}

fn not_served(message: &Message) -> Reply {
    let text = format!(
        "{} header is missing or names a revision that is not served here; served: {}",
        headers::PROTOCOL_VERSION.lower,
        ProtocolVersion::envelope_names().join(", ")
    );
    let id = if let Message::Request(id, _) = message { Some(id) } else { None };
    reply::rpc_error(StatusCode::BAD_REQUEST, id, &ErrorObject::new(ErrorCode::HEADER_MISMATCH, text))
}
