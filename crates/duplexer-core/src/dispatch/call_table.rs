//! The call table of a connection: calls in flight in both directions, and what messages of the peer do to them.
//!
//! [`Calls`] is the table without a lock; the JSON-RPC dispatcher keeps it behind the lock of the connection.
//! [`CallTable`] is the table of a connection that has no read loop: every message arrives by itself, and the caller of a
//! request chooses the channel. For transports such as sessions over HTTP.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use duplexer_types::jsonrpc::RequestId;

use super::delivery::Delivery;
use super::in_flight::{Generation, InFlight, Outstanding, Taken};
use super::outbound::{NotifyFuture, OutboundHook, OutboundRequest};
use super::outgoing_call::{self, CallTransport, PendingCall};
use super::params::Params;
use super::{Cancellation, Message, control_messages, lock};
use crate::error::CallError;

/// Calls in flight, in both directions. `C` is the entry of a request of the peer.
pub(crate) struct Calls<C> {
    pub(crate) phase: Phase,
    pub(crate) outgoing: Outstanding<PendingCall>,
    pub(crate) incoming: InFlight<C>,
}

/// Whether responses of the peer are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not yet.
    Idle,
    Running,
    /// No longer.
    Closed,
}

impl<C> Calls<C> {
    pub(crate) fn new(phase: Phase) -> Self {
        Self { phase, outgoing: Outstanding::new(), incoming: InFlight::new() }
    }
}

/// The entry of a request of the peer.
pub(crate) trait Cancellable {
    /// Cancels the request on behalf of the peer.
    fn cancel(&self);
}

impl Cancellable for Arc<Cancellation> {
    fn cancel(&self) {
        Cancellation::cancel(self);
    }
}

/// A connection that has a call table behind a lock. Callbacks and wake-ups always run without the lock.
pub(crate) trait LockedCalls: Send + Sync {
    type Incoming: Cancellable;

    /// Runs `act` with the lock held.
    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls<Self::Incoming>) -> R) -> R;

    /// Registers an outgoing call under the chosen id, or under a fresh one. Returns also how many are outstanding then.
    fn register(
        &self,
        chosen: Option<RequestId>,
        call: PendingCall,
    ) -> Result<(RequestId, usize), CallError> {
        self.with_calls(|calls| match calls.phase {
            Phase::Idle => Err(CallError::NotRunning),
            Phase::Closed => Err(CallError::Closed),
            Phase::Running => {
                let registered = calls.outgoing.register(chosen, call);
                let id = registered.map_err(|Taken(id)| CallError::DuplicateId(id))?;
                Ok((id, calls.outgoing.len()))
            }
        })
    }

    /// Completes the outgoing call that the peer has answered.
    fn settle(&self, id: &RequestId, response: Result<ByteString, CallError>) {
        let call = self.with_calls(|calls| calls.outgoing.settle(id));
        if let Some(call) = call {
            call.settle(response);
        } else {
            tracing::debug!(%id, "a response without a pending request is dropped");
        }
    }

    /// Applies a notification that the table understands: a cancelled request, or progress of an outgoing call.
    fn observe(&self, notification: &Message) {
        match notification.method() {
            control_messages::CANCELLED => {
                let Some(id) = control_messages::cancelled(notification.params()) else { return };
                let cancelled = self.with_calls(|calls| calls.incoming.cancel(&id));
                if let Some(call) = cancelled {
                    call.cancel();
                }
            }
            control_messages::PROGRESS => {
                let Some((token, progress)) = control_messages::progress(notification.params()) else {
                    return;
                };
                let callback =
                    self.with_calls(|calls| calls.outgoing.find(&token).and_then(PendingCall::on_progress));
                if let Some(callback) = callback {
                    callback.call(progress);
                }
            }
            _ => {}
        }
    }

    /// Fails every outgoing call, and those that are made from now on: the peer's responses are no longer read.
    fn close_outgoing(&self) {
        let pending = self.with_calls(|calls| {
            calls.phase = Phase::Closed;
            calls.outgoing.drain()
        });
        for call in pending {
            call.settle(Err(CallError::Closed));
        }
    }
}

/// The call table of one connection, both ways.
pub struct CallTable {
    calls: Mutex<Calls<Arc<Cancellation>>>,
    hook: Option<Arc<dyn OutboundHook>>,
}

/// A request of the peer that has been accepted.
#[derive(Debug)]
pub struct Accepted {
    id: RequestId,
    generation: Generation,
    cancellation: Arc<Cancellation>,
}

