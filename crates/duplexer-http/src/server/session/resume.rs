//! Reading a session's streams: the one beside all requests, or one that a client comes back for.

use std::sync::Arc;

use duplexer_core::server::Principal;
use duplexer_types::version::feature;
use http::StatusCode;

use super::call::opening;
use super::store::patient;
use super::tail::{Reading, Tail};
use super::{Busy, Session};
use crate::server::body::ResponseBody;
use crate::server::hub::{Hub, lock};
use crate::server::reply::{self, Refusal, Reply};
use crate::server::sse::{self, EventId};
use crate::session::{EventKind, StoredEvent, StreamKey};

/// What is told beside any request, from now on, to one reader.
pub(in crate::server) async fn read(
    hub: &Hub,
    session: &Arc<Session>,
    busy: Arc<Busy>,
    principal: Option<&Principal>,
) -> Result<Reply, Refusal> {
    let text = "Conflict: Only one SSE stream is allowed per session";
    let conflict = || Refusal::new(reply::refused(StatusCode::CONFLICT, text));
    if session.standalone().is_some_and(|stream| stream.is_read()) {
        return Err(conflict());
    }
    let stream = session.new_stream(hub);
    if stream.open().await.is_err() {
        return Err(reply::broken().into());
    }
    let reading = {
        let mut streams = lock(&session.streams);
        // Somebody else may have come meanwhile.
        if streams.standalone.as_ref().is_some_and(|stream| stream.is_read()) {
            return Err(conflict());
        }
        let (number, _) = stream.attach();
        streams.standalone = Some(Arc::clone(&stream));
        Reading::new(stream, number)
    };
    if hub.closing.is_cancelled() {
        session.close_standalone();
    }
    let before = opening(hub, session, reading.stream());
    let tail = Tail::new(hub, reading, before, busy).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::tail(tail))))
}

/// What a client has missed on a stream since an event, and what follows.
pub(in crate::server) async fn take_up(
    hub: &Hub,
    session: &Arc<Session>,
    busy: Arc<Busy>,
    principal: Option<&Principal>,
    last: &[u8],
) -> Result<Reply, Refusal> {
    let Some(store) = &hub.config.sessions.events else {
        let text = "Bad Request: this server keeps no events, so that a stream cannot be taken up again";
        return Err(reply::refused(StatusCode::BAD_REQUEST, text).into());
    };
    // An id that is not ours is one of nobody's streams.
    let Some(last) = std::str::from_utf8(last).ok().and_then(|text| text.trim().parse::<EventId>().ok())
    else {
        return Ok(session.stamp(reply::events(ResponseBody::empty())));
    };
    let key = StreamKey::new(Arc::clone(&session.id), last.stream);
    let reading = session.find_stream(last.stream).map(|stream| {
        let (number, passed_on) = stream.attach();
        (Reading::new(stream, number), passed_on)
    });
    let kept = patient(|| store.replay(&key, last.sequence)).await.map_err(|_| reply::broken())?;
    let missed = kept.unwrap_or_default();
    let Some((reading, passed_on)) = reading else {
        let body = ResponseBody::full(write(last, &missed).into());
        return Ok(session.stamp(reply::events(body)));
    };
    // What the store has beyond that comes on the stream itself.
    let missed: Vec<_> = missed.into_iter().filter(|event| event.sequence <= passed_on).collect();
    let mut before = Vec::new();
    if session.connection.version().has(feature::SSE_POLLING) {
        sse::write_opening(&mut before, last, hub.config.sessions.retry);
    }
    before.extend(write(last, &missed));
    let tail = Tail::new(hub, reading, before, busy).until_expiry(principal);
    Ok(session.stamp(reply::events(ResponseBody::tail(tail))))
}

fn write(last: EventId, events: &[StoredEvent]) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events.iter().filter(|event| event.kind != EventKind::Opening) {
        let id = EventId { stream: last.stream, sequence: event.sequence };
        sse::write(&mut out, Some(id), &event.data);
    }
    out
}
