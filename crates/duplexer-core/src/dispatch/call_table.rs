//! The call table of a connection: calls in flight in both directions, and what messages of the peer do to them.
//!
//! [`Calls`] is the table without a lock; the JSON-RPC dispatcher keeps it behind the lock of the connection.
//! [`Correlation`] is the table of a connection that has no read loop: every message arrives by itself, and the caller of a
//! request chooses the channel. For transports such as sessions over HTTP.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use duplexer_types::jsonrpc::RequestId;

use super::in_flight::{Generation, InFlight, Outstanding, Taken};
use super::outbound::{OutboundHook, OutboundRequest, Sending};
use super::outbox::Delivery;
use super::outgoing_call::{self, CallTransport, PendingCall};
use super::{Cancellation, Invocation, control_messages, lock};
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
        self.raise();
    }
}

/// A connection that has a call table behind a lock. Callbacks and wake-ups always run without the lock.
pub(crate) trait LockedCalls: Send + Sync {
    type Incoming: Cancellable;

    /// Runs `act` with the lock held.
    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls<Self::Incoming>) -> R) -> R;

    /// Registers an outgoing call under the chosen id, or under a fresh one.
    fn register(&self, chosen: Option<RequestId>, call: PendingCall) -> Result<RequestId, CallError> {
        self.with_calls(|calls| match calls.phase {
            Phase::Idle => Err(CallError::NotRunning),
            Phase::Closed => Err(CallError::Closed),
            Phase::Running => {
                calls.outgoing.register(chosen, call).map_err(|Taken(id)| CallError::DuplicateId(id))
            }
        })
    }

    /// Completes the outgoing call that the peer has answered.
    fn settle(&self, id: &RequestId, response: Result<ByteString, CallError>) {
        match self.with_calls(|calls| calls.outgoing.settle(id)) {
            Some(call) => call.settle(response),
            None => tracing::debug!(%id, "a response without a pending request is dropped"),
        }
    }

    /// Applies a notification that the table understands: a cancelled request, or progress of an outgoing call.
    fn observe(&self, notification: &Invocation) {
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
pub struct Correlation {
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
pub enum NotAccepted {
    /// Its id is in flight already. The first request continues.
    InFlight,
    /// The connection has ended.
    Closed,
}

/// Whether a request that has ended is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// The peer waits for the response.
    Answer,
    /// The peer has cancelled the request, so there is no response.
    Nothing,
}

/// A channel for the frames of our own requests.
pub trait FrameLine: Send + Sync {
    /// Queues a frame; the future waits for capacity. Fails if no peer will ever read it.
    fn send(&self, frame: &[u8]) -> Result<Sending, CallError>;

    /// Queues a frame that cannot wait, beyond any limit.
    fn send_now(&self, frame: &[u8]);
}

impl LockedCalls for Correlation {
    type Incoming = Arc<Cancellation>;

    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls<Arc<Cancellation>>) -> R) -> R {
        act(&mut lock(&self.calls))
    }
}

impl Correlation {
    /// Creates an empty table. `hook` observes every own request.
    pub fn new(hook: Option<Arc<dyn OutboundHook>>) -> Self {
        Self { calls: Mutex::new(Calls::new(Phase::Running)), hook }
    }

    /// Accepts a request of the peer.
    pub fn accept(&self, id: RequestId) -> Result<Accepted, NotAccepted> {
        let cancellation = Arc::new(Cancellation::new());
        self.with_calls(|calls| {
            if calls.phase == Phase::Closed {
                return Err(NotAccepted::Closed);
            }
            let (mut given, kept) = (None, Arc::clone(&cancellation));
            let accepted = calls.incoming.accept(id.clone(), |generation| {
                given = Some(generation);
                kept
            });
            match (accepted, given) {
                (Ok(_), Some(generation)) => Ok(Accepted { id, generation, cancellation }),
                _ => Err(NotAccepted::InFlight),
            }
        })
    }

    /// Removes a request whose handler has ended, and returns whether it is answered.
    pub fn finish(&self, accepted: &Accepted) -> Owed {
        match self.with_calls(|calls| calls.incoming.finish(&accepted.id, accepted.generation)) {
            Some(_) => Owed::Answer,
            None => Owed::Nothing,
        }
    }

    /// Completes the own request that the peer has answered.
    pub fn settle(&self, id: &RequestId, answer: Result<ByteString, CallError>) {
        LockedCalls::settle(self, id, answer);
    }

    /// Applies a notification, in the order of arrival: it can cancel a request or report progress.
    pub fn observe(&self, call: &Invocation) {
        LockedCalls::observe(self, call);
    }

    /// Sends a request of our own over `line` and waits for the response; see [`super::Outbound::request`].
    pub async fn call(
        &self,
        request: OutboundRequest,
        line: &dyn FrameLine,
    ) -> Result<ByteString, CallError> {
        outgoing_call::call(&Correlated { table: self, line }, self.hook.as_deref(), request).await
    }