impl Accepted {
    /// Returns its id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Returns its cancellation, which occurs when the peer cancels it or the connection ends.
    pub fn cancellation(&self) -> &Arc<Cancellation> {
        &self.cancellation
    }
}

/// Why a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// Its id is in flight already. The first request continues.
    InFlight,
    /// The connection has ended.
    Closed,
}

/// Whether a request that has ended is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The peer waits for the response.
    Respond,
    /// The peer has cancelled the request, so there is no response.
    Cancelled,
}

/// A channel for the frames of our own requests.
pub trait FrameSink: Send + Sync {
    /// Queues a frame; the future waits for capacity.
    ///
    /// # Errors
    ///
    /// Fails if no peer will ever read the frame.
    fn send(&self, frame: &[u8]) -> Result<NotifyFuture, CallError>;

    /// Queues a frame that cannot wait, beyond any limit.
    fn send_now(&self, frame: &[u8]);
}

impl LockedCalls for CallTable {
    type Incoming = Arc<Cancellation>;

    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls<Arc<Cancellation>>) -> R) -> R {
        act(&mut lock(&self.calls))
    }
}

impl CallTable {
    /// Creates an empty table. `hook` observes every own request.
    pub fn new(hook: Option<Arc<dyn OutboundHook>>) -> Self {
        Self { calls: Mutex::new(Calls::new(Phase::Running)), hook }
    }

    /// Accepts a request of the peer.
    ///
    /// # Errors
    ///
    /// Fails if the connection has ended, or if a request with this id is in flight.
    pub fn accept(&self, id: RequestId) -> Result<Accepted, RejectReason> {
        let cancellation = Arc::new(Cancellation::new());
        self.with_calls(|calls| {
            if calls.phase == Phase::Closed {
                return Err(RejectReason::Closed);
            }
            let (mut given, kept) = (None, Arc::clone(&cancellation));
            let accepted = calls.incoming.accept(id.clone(), |generation| {
                given = Some(generation);
                kept
            });
            match (accepted, given) {
                (Ok(_), Some(generation)) => Ok(Accepted { id, generation, cancellation }),
                _ => Err(RejectReason::InFlight),
            }
        })
    }

    /// Removes a request whose handler has ended, and returns whether it is answered.
    pub fn finish(&self, accepted: &Accepted) -> Disposition {
        match self.with_calls(|calls| calls.incoming.finish(&accepted.id, accepted.generation)) {
            Some(_) => Disposition::Respond,
            None => Disposition::Cancelled,
        }
    }

    /// Completes the own request that the peer has answered.
    pub fn settle(&self, id: &RequestId, answer: Result<ByteString, CallError>) {
        LockedCalls::settle(self, id, answer);
    }

    /// Applies a notification, in the order of arrival: it can cancel a request or report progress.
    pub fn observe(&self, call: &Message) {
        LockedCalls::observe(self, call);
    }

    /// Sends a request of our own over `line` and waits for the response.
    ///
    /// # Errors
    ///
    /// Fails if the peer answers with an error, if the request cannot be sent, if the connection ends first, or if the time
    /// of the request is over.
    pub fn call<'a>(
        &'a self,
        mut request: OutboundRequest,
        line: &'a dyn FrameSink,
    ) -> impl Future<Output = Result<ByteString, CallError>> + Send + use<'a> {
        let params = request.params.take().map(Params::Json);
        outgoing_call::call(Correlated { table: self, line }, self.hook.as_deref(), request, params)
    }

    /// Ends the connection: own requests fail, and no further request is accepted. Requests in flight are cancelled and
    /// still answered.
    pub fn close(&self) {
        self.close_outgoing();
        let running: Vec<_> = self.with_calls(|calls| calls.incoming.all().map(Arc::clone).collect());
        for cancellation in running {
            cancellation.cancel();
        }
    }
}

impl fmt::Debug for CallTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallTable").field("phase", &lock(&self.calls).phase).finish_non_exhaustive()
    }
}

struct Correlated<'a> {
    table: &'a CallTable,
    line: &'a dyn FrameSink,
}

impl CallTransport for Correlated<'_> {
    type Table = CallTable;

    fn table(&self) -> &CallTable {
        self.table
    }

    async fn send(&self, frame: Vec<u8>) -> Result<u64, CallError> {
        self.line.send(&frame)?.await;
        Ok(0)
    }

    /// A queued frame counts as written: how fast the peer reads is between the peer and its stream.
    async fn late_delivery(&self, _: u64) -> Delivery {
        std::future::pending().await
    }

    fn is_written(&self, _: u64) -> bool {
        true
    }

    fn send_cancel(&self, frame: &[u8]) {
        self.line.send_now(frame);
    }
}
