//! The exchanges of a transport: those that run in tasks of their own, and those that callers poll.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, lock};
use duplexer_core::transport::{Exchanged, PolledExchange, TransportFailure};
use duplexer_types::jsonrpc::RequestId;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use crate::connection::{Connection, Outgoing, SessionRole};
use crate::exchange::{self, Progress, Resend};

/// Maximum exchanges in tasks, and of those that callers poll. A stream that a caller has begun continues in a task.
pub(crate) const MAX_EXCHANGES: usize = 1024;
/// Time during which messages of a request are still read after its cancellation was sent.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// The exchanges of a transport. Dropping or closing it aborts its tasks.
#[derive(Default)]
pub(crate) struct Exchanges {
    tasks: Mutex<Tasks>,
    /// Number of exchanges that callers poll.
    polled: AtomicUsize,
}

#[derive(Default)]
struct Tasks {
    running: JoinSet<Option<RequestId>>,
    requests: HashMap<RequestId, InFlight>,
    is_closed: bool,
}

/// A request in a task.
struct InFlight {
    abort: AbortHandle,
    cancel: CancelMode,
}

/// How a request is cancelled, by its era.
enum CancelMode {
    /// Abort the POST.
    Abort,
    /// Send the cancellation to the server and end the POST after [`CANCEL_GRACE`].
    Notify(Arc<Notify>),
}

/// What is sent to the server about a cancelled request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// The cancellation, as a message.
    Tell,
    /// Nothing: the POST has ended, or the response has arrived.
    Silent,
}

impl Tasks {
    /// Removes finished exchanges. An aborted request was removed when it was aborted.
    fn reap(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            if let Ok(Some(id)) = ended {
                self.requests.remove(&id);
            }
        }
    }
}

