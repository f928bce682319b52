//! GET requests: opens the session's stream for messages outside a request, or resumes a stream.

use std::sync::Arc;

use duplexer_server::Principal;
use duplexer_types::version::feature;
use http::StatusCode;

use super::call::priming_event;
use super::sse_body::{ReaderHandle, SseBody};
use super::store::with_timeout;
use super::stream::Attached;
use super::{ActivityGuard, Session};
use crate::server::body::ResponseBody;
use crate::server::event_queue::{EventSink, WhenFull};
use crate::server::reply::{self, Rejection, Reply};
use crate::server::service_state::{ServiceState, lock};
use crate::server::sse::{self, EventId};
use crate::session::{StoredEvent, StreamKey};

/// Opens the stream for messages outside a request. It has one reader.
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
        // Another reader can have attached during the await.
        if streams.standalone.as_ref().is_some_and(|stream| stream.is_read()) {
            return Err(conflict());
        }
        let number = stream.attach().number;
        streams.standalone = Some(Arc::clone(&stream));
        for (_, json) in streams.list_changes.drain(..) {
            let _ = stream.offer(&json, WhenFull::Exceed);
        }
        ReaderHandle::new(stream, number)
    };
    if service.closing.is_cancelled() {
        session.close_standalone();
    }
    let prefix = priming_event(service, session, reader.stream());
    let body = SseBody::new(service, reader, prefix, activity).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::session(body))))
}

/// Replays the events after `last`, then follows the stream.
pub(in crate::server) async fn resume(
    service: &ServiceState,
    session: &Arc<Session>,
    activity: Arc<ActivityGuard>,
    principal: Option<&Principal>,
    last: &[u8],
) -> Result<Reply, Rejection> {
    let Some(store) = &service.config.sessions.events else {
        let text = "Bad Request: this server keeps no events, so a stream cannot be resumed";
        return Err(reply::invalid_request(StatusCode::BAD_REQUEST, text).into());
    };
    // An id that this service has not issued belongs to no stream.
    let Some(last) = std::str::from_utf8(last).ok().and_then(|text| text.trim().parse::<EventId>().ok())
    else {
        return Ok(session.stamp(reply::events(ResponseBody::empty())));
    };
    let key = StreamKey::new(Arc::clone(&session.id), last.stream);
    let reader = session.find_stream(last.stream).map(|stream| {
        let Attached { number, delivered } = stream.attach();
        (ReaderHandle::new(stream, number), delivered)
    });
    let stored = with_timeout(|| store.read(&key, last.sequence, usize::MAX))
        .await
        .map_err(|_| reply::internal_error_without_id())?;
    let events: Vec<_> = stored.map(|page| (page.first..).zip(page.events).collect()).unwrap_or_default();
    let Some((reader, delivered)) = reader else {
        let body = ResponseBody::full(encode(last, &events).into());
        return Ok(session.stamp(reply::events(body)));
    };
    // Later events of the store are delivered on the stream itself.
    let events: Vec<_> = events.into_iter().filter(|(number, _)| *number <= delivered).collect();
    let mut prefix = Vec::new();
    if session.connection.version().has(feature::SSE_POLLING) {
        sse::write_priming(&mut prefix, last, service.config.sessions.retry);
    }
    prefix.extend(encode(last, &events));
    let body = SseBody::new(service, reader, prefix, activity).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::session(body))))
}

fn encode(last: EventId, events: &[(u64, StoredEvent)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (sequence, event) in events {
        let id = EventId { stream: last.stream, sequence: *sequence };
        sse::write(&mut out, Some(id), &event.data);
    }
    out
}
