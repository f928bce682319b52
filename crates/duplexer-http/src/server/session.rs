//! Sessions of the handshake era. A session is state: it has no task while it is idle.
//!
//! `table` holds all sessions and ends them. `call` serves a request, whose handler sends through `channel` on a
//! `stream`. `sse_body` is the response body that reads the stream, and `resume` finds the stream again.

mod admission;
mod call;
mod call_count;
mod channel;
mod detached;
mod initialize;
mod resume;
mod routing;
mod sse_body;
mod store;
mod stores;
mod stream;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use duplexer_core::dispatch::CallTable;
use duplexer_server::subscriptions::ChangeDelivery;
use duplexer_server::{Caller, Connection, Principal};
use duplexer_types::version::ProtocolVersion;
use http::HeaderValue;
use tokio::time::Instant;

use self::admission::SharedSession;
use self::call_count::CallCounts;
use self::channel::{ConnectionChannel, ListChange};
use self::stream::Stream;
use super::config::CallLimits;
use super::event_queue::{EventSink, WhenFull};
use super::reply::Reply;
use super::service_state::{RequestPermit, ServiceState};
use crate::session::{PrincipalKey, StreamId, StreamKey};
use crate::sync::{Mutex, lock};

pub(super) use admission::{admit, admit_call, admit_local};
pub(super) use call::{SessionCall, local_call, notification, request, request_in_batch};
pub(super) use initialize::initialize;
pub(super) use resume::StreamRequest;
pub(super) use routing::Inbox;
pub(super) use sse_body::SseBody;
pub(super) use store::StoreTiming;
pub(super) use stores::Stores;
pub(super) use table::{Ending, SessionPermit, Sessions};

/// Error text for a session that does not exist or belongs to another principal.
pub(super) const NOT_FOUND: &str = "Session not found";

/// One session: its connection, its calls in flight and its streams.
pub(super) struct Session {
    id: Arc<str>,
    header: HeaderValue,
    connection: Arc<Connection>,
    correlation: CallTable,
    limits: CallLimits,
    counts: CallCounts,
    principal: Option<PrincipalKey>,
    streams: Mutex<Streams>,
    usage: Mutex<SessionUsage>,
    stores: Option<Arc<Stores>>,
    /// Set if there are shared stores.
    shared: OnceLock<Box<SharedSession>>,
}

#[derive(Default)]
struct Streams {
    /// Stream for messages outside a request.
    standalone: Option<Arc<Stream>>,
    /// Resumable streams of requests, until they are over.
    resumable: HashMap<StreamId, Arc<Stream>>,
    /// List changes that wait for the standalone stream, one per list.
    list_changes: Vec<(ListChange, Vec<u8>)>,
}

/// Activity of a session.
struct SessionUsage {
    /// Number of exchanges in flight.
    active: usize,
    /// Time since which there are none.
    idle_since: Instant,
}

