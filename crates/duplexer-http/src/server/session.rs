//! A session of the handshake era is state: nothing runs for it while nothing happens.
//!
//! `table` holds all of them and is the only place where one ends. A request is served by `call`, which speaks through
//! `channel` on a `stream`; `tail` is the body of whoever reads that stream, `resume` finds it again.

mod call;
mod channel;
mod hand_over;
mod notify;
mod open;
mod resume;
mod store;
mod stream;
mod table;
mod tail;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::CallTable;
use duplexer_core::server::{Caller, Connection, Principal};
use duplexer_types::version::ProtocolVersion;
use http::HeaderValue;
use tokio::time::Instant;

use self::channel::ConnectionChannel;
use self::stream::Stream;
use super::door::Response;
use super::hub::{Admitted, Hub, lock};
use super::reply::Reply;
use crate::session::{PrincipalKey, SessionRecord, StreamId, StreamKey};

pub(super) use call::{answer, request};
pub(super) use hand_over::{Unavailable, find};
pub(super) use notify::notification;
pub(super) use open::open;
pub(super) use resume::{read, take_up};
pub(super) use table::{Ending, Place, Sessions};
pub(super) use tail::Tail;

/// What is said of a session that is not there, or is somebody else's.
pub(super) const NOT_FOUND: &str = "Session not found";

pub(super) struct Session {
    id: Arc<str>,
    header: HeaderValue,
    connection: Arc<Connection>,
    correlation: CallTable,
    principal: Option<PrincipalKey>,
    streams: Mutex<Streams>,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Streams {
    /// What is told beside any request.
    standalone: Option<Arc<Stream>>,
    /// Those that can be found again, until they are over.
    answering: HashMap<StreamId, Arc<Stream>>,
}

/// How a session stands with the service.
struct Standing {
    /// How many exchanges are under way.
    busy: usize,
    /// Since when there are none.
    idle_since: Instant,
    /// As it was last written down, where that is done.
    record: Option<SessionRecord>,
}

impl Session {
    fn new(
        hub: &Hub,
        id: Arc<str>,
        principal: Option<PrincipalKey>,
        connection: impl FnOnce(Arc<ConnectionChannel>) -> Option<Arc<Connection>>,
    ) -> Option<Arc<Self>> {
        let header = HeaderValue::try_from(&*id).ok()?;
        let channel = Arc::new(ConnectionChannel::default());
        let session = Arc::new(Self {
            id,
            header,
            connection: connection(Arc::clone(&channel))?,
            correlation: CallTable::new(hub.config.sessions.hook.clone()),
            principal,
            streams: Mutex::default(),
            standing: Mutex::new(Standing { busy: 0, idle_since: Instant::now(), record: None }),
        });
        channel.belongs_to(&session);
        Some(session)
    }

    /// Whether a request of this principal may use the session.
    fn belongs_to(&self, principal: Option<&Arc<Principal>>) -> bool {
        PrincipalKey::admits(self.principal.as_ref(), principal.map(|principal| &**principal))
    }

    /// Says which session an answer belongs to.
    pub(super) fn stamp(&self, mut reply: Reply) -> Reply {
        reply.headers_mut().insert(SESSION_ID, self.header.clone());
        reply
    }

    pub(super) fn version(&self) -> ProtocolVersion {
        self.connection.version()
    }

    /// The client has answered one of our requests.
    pub(super) fn settle(&self, response: Response) {
        match response {
            Response::Answer(id, answer) => self.correlation.settle(&id, answer),
            Response::Nameless => tracing::debug!("the client reports an error without an id"),
        }
    }

    /// An exchange is under way until this is dropped.
    pub(super) fn busy(self: &Arc<Self>, admitted: Admitted) -> Arc<Busy> {
        lock(&self.standing).busy += 1;
        Arc::new(Busy { session: Arc::clone(self), _admitted: admitted })
    }

    /// A fresh stream: one that can be found again, where events are kept.
    fn new_stream(&self, hub: &Hub) -> Arc<Stream> {
        let kept = hub.config.sessions.events.as_ref().and_then(|store| Some((store, random()?)));
        let Some((store, bits)) = kept else { return Stream::passing() };
        let key = StreamKey::new(Arc::clone(&self.id), StreamId(bits));
        Stream::keeping(key, Arc::clone(store), hub.tasks.clone())
    }

    /// Lets a stream be found again until it is over.
    fn list(&self, stream: &Arc<Stream>) {
        if let Some(id) = stream.id() {
            let mut streams = lock(&self.streams);
            streams.answering.retain(|_, stream| !stream.is_over());
            streams.answering.insert(id, Arc::clone(stream));
        }
    }

    fn find_stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        let streams = lock(&self.streams);
        let standalone = streams.standalone.as_ref().filter(|stream| stream.id() == Some(id));
        standalone.or_else(|| streams.answering.get(&id)).cloned()
    }

    fn standalone(&self) -> Option<Arc<Stream>> {
        lock(&self.streams).standalone.clone()
    }

    /// Ends the stream beside the requests.
    fn close_standalone(&self) {
        if let Some(stream) = self.standalone() {
            stream.close();
        }
    }
}

/// Random bits; `None` if the system has none, which has been logged.
pub(super) fn random() -> Option<u128> {
    let mut bits = [0; 16];
    match getrandom::fill(&mut bits) {
        Ok(()) => Some(u128::from_ne_bytes(bits)),
        Err(error) => {
            tracing::error!(%error, "the system gives no random bits");
            None
        }
    }
}

pub(super) fn caller(id: &Arc<str>, principal: Option<Arc<Principal>>) -> Caller {
    let mut caller = Caller::default();
    caller.session_id = Some(Arc::clone(id));
    caller.principal = principal;
    caller
}

const SESSION_ID: http::HeaderName = http::HeaderName::from_static(duplexer_types::headers::SESSION_ID.lower);

/// An exchange that is under way: the session does not count as idle.
pub(super) struct Busy {
    session: Arc<Session>,
    _admitted: Admitted,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut standing = lock(&self.session.standing);
        standing.busy -= 1;
        standing.idle_since = Instant::now();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id is a secret: whoever has it can speak for the session.
        f.debug_struct("Session").field("connection", &self.connection).finish_non_exhaustive()
    }
}