impl Exchanges {
    /// Waits until another exchange can run in a task.
    pub(crate) fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut tasks = lock(&self.tasks);
        tasks.reap();
        while tasks.running.len() >= MAX_EXCHANGES {
            // Only here, so that the end of an exchange wakes no task otherwise.
            match tasks.running.poll_join_next(cx) {
                Poll::Ready(Some(Ok(Some(id)))) => drop(tasks.requests.remove(&id)),
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Runs a message that is not a request.
    pub(crate) fn spawn(&self, message: impl Future<Output = ()> + Send + 'static) -> Option<AbortHandle> {
        let mut tasks = lock(&self.tasks);
        let task = async {
            message.await;
            None
        };
        (!tasks.is_closed).then(|| tasks.running.spawn(task))
    }

    /// Runs a request in a task.
    pub(crate) fn spawn_request(&self, runtime: &Handle, request: Request, first: Step) {
        let Request { connection, id, role } = request;
        let own = id.clone();
        let cancelled = Arc::new(Notify::new());
        let cancel = match role {
            SessionRole::None => CancelMode::Abort,
            SessionRole::Opens | SessionRole::Member => CancelMode::Notify(Arc::clone(&cancelled)),
        };
        let task = async move {
            let exchanged = async {
                let progress = match first {
                    Step::Begin(begun) => begun.await,
                    Step::Stream(response) => Ok(Progress::Stream(*response)),
                };
                exchange::finish(&connection, &own, role, progress).await;
            };
            let given_up = async {
                cancelled.notified().await;
                sleep(CANCEL_GRACE).await;
            };
            tokio::select! {
                () = exchanged => {}
                () = given_up => {}
            }
            Some(own)
        };
        let mut tasks = lock(&self.tasks);
        if !tasks.is_closed {
            tasks.reap();
            // Boxed, because the runtime moves the future of a task several times, and this one is large.
            let abort = tasks.running.spawn_on(Box::pin(task), runtime);
            tasks.requests.insert(id, InFlight { abort, cancel });
        }
    }

    /// Has the caller poll a request, unless too many are polled already.
    pub(crate) fn poll_request(
        self: &Arc<Self>,
        runtime: Handle,
        request: Request,
        resend: Resend,
        message: impl FnOnce() -> Outgoing,
    ) -> Option<Box<dyn PolledExchange>> {
        let polled = Polled::new(Arc::clone(self), runtime, request)?;
        Some(Box::new(polled.begin(message(), resend)))
    }

    /// Cancels a request, if it still runs in a task.
    pub(crate) fn cancel(&self, id: &RequestId) -> Cancelled {
        let mut tasks = lock(&self.tasks);
        match tasks.requests.get(id).map(|in_flight| &in_flight.cancel) {
            Some(CancelMode::Abort) => {
                if let Some(in_flight) = tasks.requests.remove(id) {
                    in_flight.abort.abort();
                }
                Cancelled::Silent
            }
            Some(CancelMode::Notify(cancelled)) => {
                cancelled.notify_one();
                Cancelled::Tell
            }
            None => Cancelled::Silent,
        }
    }

    /// Aborts all requests and starts no further exchange. Returns the other messages in flight.
    pub(crate) fn close(&self) -> JoinSet<Option<RequestId>> {
        let mut tasks = lock(&self.tasks);
        tasks.is_closed = true;
        tasks.requests.drain().for_each(|(_, in_flight)| in_flight.abort.abort());
        std::mem::take(&mut tasks.running)
    }
}

/// A request, and what its exchange needs.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: RequestId,
    pub(crate) role: SessionRole,
}

type Begun = BoxFuture<'static, Result<Progress, TransportFailure>>;

/// Where the task of a request takes it up.
pub(crate) enum Step {
    Begin(Begun),
    Stream(Box<reqwest::Response>),
}

impl Request {
    /// Returns the first part of the exchange: the POST, and a response that is no stream.
    pub(crate) fn begin(&self, message: Outgoing, resend: Resend) -> Begun {
        let Self { connection, id, role } = self.clone();
        Box::pin(async move { exchange::begin(&connection, &id, &message, role, resend).await })
    }
}

/// An exchange that its caller polls.
struct Polled {
    exchanges: Arc<Exchanges>,
    runtime: Handle,
    request: Request,
    /// `None` once it has ended.
    begun: Option<Begun>,
}

impl Polled {
    fn new(exchanges: Arc<Exchanges>, runtime: Handle, request: Request) -> Option<Self> {
        let earlier = exchanges.polled.fetch_add(1, Ordering::Relaxed);
        // From here on, `drop` counts it.
        let polled = Self { exchanges, runtime, request, begun: None };
        (earlier < MAX_EXCHANGES).then_some(polled)
    }

    fn begin(mut self, message: Outgoing, resend: Resend) -> Self {
        self.begun = Some(self.request.begin(message, resend));
        self
    }

    fn continue_in_task(&self, step: Step) {
        self.exchanges.spawn_request(&self.runtime, self.request.clone(), step);
    }
}

impl PolledExchange for Polled {
    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<Exchanged> {
        let Some(begun) = &mut self.begun else { return Poll::Pending };
        let Poll::Ready(progress) = begun.as_mut().poll(cx) else { return Poll::Pending };
        self.begun = None;
        Poll::Ready(match progress {
            Ok(Progress::Response(text)) => Exchanged::Response(text),
            Ok(Progress::Delivered) => Exchanged::Elsewhere,
            // Its messages must be read although the caller may not be polled, and in their order.
            Ok(Progress::Stream(response)) => {
                self.continue_in_task(Step::Stream(Box::new(response)));
                Exchanged::Elsewhere
            }
            Err(failure) => Exchanged::Failed(failure),
        })
    }

    fn release(mut self: Box<Self>) {
        // Without a session the end of the POST is the cancellation.
        if let Some(begun) = self.begun.take().filter(|_| self.request.role != SessionRole::None) {
            self.continue_in_task(Step::Begin(begun));
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.exchanges.polled.fetch_sub(1, Ordering::Relaxed);
    }
}