impl Session {
    fn new(
        service: &ServiceState,
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
            correlation: CallTable::new(service.config.sessions.hook.clone()),
            limits: service.config.sessions.calls,
            counts: CallCounts::default(),
            principal,
            streams: Mutex::default(),
            usage: Mutex::new(SessionUsage { active: 0, idle_since: Instant::now() }),
            stores: service.stores.clone(),
            shared: OnceLock::new(),
        });
        channel.set_session(&session);
        Some(session)
    }

    /// Returns whether the session belongs to this principal.
    fn belongs_to(&self, principal: Option<&Arc<Principal>>) -> bool {
        PrincipalKey::admits(self.principal.as_ref(), principal.map(|principal| &**principal))
    }

    /// Adds the session id to a response.
    pub(super) fn stamp(&self, mut reply: Reply) -> Reply {
        reply.headers_mut().insert(SESSION_ID, self.header.clone());
        reply
    }

    pub(super) fn version(&self) -> ProtocolVersion {
        self.connection.version()
    }

    pub(super) fn log_error_without_id() {
        tracing::debug!("the client reports an error without an id");
    }

    /// Marks the session as active until the guard is dropped.
    pub(super) fn begin_activity(self: &Arc<Self>, permit: RequestPermit) -> Arc<ActivityGuard> {
        lock(&self.usage).active += 1;
        Arc::new(ActivityGuard { session: Arc::clone(self), _permit: permit })
    }

    /// Returns the stores, if other nodes use them too.
    fn shared_stores(&self) -> Option<&Arc<Stores>> {
        self.stores.as_ref().filter(|stores| stores.shared().is_some())
    }

    /// Creates the stream of a request. Its events are stored if there is an event store.
    fn new_stream(&self, id: Option<StreamId>) -> Arc<Stream> {
        match (&self.stores, id) {
            (Some(stores), Some(id)) => Stream::kept(stores, StreamKey::new(Arc::clone(&self.id), id)),
            _ => Stream::ephemeral(),
        }
    }

    /// Makes a kept stream resumable until it is over.
    fn register_stream(&self, stream: &Arc<Stream>) {
        if let Some(id) = stream.id() {
            let mut streams = lock(&self.streams);
            streams.resumable.retain(|_, stream| !stream.is_over());
            streams.resumable.insert(id, Arc::clone(stream));
        }
    }

    fn find_stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        let streams = lock(&self.streams);
        let standalone = streams.standalone.as_ref().filter(|stream| stream.id() == Some(id));
        standalone.or_else(|| streams.resumable.get(&id)).cloned()
    }

    fn standalone(&self) -> Option<Arc<Stream>> {
        lock(&self.streams).standalone.clone()
    }

    /// Returns the kept stream for messages outside a request, created if necessary.
    fn standalone_writer(&self, stores: &Arc<Stores>) -> Arc<Stream> {
        let mut streams = lock(&self.streams);
        let current = streams.standalone.as_ref().filter(|stream| stream.has_receiver());
        if let Some(stream) = current {
            return Arc::clone(stream);
        }
        let stream = Stream::kept(stores, StreamKey::new(Arc::clone(&self.id), StreamId::STANDALONE));
        for (_, json) in streams.list_changes.drain(..) {
            let _ = stream.offer(&json, WhenFull::Exceed);
        }
        streams.standalone = Some(Arc::clone(&stream));
        stream
    }

    /// Returns the standalone stream if it can deliver a message. Otherwise keeps the message, in place of an earlier one
    /// about the same list.
    fn standalone_or_keep(&self, change: ListChange, json: &[u8]) -> Option<Arc<Stream>> {
        let mut streams = lock(&self.streams);
        if let Some(stream) = streams.standalone.as_ref().filter(|stream| stream.has_receiver()) {
            return Some(Arc::clone(stream));
        }
        streams.list_changes.retain(|(known, _)| *known != change);
        streams.list_changes.push((change, json.to_owned()));
        None
    }

    /// Ends the stream for messages outside a request.
    fn close_standalone(&self) {
        if let Some(stream) = self.standalone() {
            stream.close();
        }
    }
}

/// Returns random bits. `None`, logged, if the system has none.
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

/// Returns how changes get to the client of a session: with shared stores, the node that its client reads at stores them.
fn change_delivery(service: &ServiceState) -> ChangeDelivery {
    if service.config.sessions.shared.is_some() { ChangeDelivery::Pulled } else { ChangeDelivery::Pushed }
}

const SESSION_ID: http::HeaderName = http::HeaderName::from_static(duplexer_types::headers::SESSION_ID.lower);

/// An exchange in flight. The session is not idle while it exists.
pub(super) struct ActivityGuard {
    session: Arc<Session>,
    _permit: RequestPermit,
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        let mut usage = lock(&self.session.usage);
        usage.active -= 1;
        usage.idle_since = Instant::now();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id is a secret: a client that knows it can use the session.
        f.debug_struct("Session").field("connection", &self.connection).finish_non_exhaustive()
    }
}
