//! The other nodes of a server: messages to them, and whether they are alive.

use std::sync::Weak;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_types::jsonrpc::RequestId;

use super::SessionDigest;

/// The nodes that share the stores. Each has an inbox, and a lease that ends soon after its process.
pub trait Nodes: Send + Sync + 'static {
    /// Returns the current run of this node. A node whose lease has ended gets another run.
    fn run(&self) -> RunId;

    /// Sends a message to the inbox of a run. A repetition can deliver it twice.
    fn send<'a>(&'a self, to: RunId, message: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>>;

    /// Sets the receiver of this node's inbox. Messages that arrived before are delivered to it.
    fn receive(&self, listener: Weak<dyn NodeListener>);

    /// Returns whether a run has a lease.
    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns the state of the link to the stores. Never waits.
    fn health(&self) -> Health;

    /// Ends the lease of this node, as the last step of its shutdown.
    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Receives the messages of other nodes. It must not block.
pub trait NodeListener: Send + Sync {
    /// Handles one message.
    fn receive(&self, message: NodeMessage);
}

/// Outcome of [`Nodes::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sent {
    /// The inbox has the message.
    Queued,
    /// The run has no lease. The message was dropped.
    Gone,
}

/// State of the link to the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Operations succeed.
    Healthy,
    /// Operations have failed for some seconds. The lease still holds.
    Degraded,
    /// No operation has succeeded for so long that the lease is gone.
    Disconnected,
}

/// A message from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeMessage {
    /// The client has answered a request of the server.
    Response {
        /// The session.
        session: SessionDigest,
        /// The response as JSON text, with its id.
        message: Bytes,
    },
    /// The client reports progress of a request of the server.
    Progress {
        /// The session.
        session: SessionDigest,
        /// The notification as JSON text.
        message: Bytes,
    },
    /// The client has cancelled its request.
    Cancelled {
        /// The session.
        session: SessionDigest,
        /// The request.
        request: RequestId,
    },
    /// The client has ended the session.
    Deleted {
        /// The session.
        session: SessionDigest,
    },
    /// Part of a message of a client of HTTP+SSE, for the run that holds its stream.
    Posted {
        /// The digest of the stream's id.
        link: SessionDigest,
        /// The sender and the message, as JSON text.
        message: Bytes,
    },
}
