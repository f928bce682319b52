//! What outlives a process or a connection: sessions that another node may take over, and events that a client may come
//! back for. Two traits, and an implementation of each in memory.
//!
//! Without a [`SessionStore`] sessions live and die with their process; without an [`EventStore`] streams cannot be taken
//! up again.

mod events;
mod records;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::{ConnectionSnapshot, Principal};
use serde::{Deserialize, Serialize};

pub use events::MemoryEvents;
pub use records::MemorySessions;

/// Keeps the events of streams for clients that lose their connection.
///
/// Streams are known by session and number together: what belongs to one session cannot be asked for in another.
pub trait EventStore: Send + Sync + 'static {
    /// Keeps an event. The numbers of a stream's events grow by one, from zero.
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>>;

    /// The events of a stream after a number, oldest first; `None` if nothing is known of the stream.
    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>>;

    /// A session has ended: nobody will ask for its events any more.
    fn forget(&self, session: &str) -> BoxFuture<'_, Result<(), BoxError>>;
}

/// One stream of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamKey {
    /// The session.
    pub session: Arc<str>,
    /// The stream: 128 random bits.
    pub stream: StreamId,
}

impl StreamKey {
    /// A stream of a session.
    pub fn new(session: Arc<str>, stream: StreamId) -> Self {
        Self { session, stream }
    }
}

/// The name of a stream within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u128);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An event as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// Its number in the stream.
    pub sequence: u64,
    /// The message: JSON text; empty in an opening event.
    pub data: Bytes,
    /// What it is to the stream.
    pub kind: EventKind,
}

impl StoredEvent {
    /// An event.
    pub fn new(sequence: u64, data: Bytes, kind: EventKind) -> Self {
        Self { sequence, data, kind }
    }
}

/// What an event is to its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The first one, without a message: it tells the client where to come back to.
    Opening,
    /// A message.
    Message,
    /// The last message: the answer to the request that the stream belongs to.
    Last,
}

/// Keeps what is to be known of sessions beyond one process.
///
/// A session has one owner at a time. Whoever claims it from another node raises its epoch, and what an earlier owner
/// still writes under the old one is refused.
pub trait SessionStore: Send + Sync + 'static {
    /// Writes a session down: a new one, or over its own record with the same epoch.
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<Saved, BoxError>>;

    /// Makes `node` the owner of a session and says how it stands; `None` if there is no such session. The epoch is
    /// raised if the owner changes.
    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>>;

    /// Forgets a session, unless it has a later epoch by now.
    fn remove(&self, id: &str, epoch: u64) -> BoxFuture<'_, Result<(), BoxError>>;
}

/// Whether a session was written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It was.
    Yes,
    /// Another node has taken the session over.
    Superseded,
}

/// A session as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// How its connection stands.
    pub connection: ConnectionSnapshot,
    /// Whose it is.
    pub principal: Option<PrincipalKey>,
    /// The node that serves it.
    pub owner: String,
    /// How often the owner has changed.
    pub epoch: u64,
}

impl SessionRecord {
    /// A session as its owner sees it.
    pub fn new(
        connection: ConnectionSnapshot,
        principal: Option<PrincipalKey>,
        owner: String,
        epoch: u64,
    ) -> Self {
        Self { connection, principal, owner, epoch }
    }
}

/// What makes two principals the same: client, issuer and subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrincipalKey {
    /// The OAuth client.
    pub client: String,
    /// Who issued the token.
    pub issuer: Option<String>,
    /// The user the client acts for.
    pub subject: Option<String>,
}

impl PrincipalKey {
    /// The identity of a principal.
    pub fn of(principal: &Principal) -> Self {
        let (client, issuer, subject) = principal.identity();
        Self { client: client.to_owned(), issuer: issuer.map(Into::into), subject: subject.map(Into::into) }
    }

    /// Whether it is this principal.
    pub fn is(&self, principal: &Principal) -> bool {
        (self.client.as_str(), self.issuer.as_deref(), self.subject.as_deref()) == principal.identity()
    }

    /// Whether what belongs to `own`, or to nobody, may be used by `other`.
    pub(crate) fn admits(own: Option<&Self>, other: Option<&Principal>) -> bool {
        match (own, other) {
            (None, None) => true,
            (Some(own), Some(other)) => own.is(other),
            _ => false,
        }
    }
}
