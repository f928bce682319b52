//! Who waits for whom on a connection that has no loop of its own: every message arrives by itself, and what is sent
//! goes whichever way its sender has. For transports such as sessions over HTTP.

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

/// The correlation of one connection, both ways.
pub struct Correlation {
    table: Mutex<Table>,
    hook: Option<Arc<dyn OutboundHook>>,
}

struct Table {
    outgoing: Outstanding<PendingCall>,
    incoming: InFlight<Arc<Cancellation>>,
    closed: bool,
}

/// A request of the peer that has been taken in.
#[derive(Debug)]
pub struct Accepted {
    id: RequestId,
    generation: Generation,
    cancellation: Arc<Cancellation>,
}

impl Accepted {
    /// Its id.
    pub fn id(&self) -> &RequestId {
        &self.id
    }

    /// Raised when the peer calls it off, or the connection ends.
    pub fn cancellation(&self) -> &Arc<Cancellation> {
        &self.cancellation
    }
}

/// Why a request is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// Its id is in flight already: the first runs on.
    InFlight,
    /// The connection has ended.
    Closed,
}

/// Whether a request that has ended is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// It is owed an answer.
    Answer,
    /// The peer has called it off.
    Nothing,
}

/// A way for the frames of our own requests.
pub trait FrameLine: Send + Sync {
    /// Queues a frame; there may be something to wait for. An error if nobody will ever read it.
    fn send(&self, frame: &[u8]) -> Result<Sending, CallError>;

    /// Queues a frame that cannot wait, beyond any limit.
    fn send_now(&self, frame: &[u8]);
}

impl Correlation {
    /// Nobody waits for anybody yet. `hook` sees every own request.
    pub fn new(hook: Option<Arc<dyn OutboundHook>>) -> Self {
        let table = Table { outgoing: Outstanding::new(), incoming: InFlight::new(), closed: false };
        Self { table: Mutex::new(table), hook }
    }

    /// Takes a request of the peer in.
    pub fn accept(&self, id: RequestId) -> Result<Accepted, NotAccepted> {
        let cancellation = Arc::new(Cancellation::new());
        let mut table = lock(&self.table);
        if table.closed {
            return Err(NotAccepted::Closed);
        }
        let mut given = None;
        let kept = Arc::clone(&cancellation);
        let accepted = table.incoming.accept(id.clone(), |generation| {
            given = Some(generation);
            kept
        });
        match (accepted, given) {
            (Ok(_), Some(generation)) => Ok(Accepted { id, generation, cancellation }),
            _ => Err(NotAccepted::InFlight),
        }
    }

    /// The handler of a request has ended.
    pub fn finish(&self, accepted: &Accepted) -> Owed {
        match lock(&self.table).incoming.finish(&accepted.id, accepted.generation) {
            Some(_) => Owed::Answer,
            None => Owed::Nothing,
        }
    }

    /// The peer has answered one of our requests.
    pub fn settle(&self, id: &RequestId, answer: Result<ByteString, CallError>) {
        let waiter = lock(&self.table).outgoing.settle(id);
        if let Some(waiter) = waiter {
            waiter.settle(answer);
        } else {
            tracing::debug!(%id, "an answer nobody waits for is dropped");
        }
    }

    /// Takes note of a notification, in the order of arrival: it may call a request off, or report progress.
    pub fn observe(&self, call: &Invocation) {
        match call.method() {
            control_messages::CANCELLED => {
                let Some(id) = control_messages::cancelled(call.params()) else { return };
                let called_off = lock(&self.table).incoming.cancel(&id);
                if let Some(cancellation) = called_off {
                    cancellation.raise();
                }
            }
            control_messages::PROGRESS => {
                let Some((token, progress)) = control_messages::progress(call.params()) else { return };
                let callback = lock(&self.table).outgoing.find(&token).and_then(PendingCall::on_progress);
                if let Some(callback) = callback {
                    callback.call(progress);
                }
            }
            _ => {}
        }
    }

    /// Sends a request of our own over `line` and waits for its answer, as [`super::Outbound::request`] says.
    pub async fn call(
        &self,
        request: OutboundRequest,
        line: &dyn FrameLine,
    ) -> Result<ByteString, CallError> {
        outgoing_call::call(&Correlated { table: &self.table, line }, self.hook.as_deref(), request).await
    }

    /// The connection has ended: nobody will answer, and nothing more is taken in. What is in flight is called off and
    /// still owed an answer.
    pub fn close(&self) {
        let (waiting, running) = {
            let mut table = lock(&self.table);
            table.closed = true;
            (table.outgoing.drain(), table.incoming.all().map(Arc::clone).collect::<Vec<_>>())
        };
        for waiter in waiting {
            waiter.settle(Err(CallError::Closed));
        }
        for cancellation in running {
            cancellation.raise();
        }
    }
}

impl fmt::Debug for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Correlation").field("closed", &lock(&self.table).closed).finish_non_exhaustive()
    }
}

struct Correlated<'a> {
    table: &'a Mutex<Table>,
    line: &'a dyn FrameLine,
}

impl CallTransport for Correlated<'_> {
    fn register(&self, chosen: Option<&RequestId>, waiter: PendingCall) -> Result<RequestId, CallError> {
        let mut table = lock(self.table);
        if table.closed {
            return Err(CallError::Closed);
        }
        let id = chosen.cloned().unwrap_or_else(|| table.outgoing.next_id());
        table.outgoing.begin(id.clone(), waiter).map_err(|Taken| CallError::DuplicateId(id.clone()))?;
        Ok(id)
    }

    fn abandon(&self, id: &RequestId) -> bool {
        lock(self.table).outgoing.abandon(id).is_some()
    }

    async fn send(&self, frame: Vec<u8>) -> Result<u64, CallError> {
        self.line.send(&frame)?.await;
        Ok(0)
    }

    /// What is queued counts as written: how fast the peer reads is between it and its stream.
    async fn delivery(&self, _: u64) -> Delivery {
        Delivery::Written
    }

    fn cancel(&self, frame: &[u8]) {
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

    fn told(method: &str, params: &str) -> Invocation {
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

    /// A request that the peer calls off is owed nothing, and its handler learns of it.
    #[test]
    fn a_cancelled_request_is_owed_nothing() {
        let correlation = Correlation::new(None);
        let call = correlation.accept(7_i64.into()).unwrap();
        correlation.observe(&told(control_messages::CANCELLED, r#"{"requestId":"7"}"#));
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
            correlation.observe(&told(control_messages::PROGRESS, r#"{"progressToken":1,"progress":5}"#));
            correlation.settle(&1_i64.into(), Ok("{}".into()));
        };
        let (answer, ()) = tokio::join!(correlation.call(request, &line), peer);
        assert_eq!(answer.unwrap(), "{}");
        assert_eq!(*lock(&seen), [5.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn giving_up_calls_the_request_off() {
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
