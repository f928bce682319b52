//! One message of the peer from its start to its end, a request to its answer, isolated from all others.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_types::jsonrpc::{self, Body};

use super::CancelMode;
use super::Connection;
use super::shared::{Accepted, Call, Job, Shared};
use super::workers::Ended;
use crate::dispatch::outbox::Enqueued;
use crate::dispatch::panic::contain;
use crate::dispatch::{CallContext, Inbound, Invocation, lock};
use crate::error::McpError;
use crate::transport::Unanswered;

/// How a handler's run ended.
enum Run<T> {
    Returned(T),
    Panicked(McpError),
    Interrupted,
}

impl<I: Inbound> Connection<I> {
    /// Handles one message to its end.
    pub(super) async fn handle(self: &Arc<Self>, job: Job) -> Ended {
        match job {
            Job::Request(accepted) => {
                let lane = accepted.call.lane;
                self.answer_request(accepted).await;
                Ended::Request(lane)
            }
            Job::Notification(cx, call) => {
                // They are rare beside requests, whose futures need not have room for them.
                Box::pin(self.run_notification(cx, call)).await;
                Ended::Notification
            }
        }
    }

    async fn answer_request(self: &Arc<Self>, accepted: Accepted) {
        let Accepted { call, cx, invocation, unanswered } = accepted;
        let outcome = if call.cancellation.is_raised() {
            None
        } else {
            let handler = async { Arc::clone(&self.inbound).request(cx, Arc::clone(&invocation)).await };
            match self.supervise(Some(&call), handler).await {
                Run::Returned(outcome) => Some(outcome),
                Run::Panicked(error) => Some(Err(error)),
                Run::Interrupted => None,
            }
        };
        if let Some(frame) = self.shared.finish_request(&call, outcome, invocation.method(), unanswered) {
            // The peer reads slowly: this task keeps its place until the answer has one in the queue.
            self.suspend();
            Box::pin(self.shared.outbox.send(&frame, None)).await;
            self.resume();
        }
    }

    async fn run_notification(self: &Arc<Self>, cx: CallContext, call: Arc<Invocation>) {
        let handler = async { Arc::clone(&self.inbound).notification(cx, Arc::clone(&call)).await };
        if let Run::Panicked(error) = self.supervise(None, handler).await {
            error.to_wire(call.method());
            self.shared.raise(error);
        }
    }

    /// Polls a handler, contains its panics, and drops it when it is interrupted.
    async fn supervise<F: Future>(self: &Arc<Self>, call: Option<&Call>, handler: F) -> Run<F::Output> {
        let shared = &self.shared;
        let mut handler = pin!(Some(handler));
        // Most handlers end when they are first polled and need none of it.
        let mut interrupted = None;
        let run = std::future::poll_fn(|cx| {
            if let Poll::Ready(run) =
                shared.outbox.while_polling(|| poll_contained(shared, handler.as_mut(), cx))
            {
                return Poll::Ready(run);
            }
            shared.outbox.flush();
            let interrupted = interrupted.get_or_insert_with(|| {
                self.suspend();
                Box::pin(interruption(shared, call))
            });
            interrupted.as_mut().poll(cx).map(|()| Run::Interrupted)
        })
        .await;
        if interrupted.is_some() {
            self.resume();
        }
        match contain(|| handler.set(None)) {
            Ok(()) => run,
            Err(failure) => {
                let _ = contain(|| drop(run));
                Run::Panicked(failure)
            }
        }
    }
}

impl Shared {
    /// The handler has ended: answers, unless the peer has called the request off. Gives back an answer there is no room for.
    fn finish_request<B: Body>(
        &self,
        call: &Call,
        outcome: Option<Result<B, McpError>>,
        method: &str,
        unanswered: Option<Unanswered>,
    ) -> Option<Vec<u8>> {
        call.end();
        let owed = lock(&self.table).incoming.finish(&call.id, call.generation).is_some();
        match outcome {
            Some(outcome) if owed => self.answer(call, outcome, method),
            outcome => {
                // What was to be the answer is the author's, and so is what happens when it is dropped.
                let dropped = contain(|| drop(outcome));
                let hook = unanswered.filter(|_| call.is_cancelled());
                let hooked = contain(|| hook.map(Unanswered::call));
                if let Err(failure) = dropped.and(hooked.map(drop)) {
                    tracing::error!(method, %failure, "the end of a request without an answer panicked");
                }
                None
            }
        }
    }

    fn answer<B: Body>(&self, call: &Call, outcome: Result<B, McpError>, method: &str) -> Option<Vec<u8>> {
        let (frame, failure) = with_scratch(|frame| {
            let failure = write_answer(frame, call, outcome, method);
            match self.outbox.try_enqueue_buffer(frame, None) {
                Enqueued::Full => (Some(std::mem::take(frame)), failure),
                Enqueued::Queued(_) | Enqueued::Closed => (None, failure),
            }
        });
        self.outbox.flush_if_large();
        if let Some(failure) = failure {
            let _ = contain(|| self.raise(failure));
        }
        frame
    }
}

/// Writes the answer; a result that cannot be written becomes an error. Returns the failure, if any.
fn write_answer<B: Body>(
    frame: &mut Vec<u8>,
    call: &Call,
    outcome: Result<B, McpError>,
    method: &str,
) -> Option<McpError> {
    let failure = match outcome {
        Ok(reply) => {
            // Dropped inside as well: what a reply runs when it is written or dropped is the author's code.
            let written = contain(|| jsonrpc::write_success(frame, &call.id, &reply));
            let dropped = contain(|| drop(reply));
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

/// Resolves when a handler is to be dropped.
async fn interruption(shared: &Shared, call: Option<&Call>) {
    match call {
        Some(call) if shared.options.cancel == CancelMode::Interrupt => tokio::select! {
            () = call.cancellation.raised() => {}
            () = shared.abort.raised() => {}
        },
        _ => shared.abort.raised().await,
    }
}

fn poll_contained<F: Future>(
    shared: &Arc<Shared>,
    handler: Pin<&mut Option<F>>,
    cx: &mut Context<'_>,
) -> Poll<Run<F::Output>> {
    let Some(handler) = handler.as_pin_mut() else { return Poll::Pending };
    match shared.poll_watched(|| contain(|| handler.poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Run::Returned(output)),
        Err(failure) => Poll::Ready(Run::Panicked(failure)),
    }
}

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Buffers larger than this are not kept.
const SCRATCH_KEPT: usize = 256 * 1024;

/// Lends this thread's buffer, empty, so that writing a frame allocates nothing.
pub(super) fn with_scratch<R>(write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut buffer = SCRATCH.take();
    buffer.clear();
    let result = write(&mut buffer);
    if buffer.capacity() <= SCRATCH_KEPT {
        SCRATCH.set(buffer);
    }
    result
}
