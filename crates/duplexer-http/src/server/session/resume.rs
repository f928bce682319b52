//! GET requests: opens the session's stream for messages outside a request, or resumes a stream.

use std::sync::Arc;

use duplexer_core::error::StoreError;
use duplexer_server::subscriptions::{ChangeFeed, Position};
use duplexer_server::{Principal, RunningServer};
use duplexer_types::version::feature;
use http::StatusCode;

use super::sse_body::{Reader, SseBody};
use super::stores::Stores;
use super::stream::{FollowHandle, Follower};
use super::{ActivityGuard, Session};
use crate::server::body::ResponseBody;
use crate::server::event_queue::{EventSink, WhenFull};
use crate::server::reply::{self, Rejection, Reply};
use crate::server::service_state::ServiceState;
use crate::server::sse::{self, EventId};
use crate::session::{Attach, Attached, StreamId, StreamKey, Takeover};
use crate::sync::lock;

/// A GET request of a session.
pub(in crate::server) struct StreamRequest<'a> {
    pub(in crate::server) service: Arc<ServiceState>,
    pub(in crate::server) running: &'a RunningServer,
    pub(in crate::server) session: Arc<Session>,
    pub(in crate::server) activity: Arc<ActivityGuard>,
    pub(in crate::server) principal: Option<&'a Principal>,
}

impl StreamRequest<'_> {
    /// Opens the stream for messages outside a request. It has one reader.
    pub(in crate::server) async fn open(self) -> Result<Reply, Rejection> {
        match self.service.stores.clone() {
            Some(stores) => self.open_kept(&stores).await,
            None => self.open_ephemeral(),
        }
    }

    fn open_ephemeral(self) -> Result<Reply, Rejection> {
        let Self { service, session, activity, principal, .. } = self;
        let reader = {
            let mut streams = lock(&session.streams);
            if streams.standalone.as_ref().is_some_and(|stream| stream.is_read()) {
                return Err(conflict());
            }
            let stream = super::Stream::ephemeral();
            let reader = Reader::first(&stream);
            for (_, json) in streams.list_changes.drain(..) {
                let _ = stream.offer(&json, WhenFull::Exceed);
            }
            streams.standalone = Some(stream);
            reader
        };
        if service.closing.is_cancelled() {
            session.close_standalone();
        }
        let body = SseBody::new(&service, reader, Vec::new(), activity).until_expiry(principal);
        Ok(session.stamp(reply::events(ResponseBody::session(body))))
    }

    async fn open_kept(self, stores: &Arc<Stores>) -> Result<Reply, Rejection> {
        let key = StreamKey::new(Arc::clone(&self.session.id), StreamId::STANDALONE);
        let attach = |takeover| stores.attach(&key, Attach::anew(stores.run(), takeover));
        let mut attached = attach(Takeover::Never).await.map_err(|error| failed(&error))?;
        if let Attached::Held(reader) = attached
            && !stores.is_alive(reader).await
        {
            attached = attach(Takeover::Of(reader)).await.map_err(|error| failed(&error))?;
        }
        match attached {
            Attached::Reader { number, after, position } => {
                Ok(self.follow(stores, key, number, after, position))
            }
            Attached::Held(_) => Err(conflict()),
            // The session has ended meanwhile.
            Attached::Unknown => Err(reply::invalid_request(StatusCode::NOT_FOUND, super::NOT_FOUND).into()),
        }
    }

    /// Replays the events after `last`, then follows the stream.
    pub(in crate::server) async fn resume(self, last: &[u8]) -> Result<Reply, Rejection> {
        let Some(stores) = self.service.stores.clone() else {
            let text = "Bad Request: this server keeps no events, so a stream cannot be resumed";
            return Err(reply::invalid_request(StatusCode::BAD_REQUEST, text).into());
        };
        let nothing = |session: &Session| session.stamp(reply::events(ResponseBody::empty()));
        // An id that this service has not issued belongs to no stream.
        let text = std::str::from_utf8(last).ok();
        let Some(last) = text.and_then(|text| text.trim().parse::<EventId>().ok()) else {
            return Ok(nothing(&self.session));
        };
        let key = StreamKey::new(Arc::clone(&self.session.id), last.stream);
        let attach = Attach::after(stores.run(), last.sequence);
        match stores.attach(&key, attach).await.map_err(|error| failed(&error))? {
            Attached::Reader { number, after, position } => {
                Ok(self.follow(&stores, key, number, after, position))
            }
            Attached::Held(_) | Attached::Unknown => Ok(nothing(&self.session)),
        }
    }

    /// Returns the body of a reader that has been attached.
    fn follow(
        self,
        stores: &Arc<Stores>,
        key: StreamKey,
        number: u64,
        after: u64,
        position: Option<Position>,
    ) -> Reply {
        let Self { service, running, session, activity, principal } = self;
        let stream = key.stream;
        let (writer, feed) = if stream == StreamId::STANDALONE {
            let writer = session.standalone_writer(stores);
            let since = position.or_else(|| session.opened_at());
            let feed = stores.shared().and_then(|_| ChangeFeed::open(running, &session.connection, since));
            (Some(writer), feed.map(|feed| refreshed(feed, &session)))
        } else {
            (session.find_stream(stream), None)
        };
        let writer = writer.and_then(|stream| stream.as_kept().cloned());
        let handle = FollowHandle::new(stores, key, number, after, writer);
        if service.closing.is_cancelled() {
            session.close_standalone();
        }
        let mut prefix = Vec::new();
        if session.connection.version().has(feature::SSE_POLLING) {
            let id = EventId { stream, sequence: after };
            sse::write_priming(&mut prefix, id, service.config.sessions.retry);
        }
        let follower = Follower::new(handle, Arc::clone(&service)).with_changes(feed);
        let body = SseBody::following(&service, follower, prefix, activity).until_expiry(principal);
        session.stamp(reply::events(ResponseBody::session(body)))
    }
}

/// Has the feed follow what the session subscribes to at other nodes.
fn refreshed(feed: ChangeFeed, session: &Arc<Session>) -> ChangeFeed {
    let Some(shared) = session.shared.get() else { return feed };
    let name = shared.digest.to_string();
    let session = Arc::downgrade(session);
    feed.refreshed_by(&name, move || {
        let session = session.upgrade();
        Box::pin(async move {
            match session {
                Some(session) => session.refresh_from_store().await,
                None => Ok(()),
            }
        })
    })
}

fn conflict() -> Rejection {
    let text = "Conflict: Only one SSE stream is allowed per session";
    reply::invalid_request(StatusCode::CONFLICT, text).into()
}

fn failed(error: &StoreError) -> Rejection {
    reply::store_failed(None, error).into()
}
