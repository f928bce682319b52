//! ReaderHandle a session's streams: the one beside all requests, or one that a client comes back for.

use std::sync::Arc;

use duplexer_core::server::Principal;
use duplexer_types::version::feature;
use http::StatusCode;

use super::call::priming_event;
use super::sse_body::{ReaderHandle, SseBody};
use super::store::with_timeout;
use super::stream::Attached;
use super::{ActivityGuard, Session};
use crate::server::body::ResponseBody;
use crate::server::reply::{self, Rejection, Reply};
use crate::server::service_state::{ServiceState, lock};
use crate::server::sse::{self, EventId};
use crate::session::{EventKind, StoredEvent, StreamKey};

/// What is told beside any request, from now on, to one reader.
pub(in crate::server) async fn open_stream(
    service: &ServiceState,
    session: &Arc<Session>,
    activity: Arc<ActivityGuard>,
    principal: Option<&Principal>,
) -> Result<Reply, Rejection> {
    let text = "Conflict: Only one SSE stream is allowed per session";
    let conflict = || Rejection::new(reply::invalid_request(StatusCode::CONFLICT, text));
    if session.standalone().is_some_and(|stream| stream.is_read()) {
        return Err(conflict());
    }
    let stream = session.new_stream(service);
    if stream.open().await.is_err() {
        return Err(reply::internal_error_without_id().into());
    }
    let reader = {
        let mut streams = lock(&session.streams);
        // Somebody else may have come meanwhile.
        if streams.standalone.as_ref().is_some_and(|stream| stream.is_read()) {
            return Err(conflict());
        }
        let number = stream.attach().number;
        streams.standalone = Some(Arc::clone(&stream));
        ReaderHandle::new(stream, number)
    };
    if service.closing.is_raised() {
        session.close_standalone();
    }
    let prefix = priming_event(service, session, reader.stream());
    let tail = SseBody::new(service, reader, prefix, activity).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::session(tail))))
}

/// What a client has missed on a stream since an event, and what follows.
pub(in crate::server) async fn resume(
    service: &ServiceState,
    session: &Arc<Session>,
    activity: Arc<ActivityGuard>,
    principal: Option<&Principal>,
    last: &[u8],
) -> Result<Reply, Rejection> {
    let Some(store) = &service.config.sessions.events else {
        let text = "Bad Request: this server keeps no events, so that a stream cannot be taken up again";
        return Err(reply::invalid_request(StatusCode::BAD_REQUEST, text).into());
    };
    // An id that is not ours is one of nobody's streams.
    let Some(last) = std::str::from_utf8(last).ok().and_then(|text| text.trim().parse::<EventId>().ok())
    else {
        return Ok(session.stamp(reply::events(ResponseBody::empty())));
    };
    let key = StreamKey::new(Arc::clone(&session.id), last.stream);
    let reader = session.find_stream(last.stream).map(|stream| {
        let Attached { number, delivered } = stream.attach();
        (ReaderHandle::new(stream, number), delivered)
    });
    let kept = with_timeout(|| store.replay(&key, last.sequence))
        .await
        .map_err(|_| reply::internal_error_without_id())?;
    let missed = kept.unwrap_or_default();
    let Some((reader, delivered)) = reader else {
        let body = ResponseBody::full(write(last, &missed).into());
        return Ok(session.stamp(reply::events(body)));
    };
    // What the store has beyond that comes on the stream itself.
    let missed: Vec<_> = missed.into_iter().filter(|event| event.sequence <= delivered).collect();
    let mut prefix = Vec::new();
    if session.connection.version().has(feature::SSE_POLLING) {
        sse::write_opening(&mut prefix, last, service.config.sessions.retry);
    }
    prefix.extend(write(last, &missed));
    let tail = SseBody::new(service, reader, prefix, activity).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::session(tail))))
}

fn write(last: EventId, events: &[StoredEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events.iter().filter(|event| event.kind != EventKind::Priming) {
        let id = EventId { stream: last.stream, sequence: event.sequence };
        sse::write(&mut out, Some(id), &event.data);
    }
    out
}
