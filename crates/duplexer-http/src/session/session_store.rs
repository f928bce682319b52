//! Store of sessions that several nodes serve at the same time.

use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_server::ConnectionSnapshot;
use duplexer_server::subscriptions::Position;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::logging::LoggingLevel;
use serde::{Deserialize, Serialize};

use super::{PrincipalKey, StreamId};

/// Stores sessions and their requests in flight.
///
/// A session belongs to no node. A request belongs to the run that admitted it. The store alone decides when a session
/// has expired: what a node remembers of it is a cache. A session that was deleted stays unknown: for ten minutes
/// nothing is written under its id.
pub trait SessionStore: Send + Sync + 'static {
    /// Stores a new session. An id that exists, or that existed until recently, is never overwritten.
    fn create<'a>(
        &'a self,
        id: &'a str,
        record: &'a SessionRecord,
    ) -> BoxFuture<'a, Result<Created, StoreError>>;

    /// Admits one message: looks, compares, then changes, in one step. A message of another principal changes nothing,
    /// not even the time at which the session expires. For a request, registers it as in flight and opens its stream,
    /// with its run as writer and as reader number 1. Admitting the same request of the same run with the same stream
    /// again counts as a repetition.
    fn admit<'a>(
        &'a self,
        id: &'a str,
        admission: Admission<'a>,
    ) -> BoxFuture<'a, Result<Admitted, StoreError>>;

    /// Applies changes field by field, and returns the revision after them. `None`, and nothing is written, if there is
    /// no such session.
    fn update<'a>(
        &'a self,
        id: &'a str,
        changes: &'a [Change],
    ) -> BoxFuture<'a, Result<Option<Revision>, StoreError>>;

    /// Returns the run of a request in flight.
    fn locate<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
    ) -> BoxFuture<'a, Result<Option<Placement>, StoreError>>;

    /// Removes a request from those in flight, if it was admitted with this placement, and its stream, if that has no
    /// events. The last event of a request's stream removes the request too.
    fn release<'a>(
        &'a self,
        id: &'a str,
        request: &'a RequestId,
        placement: Placement,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Renews the expiry of sessions that a node still uses. Unknown ones are skipped.
    fn touch<'a>(&'a self, ids: &'a [Arc<str>]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes a session with its streams, and returns where its requests run.
    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<Placement>, StoreError>>;
}

/// Maximum number of requests in flight of one session, in all nodes together.
pub const MAX_REQUESTS_IN_FLIGHT: usize = 256;

/// Outcome of [`SessionStore::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Created {
    /// The session was stored, now or by an earlier attempt with the same record.
    New,
    /// The id is taken. Nothing was written.
    Exists,
}

/// A message to be admitted.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Admission<'a> {
    /// The principal of the message.
    pub principal: Option<&'a PrincipalKey>,
    /// The revision of the record that the node has, if it has one.
    pub known: Option<Revision>,
    /// The request, if the message is one.
    pub request: Option<NewRequest<'a>>,
}

impl<'a> Admission<'a> {
    /// Creates an admission of a message that is not a request.
    pub fn new(principal: Option<&'a PrincipalKey>, known: Option<Revision>) -> Self {
        Self { principal, known, request: None }
    }

    /// Admits a request.
    #[must_use]
    pub fn request(mut self, request: NewRequest<'a>) -> Self {
        self.request = Some(request);
        self
    }
}

/// A request to be registered as in flight.
#[derive(Clone, Copy, Debug)]
pub struct NewRequest<'a> {
    /// Its id.
    pub id: &'a RequestId,
    /// The run that serves it.
    pub run: RunId,
    /// The stream of its events. `None` if its response is one JSON body.
    pub stream: Option<StreamId>,
}

/// Outcome of [`SessionStore::admit`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Admitted {
    /// There is no such session, or it belongs to another principal.
    Unknown,
    /// A request with this id is in flight.
    InFlight,
    /// The limit of requests in flight of the session is reached.
    TooMany,
    /// Admitted. The record has the revision that the node knows.
    Current,
    /// Admitted. The node must use this record.
    Record(Box<SessionRecord>, Revision),
}

