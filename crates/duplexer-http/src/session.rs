//! Stores for state that outlives a process or a connection, each with an implementation in memory.
//!
//! Without a [`SessionStore`], a session ends with its process. Without an [`EventStore`], a client cannot resume a
//! stream.

mod memory_events;
mod memory_sessions;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::{ConnectionSnapshot, Principal};
use serde::{Deserialize, Serialize};

pub use memory_events::MemoryEventStore;
pub use memory_sessions::MemorySessionStore;

/// Stores the events of streams for clients that lose their connection.
///
/// A stream is identified by its session and its id together, so that one session cannot read events of another.
pub trait EventStore: Send + Sync + 'static {
    /// Stores an event. The sequence numbers of a stream start at zero and grow by one.
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Returns the events of a stream after a sequence number, oldest first. `None` if the stream is unknown.
    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>>;

    /// Removes the events of a session that has ended.
    fn forget(&self, session: &str) -> BoxFuture<'_, Result<(), BoxError>>;
}

impl<T: EventStore + ?Sized> EventStore for Arc<T> {
    fn append(&self, stream: &StreamKey, event: StoredEvent) -> BoxFuture<'_, Result<(), BoxError>> {
        (**self).append(stream, event)
    }

    fn replay(
        &self,
        stream: &StreamKey,
        after: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<StoredEvent>>, BoxError>> {
        (**self).replay(stream, after)
    }

    fn forget(&self, session: &str) -> BoxFuture<'_, Result<(), BoxError>> {
        (**self).forget(session)
    }
}

/// One stream of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamKey {
    /// The id of the session.
    pub session: Arc<str>,
    /// The id of the stream.
    pub stream: StreamId,
}

impl StreamKey {
    /// Creates the key of a stream.
    pub fn new(session: Arc<str>, stream: StreamId) -> Self {
        Self { session, stream }
    }
}

/// Id of a stream within its session: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamId(pub u128);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// One stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// The sequence number in the stream.
    pub sequence: u64,
    /// The message as JSON text. Empty in a priming event.
    pub data: Bytes,
    /// The role of the event in the stream.
    pub kind: EventKind,
}

impl StoredEvent {
    /// Creates an event.
    pub fn new(sequence: u64, data: Bytes, kind: EventKind) -> Self {
        Self { sequence, data, kind }
    }
}

/// Role of an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The first event, without a message: its id lets the client resume from the start.
    Priming,
    /// A message.
    Message,
    /// The last message: the response to the request of the stream.
    Final,
}

/// Stores the state of sessions beyond one process.
///
/// A session has one owner at a time. A node that claims it from another raises its epoch, and the store rejects later
/// writes of the earlier owner under the old epoch.
pub trait SessionStore: Send + Sync + 'static {
    /// Saves a new session, or overwrites a record that does not have a later epoch.
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<SaveOutcome, BoxError>>;

    /// Returns the record of a session. `None` if there is no such session. Changes nothing: neither the owner nor the
    /// time at which the session expires.
    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>>;

    /// Makes `node` the owner of a session and returns its record. `None` if there is no such session. Raises the epoch
    /// if the owner changes.
    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>>;

    /// Removes a session, unless it has a later epoch.
    fn remove(&self, id: &str, epoch: u64) -> BoxFuture<'_, Result<(), BoxError>>;
}

impl<T: SessionStore + ?Sized> SessionStore for Arc<T> {
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<SaveOutcome, BoxError>> {
        (**self).save(id, record)
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        (**self).load(id)
    }

    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        (**self).claim(id, node)
    }

    fn remove(&self, id: &str, epoch: u64) -> BoxFuture<'_, Result<(), BoxError>> {
        (**self).remove(id, epoch)
    }
}

/// Outcome of [`SessionStore::save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SaveOutcome {
    /// The record was written.
    Saved,
    /// The record was not written: another node has claimed the session since.
    StaleEpoch,
}

/// Stored state of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The state of its connection.
    pub connection: ConnectionSnapshot,
    /// The principal that it belongs to.
    pub principal: Option<PrincipalKey>,
    /// The node that serves it.
    pub owner: String,
    /// Grows with every change of the owner.
    pub epoch: u64,
}

impl SessionRecord {
    /// Creates a record.
    pub fn new(
        connection: ConnectionSnapshot,
        principal: Option<PrincipalKey>,
        owner: String,
        epoch: u64,
    ) -> Self {
        Self { connection, principal, owner, epoch }
    }
}

/// Identity of a principal: client, issuer and subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrincipalKey {
    /// The OAuth client.
    pub client: String,
    /// The issuer of the token.
    pub issuer: Option<String>,
    /// The user on whose behalf the client acts.
    pub subject: Option<String>,
}

impl PrincipalKey {
    /// Returns the identity of a principal.
    pub fn of(principal: &Principal) -> Self {
        let (client, issuer, subject) = principal.identity();
        Self { client: client.to_owned(), issuer: issuer.map(Into::into), subject: subject.map(Into::into) }
    }

    /// Returns whether this is the identity of the principal.
    pub fn is(&self, principal: &Principal) -> bool {
        (self.client.as_str(), self.issuer.as_deref(), self.subject.as_deref()) == principal.identity()
    }

    /// Returns whether `other` can use what belongs to `own`. Without an owner, only a caller without a principal can.
    pub(crate) fn admits(own: Option<&Self>, other: Option<&Principal>) -> bool {
        match (own, other) {
            (None, None) => true,
            (Some(own), Some(other)) => own.is(other),
            _ => false,
        }
    }
}
