//! Dispatch: correlates requests and responses of one connection, in both directions.
//!
//! The dispatcher knows JSON-RPC and not MCP: methods and params are opaque to it, except that the peer can cancel a request
//! and report progress. Servers and clients implement [`Inbound`], and get [`Outbound`] from it.

pub(crate) mod call_table;
mod call_timeout;
pub(crate) mod context;
pub(crate) mod control_messages;
pub(crate) mod delivery;
pub(crate) mod direct;
pub(crate) mod frame;
pub(crate) mod in_flight;
pub(crate) mod jsonrpc;
pub(crate) mod message;
pub(crate) mod outbound;
pub(crate) mod outbox;
pub(crate) mod outgoing_call;
pub(crate) mod panic;
pub(crate) mod params;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::Body;

use crate::error::McpError;

pub use sync::lock;

pub use crate::clock::{CallClock, ClockPause};
pub use call_table::{Accepted, CallTable, Disposition, FrameSink, RejectReason};
pub use context::{CallContext, Cancellation, Channel, Latch};
pub use control_messages::cancelled;
pub use direct::{DirectDispatcher, DirectOptions, DirectPeer};
pub use frame::{Frame, Rejected};
pub use jsonrpc::{
    AnnouncedWatchdog, CancelMode, DispatchLimits, DispatchOptions, FailureMode, JsonRpcDispatcher, Observer,
    Peer, RunError, Unreadable, Writes,
};
pub use message::Message;
pub use outbound::{
    BoxFuture, CallOptions, NoChannel, NotifyFuture, NotifyOnly, OnDrop, Outbound, OutboundHook,
    OutboundRequest, OutboundSpan, Progress, ProgressCallback, StreamClosing,
};
pub use panic::{CatchUnwind, catch_unwind};

/// The layer above a dispatcher: it handles requests and notifications.
pub trait Inbound: Send + Sync + 'static {
    /// The result of a request; it writes itself into the frame.
    type Reply: Body + Send + 'static;

    /// Handles a request, concurrently with all others. Dropping the future interrupts it.
    fn request(
        self: &Arc<Self>,
        cx: CallContext,
        call: Arc<Message>,
    ) -> impl Future<Output = Result<Self::Reply, McpError>> + Send;

    /// Handles a notification. Later messages overtake one whose handler waits.
    fn notification(self: &Arc<Self>, cx: CallContext, call: Arc<Message>)
    -> impl Future<Output = ()> + Send;

    /// Returns how a request is run. Called once per request, in wire order.
    fn schedule(&self, _call: &Message) -> Schedule {
        Schedule::Concurrent
    }

    /// Called with every notification in wire order, before its handler starts.
    fn on_notification_read(&self, _call: &Message) -> NotificationRoute {
        NotificationRoute::Forward
    }

    /// Returns the response to a request that the end of the connection cuts off.
    fn cut_off(&self) -> ErrorObject {
        ErrorObject::connection_closed()
    }

    /// Returns whether batches are accepted at this moment.
    fn batches(&self) -> Batches {
        Batches::Refused
    }
}

/// A dispatcher, which serves one connection.
pub trait Dispatch: Send + 'static {
    /// Serves until the connection ends. Consumes the dispatcher: no loop runs twice.
    fn run<I: Inbound>(self, inbound: Arc<I>) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// How the handler of a request is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Nothing else is read until it has ended. The handler must not wait for the peer.
    Inline,
    /// Concurrently with all others, within the limit of running handlers.
    Concurrent,
    /// Concurrently with all others until the peer ends it. It does not count as a running handler.
    LongLived,
}

/// What is done with a notification after [`Inbound`] has seen it in wire order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationRoute {
    /// Its handler runs.
    Forward,
    /// It is dropped.
    Consume,
}

/// Whether batches (arrays of messages) are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// Their messages are handled one by one.
    Accepted,
    /// They are answered with an error.
    Refused,
}

/// Primitives of the synchronisation code, under one name each.
///
/// The files that use them are also compiled against a model checker's versions; see `tests/model/`.
pub(crate) mod sync {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
    pub(crate) use std::thread::{self, Thread};
    pub(crate) use std::thread_local;

    /// Locks a mutex. A panic while it is held cannot leave its data inconsistent: every change is one step.
    pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
