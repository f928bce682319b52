//! Stores for state that outlives a process or a connection, each with an implementation in memory.
//!
//! Without [`SharedStores`], a session lives in one process. Without an [`EventStore`], a client cannot resume a stream.
//! Every operation can be repeated: a caller that does not know whether an operation has happened runs it again.

mod event_store;
mod memory_cluster;
mod memory_events;
mod memory_sessions;
mod nodes;
mod session_store;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use duplexer_server::Principal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use event_store::{
    Appended, Attach, Attached, Batch, Concluded, EventKind, EventStore, Numbering, Page, StoredEvent,
    StreamId, StreamKey, StreamReader, Takeover, Wake,
};
pub use memory_cluster::MemoryCluster;
pub use memory_events::{EventLimits, MemoryEventStore};
pub use memory_sessions::MemorySessionStore;
pub use nodes::{Health, NodeListener, NodeMessage, Nodes, Sent};
pub use session_store::{
    Admission, Admitted, Change, Created, MAX_REQUESTS_IN_FLIGHT, NewRequest, Placement, Revision,
    SessionRecord, SessionStore,
};

/// The stores that the nodes of one server share. A session belongs to no node: every node serves every message of it.
#[derive(Clone)]
#[non_exhaustive]
pub struct SharedStores {
    /// The sessions, and their requests in flight.
    pub sessions: Arc<dyn SessionStore>,
    /// The events of streams. Requests that `sessions` admits have their stream here.
    pub events: Arc<dyn EventStore>,
    /// The other nodes.
    pub nodes: Arc<dyn Nodes>,
    pub(crate) reach: Reach,
}

/// Where the nodes are that share stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// In this process, for tests.
    Process,
    Processes,
}

impl SharedStores {
    /// Creates the stores of one node.
    pub fn new(sessions: Arc<dyn SessionStore>, events: Arc<dyn EventStore>, nodes: Arc<dyn Nodes>) -> Self {
        Self { sessions, events, nodes, reach: Reach::Processes }
    }
}

impl fmt::Debug for SharedStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStores").field("run", &self.nodes.run()).finish_non_exhaustive()
    }
}

/// Digest of a session id: the id itself is a secret, and is never sent to another node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SessionDigest(pub u128);

impl SessionDigest {
    /// Returns the first 128 bits of the SHA-256 of a session id.
    pub fn of(id: &str) -> Self {
        let digest = Sha256::digest(id.as_bytes());
        Self(digest.iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
    }
}

impl fmt::Display for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The same 32 digits.
        StreamId(self.0).fmt(f)
    }
}

impl fmt::Debug for SessionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionDigest({self})")
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
