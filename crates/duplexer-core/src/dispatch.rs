//! Dispatch: who asked what, and who waits for which answer, in both directions.
//!
//! The dispatcher knows JSON-RPC and not MCP: methods and params are opaque to it, except that the peer can
//! cancel a request and report progress. What it knows of servers and clients is [`Inbound`], which sits above
//! it, and [`Outbound`], which it offers to them.

pub(crate) mod call_table;
pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod control_messages;
pub(crate) mod direct;
pub(crate) mod frame;
pub(crate) mod in_flight;
pub(crate) mod invocation;
pub(crate) mod jsonrpc;
pub(crate) mod outbound;
pub(crate) mod outbox;
pub(crate) mod outgoing_call;
pub(crate) mod panic;
pub(crate) mod sync;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use duplexer_types::jsonrpc::Body;

use crate::error::McpError;

pub use call_table::{Accepted, Correlation, FrameLine, NotAccepted, Owed};
pub use clock::{CallClock, ClockPause};
pub use context::{CallContext, Cancellation, Channel};
pub use direct::{DirectDispatcher, DirectOptions, DirectPeer};
pub use frame::{Frame, Rejected};
pub use invocation::Invocation;
pub use jsonrpc::{
    CancelMode, DispatchOptions, FailureMode, JsonRpcDispatcher, Limits, Observer, Peer, RunError, Unreadable,
};
pub use outbound::{
    Abandon, BoxFuture, CallOptions, NoChannel, NotifyOnly, Outbound, OutboundHook, OutboundRequest,
    OutboundSpan, Progress, ProgressCallback, Sending, StreamClosing,
};
pub use panic::{Contained, contain};
pub use sync::lock;

/// What sits above a dispatcher: it is given requests and notifications.
pub trait Inbound: Send + Sync + 'static {
    /// What a request is answered with; it writes itself into the frame.
    type Reply: Body + Send + 'static;

    /// Handles a request, beside all others; dropping the future interrupts it.
    fn request(
        self: Arc<Self>,
        cx: CallContext,
        call: Arc<Invocation>,
    ) -> impl Future<Output = Result<Self::Reply, McpError>> + Send + 'static;

    /// Handles a notification. One whose handler waits is overtaken by what comes after it.
    fn notification(
        self: Arc<Self>,
        cx: CallContext,
        call: Arc<Invocation>,
    ) -> impl Future<Output = ()> + Send + 'static;

    /// How a request is run. Asked once per request, in the order of the wire.
    fn lane(&self, _call: &Invocation) -> Lane {
        Lane::Ordinary
    }

    /// Sees every notification in the order of the wire, before its handler starts.
    fn intercept(&self, _call: &Invocation) -> Intercept {
        Intercept::Forward
    }

    /// Whether an array of messages is a frame at this moment.
    fn batches(&self) -> Batches {
        Batches::Refused
    }
}

/// A dispatcher of any kind: it serves one connection.
pub trait Dispatch: Send + 'static {
    /// Serves until the connection ends. Consumes the dispatcher: no loop runs twice.
    fn run<I: Inbound>(self, inbound: Arc<I>) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// How a request is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Nothing else is read until it has ended. It must not wait for the peer.
    Inline,
    /// Beside all others, within the limit of running handlers.
    Ordinary,
    /// Beside all others for as long as the peer likes; takes no handler's place.
    Standing,
}

/// What becomes of a notification after it was intercepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intercept {
    /// Its handler sees it too.
    Forward,
    /// It ends here.
    Consume,
}

/// Whether arrays of messages are frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batches {
    /// They are taken apart.
    Accepted,
    /// They are answered with an error.
    Refused,
}