/// Revision of a record. It grows with every change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub u64);

/// One change of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The client has confirmed the handshake.
    Initialized,
    /// The client has set the minimum level of log messages.
    LogLevel(LoggingLevel),
    /// The client has subscribed to a URI.
    Subscribed(String),
    /// The client has unsubscribed from a URI.
    Unsubscribed(String),
}

impl Change {
    /// Returns the changes that lead from one state of a connection to another.
    pub fn between(from: &ConnectionSnapshot, to: &ConnectionSnapshot) -> Vec<Self> {
        let mut changes = Vec::new();
        if to.initialized && !from.initialized {
            changes.push(Self::Initialized);
        }
        if to.log_level != from.log_level {
            changes.push(Self::LogLevel(to.log_level));
        }
        let missing_in = |other: &[String], uri: &&String| other.binary_search(uri).is_err();
        let added = to.subscriptions.iter().filter(|uri| missing_in(&from.subscriptions, uri));
        changes.extend(added.cloned().map(Self::Subscribed));
        let removed = from.subscriptions.iter().filter(|uri| missing_in(&to.subscriptions, uri));
        changes.extend(removed.cloned().map(Self::Unsubscribed));
        changes
    }

    /// Applies the change to the state of a connection. Returns whether it makes a difference.
    pub fn apply(&self, state: &mut ConnectionSnapshot) -> bool {
        match self {
            Self::Initialized => !std::mem::replace(&mut state.initialized, true),
            Self::LogLevel(level) => std::mem::replace(&mut state.log_level, *level) != *level,
            Self::Subscribed(uri) => match state.subscriptions.binary_search(uri) {
                Ok(_) => false,
                Err(index) => {
                    state.subscriptions.insert(index, uri.clone());
                    true
                }
            },
            Self::Unsubscribed(uri) => match state.subscriptions.binary_search(uri) {
                Ok(index) => {
                    state.subscriptions.remove(index);
                    true
                }
                Err(_) => false,
            },
        }
    }
}

/// Where a request in flight runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The run that serves it.
    pub run: RunId,
    /// The stream of its events.
    pub stream: Option<StreamId>,
}

/// Stored state of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionRecord {
    /// The state of its connection.
    pub connection: ConnectionSnapshot,
    /// The principal that it belongs to.
    pub principal: Option<PrincipalKey>,
    /// The position of the last change before the session was opened.
    pub opened_at: Option<Position>,
}

impl SessionRecord {
    /// Creates a record.
    pub fn new(connection: ConnectionSnapshot, principal: Option<PrincipalKey>) -> Self {
        Self { connection, principal, opened_at: None }
    }

    /// Sets the position after which the client hears of changes.
    #[must_use]
    pub fn opened_at(mut self, position: Option<Position>) -> Self {
        self.opened_at = position;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(initialized: bool, level: &str, subscriptions: &[&str]) -> ConnectionSnapshot {
        let text = serde_json::json!({"version": "2025-11-25", "initialize": null, "initialized": initialized,
            "log_level": level, "subscriptions": subscriptions});
        serde_json::from_value(text).unwrap()
    }

    /// SCL-32: only the fields that differ are written, and applying them reproduces the other state.
    #[test]
    fn changes_are_the_fields_that_differ() {
        let (from, to) = (state(false, "info", &["a", "b"]), state(true, "error", &["b", "c"]));
        let changes = Change::between(&from, &to);
        assert_eq!(
            changes,
            [
                Change::Initialized,
                Change::LogLevel(LoggingLevel::Error),
                Change::Subscribed("c".into()),
                Change::Unsubscribed("a".into())
            ]
        );
        let mut state = from.clone();
        assert!(changes.iter().all(|change| change.apply(&mut state)));
        assert_eq!(state, to);
        assert!(!changes.iter().any(|change| change.apply(&mut state)), "a repetition changes nothing");
        assert_eq!(Change::between(&to, &to), []);
    }
}
