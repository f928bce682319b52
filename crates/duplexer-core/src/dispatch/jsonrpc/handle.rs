//! Runs the handler of one message to its end, isolated from all others, and answers a request.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_types::jsonrpc::{self, Body};
use duplexer_types::methods::Method;

use super::CancelMode;
use super::Connection;
use super::admission::{Accepted, Finished, Job};
use super::shared::{Call, Shared};
use crate::dispatch::outbound::BoxFuture;
use crate::dispatch::outbox::Enqueued;
use crate::dispatch::panic::catch_unwind;
use crate::dispatch::{CallContext, Inbound, Message, lock};
use crate::error::McpError;
use crate::transport::OnUnanswered;

/// How a handler ended.
enum Run<T> {
    Returned(T),
    Panicked(McpError),
    Interrupted,
}

/// Whether the worker of a handler counts as active when it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worker {
    Active,
    Suspended,
}

/// The method of a message whose handler runs, for the log. Only a custom one shares the message.
enum Label {
    Known(Method),
    Custom(Arc<Message>),
}

impl Label {
    fn of(message: &Arc<Message>) -> Self {
        message.known().map_or_else(|| Self::Custom(Arc::clone(message)), Self::Known)
    }

    fn name(&self) -> &str {
        match self {
            Self::Known(method) => method.name(),
            Self::Custom(message) => message.method(),
        }
    }
}

impl<I: Inbound> Connection<I> {
    /// Handles one message to its end.
    pub(super) async fn handle(self: &Arc<Self>, job: Job) -> Finished {
        match job {
            Job::Request(accepted) => {
                let schedule = accepted.call.schedule;
                self.run_request(accepted).await;
                Finished::Request(schedule)
            }
            Job::Notification(cx, call) => {
                // Boxed, because notifications are rare and would enlarge the future of every request.
                Box::pin(self.run_notification(cx, call)).await;
                Finished::Notification
            }
        }
    }

    async fn run_request(self: &Arc<Self>, accepted: Accepted) {
        let Accepted { call, cx, message, unanswered } = accepted;
        let method = Label::of(&message);
        let (outcome, worker) = if call.cancellation.is_cancelled() {
            (None, Worker::Active)
        } else {
            // A block around the call: it can panic before there is a future.
            let handler = || async { self.inbound.request(cx, message).await };
            let (run, worker) = self.supervise(Some(&call), handler).await;
            let outcome = match run {
                Run::Returned(outcome) => Some(outcome),
                Run::Panicked(error) => Some(Err(error)),
                Run::Interrupted => None,
            };
            (outcome, worker)
        };
        if let Some(frame) = self.shared.finish_request(&call, outcome, worker, method.name(), unanswered) {
            // The peer reads slowly: the request counts as running until its response is queued.
            self.suspend();
            self.shared.outbox.flush();
            Box::pin(self.shared.outbox.send(&frame, None)).await;
            self.resume();
        }
    }

    async fn run_notification(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) {
        let method = Label::of(&call);
        let handler = || async { self.inbound.notification(cx, call).await };
        let (run, worker) = self.supervise(None, handler).await;
        if worker == Worker::Suspended {
            self.resume();
        }
        if let Run::Panicked(error) = run {
            error.to_wire(method.name());
            self.shared.fail_run(error);
        }
    }

    /// Polls a handler, catches its panics, and drops it when it is interrupted. The handler is a function, because moving a
    /// future costs as much as its size. The caller resumes a suspended worker.
    async fn supervise<F: Future>(
        self: &Arc<Self>,
        call: Option<&Call>,
        handler: impl FnOnce() -> F,
    ) -> (Run<F::Output>, Worker) {
        let shared = &self.shared;
        let mut handler = pin!(Some(handler()));
        // Made only when needed: most handlers end at the first poll.
        let mut interrupted = None;
        let run = std::future::poll_fn(|cx| {
            if let Poll::Ready(run) =
                shared.outbox.while_polling(|| poll_catching(shared, handler.as_mut(), cx))
            {
                return Poll::Ready(run);
            }
            let interrupted = interrupted.get_or_insert_with(|| {
                self.suspend();
                Interruption::of(shared, call)
            });
            shared.flush_before_waiting(usize::from(call.is_some()));
            interrupted.poll(cx).map(|()| Run::Interrupted)
        })
        .await;
        let worker = if interrupted.is_some() { Worker::Suspended } else { Worker::Active };
        match catch_unwind(|| handler.set(None)) {
            Ok(()) => (run, worker),
            Err(failure) => {
                let _ = catch_unwind(|| drop(run));
                (Run::Panicked(failure), worker)
            }
        }
    }
}

