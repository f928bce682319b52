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
use super::door::{self, Message, Served, Visit};
use super::reply::{self, Refusal, Reply};
use super::session::{self, Ending, Session, Sessions, Unavailable};

/// Serves a message.
pub(super) fn post(visit: Visit, message: Message) -> Result<Served, Refusal> {
    match visit.admitted.hub().config.handshake {
        Handshake::Sessions => Ok(Served::Later(Box::pin(in_session(visit, message)))),
        Handshake::Stateless => stateless::serve(visit, message),
        Handshake::Refused => Err(not_served(&message).into()),
    }
}

async fn in_session(visit: Visit, message: Message) -> Result<Reply, Refusal> {
    let message = match message {
        // Whatever session it names: it opens a new one.
        Message::Request(id, call) if call.known() == Some(Method::Initialize) => {
            return Box::pin(session::open(visit, id, call)).await;
        }
        message => message,
    };
    let session = find(&visit).await?;
    match message {
        Message::Request(id, call) => session::request(session, visit, id, call).await,
        Message::Notification(call) => {
            Box::pin(session::notification(&session, visit, call)).await;
            Ok(session.stamp(reply::empty(StatusCode::ACCEPTED)))
        }
        Message::Response(response) => {
            let _busy = session.busy(visit.admitted);
            session.settle(response);
            Ok(session.stamp(reply::empty(StatusCode::ACCEPTED)))
        }
        Message::Batch(text) if session.version().has(feature::BATCHES) => {
            Box::pin(batch::serve(batch::Host::Session(session), visit, &text)).await
        }
        Message::Batch(_) => Err(door::not_a_message(None).into()),
    }
}

/// Serves a reader of a session's streams.
pub(super) async fn get(visit: Visit) -> Result<Reply, Refusal> {
    if !visit.accepts.events {
        let text = "Not Acceptable: Client must accept text/event-stream";
        return Err(reply::refused(StatusCode::NOT_ACCEPTABLE, text).into());
    }
    let session = find(&visit).await?;
    let hub = Arc::clone(visit.admitted.hub());
    let busy = session.busy(visit.admitted);
    let principal = visit.caller.principal.as_deref();
    match visit.headers.look_up(headers::LAST_EVENT_ID.lower) {
        Values::Absent => session::read(&hub, &session, busy, principal).await,
        Values::One(last) => session::take_up(&hub, &session, busy, principal, last).await,
        Values::Several => {
            Err(reply::refused(StatusCode::BAD_REQUEST, "Bad Request: several Last-Event-ID headers").into())
        }
    }
}

/// Ends a session.
pub(super) async fn delete(visit: Visit) -> Result<Reply, Refusal> {
    let session = find(&visit).await?;
    Sessions::end(visit.admitted.hub(), &session, Ending::Over);
    Ok(reply::empty(StatusCode::OK))
}

/// The session that a request names, if it is its caller's.
async fn find(visit: &Visit) -> Result<Arc<Session>, Refusal> {
    let refused = |status, text: &'static str| Refusal::new(reply::refused(status, text));
    let named = match visit.headers.look_up(headers::SESSION_ID.lower) {
        Values::Absent => return Err(refused(StatusCode::BAD_REQUEST, "Bad Request: Missing session ID")),
        Values::Several => return Err(refused(StatusCode::BAD_REQUEST, "Bad Request: several session IDs")),
        Values::One(named) => std::str::from_utf8(named).unwrap_or_default(),
    };
    let principal = visit.caller.principal.as_ref();
    match session::find(visit.admitted.hub(), &visit.running, named, principal).await {
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
    reply::refusal(StatusCode::BAD_REQUEST, id, &ErrorObject::new(ErrorCode::HEADER_MISMATCH, text))
}