    /// Ends the connection: own requests fail, and no further request is accepted. Requests in flight are cancelled and
    /// still answered.
    pub fn close(&self) {
        self.close_outgoing();
        let running: Vec<_> = self.with_calls(|calls| calls.incoming.all().map(Arc::clone).collect());
        for cancellation in running {
            cancellation.raise();
        }
    }
}

impl fmt::Debug for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Correlation").field("phase", &lock(&self.calls).phase).finish_non_exhaustive()
    }
}

struct Correlated<'a> {
    table: &'a Correlation,
    line: &'a dyn FrameLine,
}

impl CallTransport for Correlated<'_> {
    type Table = Correlation;

    fn table(&self) -> &Correlation {
        self.table
    }

    async fn send(&self, frame: Vec<u8>) -> Result<u64, CallError> {
        self.line.send(&frame)?.await;
        Ok(0)
    }

    /// A queued frame counts as written: how fast the peer reads is between the peer and its stream.
    async fn delivery(&self, _: u64) -> Delivery {
        Delivery::Written
    }

    fn send_cancel(&self, frame: &[u8]) {
        self.line.send_now(frame);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::dispatch::CallOptions;

    #[derive(Default)]
    struct Sent(Mutex<Vec<String>>);

    impl FrameLine for Sent {
        fn send(&self, frame: &[u8]) -> Result<Sending, CallError> {
            self.send_now(frame);
            Ok(Sending::done())
        }

        fn send_now(&self, frame: &[u8]) {
            lock(&self.0).push(String::from_utf8(frame.to_vec()).unwrap());
        }
    }

    fn notification(method: &str, params: &str) -> Invocation {
        Invocation::new(method.to_owned(), Some(params.into()))
    }

    /// DISP-22: the first of two requests with one id runs on; the id is free again after its end.
    #[test]
    fn an_id_is_taken_while_it_is_in_flight() {
        let correlation = Correlation::new(None);
        let first = correlation.accept(1_i64.into()).unwrap();
        assert_eq!(correlation.accept(1_i64.into()).unwrap_err(), NotAccepted::InFlight);
        assert!(correlation.accept("1".into()).is_ok());
        assert_eq!(correlation.finish(&first), Owed::Answer);
        assert!(correlation.accept(1_i64.into()).is_ok());
    }

    /// A request that the peer cancels is not answered, and its handler sees the cancellation.
    #[test]
    fn a_cancelled_request_is_not_answered() {
        let correlation = Correlation::new(None);
        let call = correlation.accept(7_i64.into()).unwrap();
        correlation.observe(&notification(control_messages::CANCELLED, r#"{"requestId":"7"}"#));
        assert!(call.cancellation().is_raised());
        assert_eq!(correlation.finish(&call), Owed::Nothing);
    }

    #[tokio::test]
    async fn an_answer_and_its_progress_find_the_caller() {
        let correlation = Correlation::new(None);
        let line = Sent::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&seen);
        let options = CallOptions::new().on_progress(move |progress| lock(&reported).push(progress.progress));
        let request = OutboundRequest::new("x/y").options(options);
        let peer = async {
            correlation
                .observe(&notification(control_messages::PROGRESS, r#"{"progressToken":1,"progress":5}"#));
            correlation.settle(&1_i64.into(), Ok("{}".into()));
        };
        let (answer, ()) = tokio::join!(correlation.call(request, &line), peer);
        assert_eq!(answer.unwrap(), "{}");
        assert_eq!(*lock(&seen), [5.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_cancels_the_request() {
        let correlation = Correlation::new(None);
        let line = Sent::default();
        let options = CallOptions::new().timeout(Duration::from_secs(1));
        let outcome = correlation.call(OutboundRequest::new("x/y").options(options), &line).await;
        assert!(matches!(outcome, Err(CallError::Timeout(_))));
        let sent = lock(&line.0).clone();
        assert!(sent[1].contains(r#""requestId":1"#), "{sent:?}");
    }

    #[tokio::test]
    async fn the_end_of_the_connection_ends_what_waits() {
        let correlation = Correlation::new(None);
        let line = Sent::default();
        let call = correlation.accept(1_i64.into()).unwrap();
        let (outcome, ()) =
            tokio::join!(correlation.call(OutboundRequest::new("x/y"), &line), async { correlation.close() });
        assert!(matches!(outcome, Err(CallError::Closed)));
        assert!(call.cancellation().is_raised());
        assert_eq!(correlation.finish(&call), Owed::Answer);
        assert_eq!(correlation.accept(2_i64.into()).unwrap_err(), NotAccepted::Closed);
        let late = correlation.call(OutboundRequest::new("x/y"), &line).await;
        assert!(matches!(late, Err(CallError::Closed)));
    }
}