impl Shared {
    /// Answers a request whose handler has ended, unless the peer has cancelled it. Resumes its worker under the same lock.
    /// Returns a response that the outbox has no capacity for.
    fn finish_request<B: Body>(
        &self,
        call: &Call,
        outcome: Option<Result<B, McpError>>,
        worker: Worker,
        method: &str,
        unanswered: Option<OnUnanswered>,
    ) -> Option<Vec<u8>> {
        call.end();
        let mut table = lock(&self.table);
        if worker == Worker::Suspended {
            table.workers.resume();
        }
        let is_pending = table.calls.incoming.finish(&call.id, call.generation).is_some();
        drop(table);
        match outcome {
            Some(outcome) if is_pending => self.respond(call, outcome, method),
            outcome => {
                // Dropping the outcome runs code of the handler's author.
                let dropped = catch_unwind(|| drop(outcome));
                let hook = unanswered.filter(|_| call.is_cancelled());
                let hooked = catch_unwind(|| hook.map(OnUnanswered::call));
                if let Err(failure) = dropped.and(hooked.map(drop)) {
                    tracing::error!(method, %failure, "the end of a request without a response panicked");
                }
                None
            }
        }
    }

    fn respond<B: Body>(&self, call: &Call, outcome: Result<B, McpError>, method: &str) -> Option<Vec<u8>> {
        let (frame, failure) = with_scratch(|frame| {
            let failure = write_response(frame, call, outcome, method);
            match self.outbox.respond(frame) {
                Enqueued::Full => (Some(std::mem::take(frame)), failure),
                Enqueued::Queued(_) | Enqueued::Closed => (None, failure),
            }
        });
        if let Some(failure) = failure {
            let _ = catch_unwind(|| self.fail_run(failure));
        }
        frame
    }
}

/// Writes the response; a result that cannot be serialized becomes an error. Returns the failure, if any.
fn write_response<B: Body>(
    frame: &mut Vec<u8>,
    call: &Call,
    outcome: Result<B, McpError>,
    method: &str,
) -> Option<McpError> {
    let failure = match outcome {
        Ok(reply) => {
            // Writing and dropping a reply both run code of the handler's author.
            let written = catch_unwind(|| jsonrpc::write_success(frame, &call.id, &reply));
            let dropped = catch_unwind(|| drop(reply));
            match (written, dropped) {
                (Ok(Ok(())), Ok(())) => return None,
                (Ok(Err(error)), _) => McpError::internal(error),
                (Err(failure), _) | (_, Err(failure)) => failure,
            }
        }
        Err(failure) => failure,
    };
    frame.clear();
    jsonrpc::write_failure(frame, Some(&call.id), &failure.to_wire(method));
    Some(failure)
}

/// What ends a handler early. The end of a connection also cancels every request in flight, so that one wait is enough.
enum Interruption<'a> {
    Cancelled(&'a Call),
    /// Boxed: it would enlarge the future of every request.
    Aborted(BoxFuture<'a, ()>),
}

impl<'a> Interruption<'a> {
    fn of(shared: &'a Shared, call: Option<&'a Call>) -> Self {
        match call {
            Some(call) if shared.options.cancel == CancelMode::Interrupt => Self::Cancelled(call),
            _ => Self::Aborted(Box::pin(shared.abort.wait())),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Cancelled(call) => call.poll_interrupted(cx),
            Self::Aborted(aborted) => aborted.as_mut().poll(cx),
        }
    }
}

fn poll_catching<F: Future>(
    shared: &Arc<Shared>,
    handler: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Run<F::Output>> {
    let Some(handler) = handler.as_pin_mut() else { return Poll::Pending };
    match shared.poll_watched(|| catch_unwind(|| handler.poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Run::Returned(output)),
        Err(failure) => Poll::Ready(Run::Panicked(failure)),
    }
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum capacity of a buffer that is kept.
const MAX_SCRATCH: usize = 256 * 1024;

/// Lends this thread's buffer, empty, so that writing a frame does not allocate.
pub(super) fn with_scratch<R>(write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SCRATCH.take();
    buffer.clear();
    let result = write(&mut buffer);
    if buffer.capacity() <= MAX_SCRATCH {
        SCRATCH.set(buffer);
    }
    result
}
