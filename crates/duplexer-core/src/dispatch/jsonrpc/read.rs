//! The read loop: takes frames in, in wire order. It never waits for a handler or for the writer, except for
//! an inline method, and when the peer is to feel that there is no room.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Frame, Malformed, RequestId};
use tokio::task::JoinHandle;

use super::core::{Accepted, Call, Core, Standalone, Table};
use super::{CancelMode, Connection, Unreadable};
use crate::dispatch::correlator::Taken;
use crate::dispatch::outbox::Admission;
use crate::dispatch::{
    Batches, CallContext, Cancellation, Inbound, Intercept, Invocation, Lane, lock, signals,
};
use crate::error::CallError;
use crate::transport::{
    FrameReader, Incoming, IncomingMessage, TransportContext, TransportError, Unanswered,
};

/// After this many answers without an id and no frame in between, junk is only logged: two peers that answer
/// each other's errors would never end.
const NAMELESS_ANSWERS: u32 = 8;

/// What the loop has to do before it reads on.
enum Next {
    ReadOn,
    /// Say this first.
    Owe(Vec<u8>),
    /// Let this handler end first.
    Await(JoinHandle<()>),
    /// There may be no room for another request.
    WaitForRoom,
    /// Several, in order.
    All(Vec<Next>),
}

/// What the loop woke up for.
enum Woken {
    Frame(Option<Result<Incoming, TransportError>>),
    Stopped,
}

impl<I: Inbound> Connection<I> {
    pub(super) async fn read(
        self: &Arc<Self>,
        mut reader: Box<dyn FrameReader>,
    ) -> Result<(), TransportError> {
        let mut nameless = 0;
        let mut stopped = pin!(self.core.stop.beyond(0));
        loop {
            let woken = std::future::poll_fn(|cx| match reader.poll_next(cx) {
                Poll::Ready(frame) => Poll::Ready(Woken::Frame(frame)),
                Poll::Pending => {
                    self.core.outbox.flush_if_idle();
                    stopped.as_mut().poll(cx).map(|()| Woken::Stopped)
                }
            })
            .await;
            let next = match woken {
                Woken::Stopped | Woken::Frame(None) => return Ok(()),
                Woken::Frame(Some(Err(error))) => return Err(error),
                Woken::Frame(Some(Ok(Incoming::Message(message)))) => self.message(message, &mut nameless),
                Woken::Frame(Some(Ok(Incoming::Unreadable(reason)))) => {
                    self.core.observe(None, &reason);
                    self.core.reject(&Malformed::NotJson, &mut nameless)
                }
            };
            if matches!(next, Next::ReadOn) {
                continue;
            }
            tokio::select! {
                biased;
                () = self.carry_out(next) => {}
                () = stopped.as_mut() => return Ok(()),
            }
        }
    }

    async fn carry_out(&self, next: Next) {
        match next {
            Next::ReadOn | Next::WaitForRoom => {}
            Next::Owe(frame) => {
                self.core.outbox.admit(&frame, None, Admission::Control).await;
            }
            Next::Await(handler) => {
                // A panic has been contained inside; there is nothing to learn from the handle.
                let _ = handler.await;
            }
            Next::All(all) => {
                for next in all {
                    Box::pin(self.carry_out(next)).await;
                }
            }
        }
        self.core.wait_for_room().await;
    }

    fn message(self: &Arc<Self>, message: IncomingMessage, nameless: &mut u32) -> Next {
        let IncomingMessage { text, context, unanswered } = message;
        match jsonrpc::read(&text) {
            Ok(Frame::Batch(batch)) => self.batch(&text, batch, context.as_ref(), nameless),
            Ok(frame) => {
                *nameless = 0;
                self.frame(&text, frame, context, unanswered)
            }
            Err(malformed) => {
                self.core.observe(Some(&text), &malformed);
                self.core.reject(&malformed, nameless)
            }
        }
    }

    fn frame(
        self: &Arc<Self>,
        text: &ByteString,
        frame: Frame<'_>,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<Unanswered>,
    ) -> Next {
        match frame {
            Frame::Request { id, call } => {
                self.request(id, Invocation::from_frame(text, &call), context, unanswered)
            }
            Frame::Notification(call) => {
                self.notification(Invocation::from_frame(text, &call), context);
                Next::ReadOn
            }
            Frame::Success { id, result } => {
                self.core.settle(&id, Ok(text.slice_ref(result)));
                Next::ReadOn
            }
            Frame::Failure { id: Some(id), error } => {
                let error = serde_json::from_str(error).map_or_else(CallError::Unexpected, CallError::Peer);
                self.core.settle(&id, Err(error));
                Next::ReadOn
            }
            Frame::Failure { id: None, error } => {
                tracing::debug!(bytes = error.len(), "the peer reports an error without an id");
                Next::ReadOn
            }
            Frame::Batch(_) => owe(
                None,
                &ErrorObject::new(
                    ErrorCode::INVALID_REQUEST,
                    "Invalid request: a batch does not hold batches",
                ),
            ),
        }
    }

    fn batch(
        self: &Arc<Self>,
        text: &ByteString,
        batch: &str,
        context: Option<&Arc<TransportContext>>,
        nameless: &mut u32,
    ) -> Next {
        let items = match self.inbound.batches() {
            Batches::Accepted => jsonrpc::batch(batch),
            Batches::Refused => {
                Err(Malformed::Invalid { id: None, reason: "batches are not part of this protocol revision" })
            }
        };
        let items = match items {
            Ok(items) => items,
            Err(malformed) => return self.core.reject(&malformed, nameless),
        };
        let all = items.into_iter().map(|item| match jsonrpc::read(item) {
            Ok(frame) => self.in_batch(&text.slice_ref(item), frame, context.cloned()),
            Err(malformed) => self.core.reject(&malformed, nameless),
        });
        Next::All(all.collect())
    }

    /// What opens a connection stands alone.
    fn in_batch(
        self: &Arc<Self>,
        text: &ByteString,
        frame: Frame<'_>,
        context: Option<Arc<TransportContext>>,
    ) -> Next {
        if let Frame::Request { id, call } = &frame
            && self.inbound.lane(&Invocation::from_frame(text, call)) == Lane::Inline
        {
            let message = "Invalid request: not allowed in a batch";
            return owe(Some(id), &ErrorObject::new(ErrorCode::INVALID_REQUEST, message));
        }
        self.frame(text, frame, context, None)
    }

    fn request(
        self: &Arc<Self>,
        id: RequestId,
        invocation: Invocation,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<Unanswered>,
    ) -> Next {
        let Some(transport) = context else {
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "transport context unavailable");
            return owe(Some(&id), &error);
        };
        let lane = self.inbound.lane(&invocation);
        let mut table = lock(&self.core.table);
        if !table.has_place(lane, &self.core) {
            drop(table);
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Too many requests in flight");
            return owe(Some(&id), &error);
        }
        let accepted = table.theirs.accept(id.clone(), |ticket| {
            Arc::new(Call::new(&self.core, id.clone(), ticket, lane, transport.back_channel))
        });
        let call = match accepted {
            Ok(call) => Arc::clone(call),
            Err(Taken) => {
                drop(table);
                let message = format!("Invalid request: id {id} is already in flight");
                return owe(Some(&id), &ErrorObject::new(ErrorCode::INVALID_REQUEST, message));
            }
        };
        let cx = CallContext::new(Some(id), transport, Arc::clone(&call) as _);
        let accepted = Accepted { call, cx, invocation, unanswered };
        let started = table.admit(accepted, &self.core);
        drop(table);
        match started {
            Some(accepted) if lane == Lane::Inline => Next::Await(self.spawn(accepted)),
            Some(accepted) => {
                self.spawn(accepted);
                Next::ReadOn
            }
            None => Next::WaitForRoom,
        }
    }

    fn notification(self: &Arc<Self>, call: Invocation, context: Option<Arc<TransportContext>>) {
        match call.method() {
            signals::CANCELLED => self.core.cancel(call.params()),
            signals::PROGRESS => self.core.progress(call.params()),
            _ => {}
        }
        let intercepted = catch_unwind(AssertUnwindSafe(|| self.inbound.intercept(&call)));
        if matches!(intercepted, Ok(Intercept::Consume)) {
            return;
        }
        let Some(transport) = context else { return };
        let mut table = lock(&self.core.table);
        if table.load.notifications >= self.core.options.limits.notifications {
            drop(table);
            tracing::warn!("too many notifications are being handled: one is dropped");
            return;
        }
        table.load.notifications += 1;
        drop(table);
        let back_channel = transport.back_channel;
        let channel = Standalone { core: Arc::clone(&self.core), back_channel, never: Cancellation::new() };
        self.spawn_notification(CallContext::new(None, transport, Arc::new(channel)), call);
    }
}

impl Core {
    /// Waits while no further request could be taken in. While a call of ours is out it does not: its answer
    /// must be read, and requests that find no place are refused instead.
    async fn wait_for_room(&self) {
        loop {
            // A permit is kept if something changes between the look and the wait.
            let room = self.room.notified();
            if self.can_read_on() {
                return;
            }
            self.outbox.flush();
            room.await;
        }
    }

    fn can_read_on(&self) -> bool {
        let table = lock(&self.table);
        !table.park_is_full(self) || !table.ours.is_empty()
    }

    fn observe(&self, text: Option<&str>, reason: &dyn std::fmt::Display) {
        let Some(observer) = &self.options.observer else {
            tracing::debug!(%reason, "something that is not a frame was passed over");
            return;
        };
        let observed = catch_unwind(AssertUnwindSafe(|| observer(&Unreadable { text, reason })));
        if observed.is_err() {
            tracing::error!("the observer of unreadable frames panicked");
        }
    }

    /// What is owed for something that is not a frame.
    #[expect(clippy::unused_self, reason = "reads as what the connection does")]
    fn reject(&self, malformed: &Malformed, nameless: &mut u32) -> Next {
        let Some((id, error)) = malformed.answer() else { return Next::ReadOn };
        if id.is_none() {
            *nameless += 1;
            if *nameless > NAMELESS_ANSWERS {
                return Next::ReadOn;
            }
        }
        owe(id, &error)
    }

    fn settle(&self, id: &RequestId, answer: Result<ByteString, CallError>) {
        match lock(&self.table).ours.settle(id) {
            // The caller may be gone by now, which is its right.
            Some(waiter) => drop(waiter.answer.send(answer)),
            None => tracing::debug!(%id, "an answer nobody waits for is dropped"),
        }
    }

    fn cancel(&self, params: Option<&str>) {
        let Some(id) = signals::cancelled(params) else { return };
        let Some(call) = lock(&self.table).theirs.cancel(&id) else { return };
        call.cancellation.raise();
        if self.options.cancel == CancelMode::Interrupt {
            call.interrupt.raise();
        }
    }

    fn progress(&self, params: Option<&str>) {
        let Some((token, progress)) = signals::progress(params) else { return };
        let callback = lock(&self.table).ours.find(&token).and_then(|waiter| waiter.on_progress.clone());
        if let Some(callback) = callback {
            let called = catch_unwind(AssertUnwindSafe(|| (callback.0)(progress)));
            if called.is_err() {
                tracing::error!(%token, "a progress callback panicked");
            }
        }
    }
}

impl Table {
    fn park_is_full(&self, core: &Core) -> bool {
        let limits = &core.options.limits;
        self.parked.len() >= limits.parked || self.load.parked_bytes >= limits.parked_bytes
    }

    fn has_place(&self, lane: Lane, core: &Core) -> bool {
        let limits = &core.options.limits;
        match lane {
            Lane::Standing => self.load.standing < limits.standing,
            Lane::Inline => true,
            Lane::Ordinary => self.load.running < limits.running || !self.park_is_full(core),
        }
    }

    /// Counts a request in: it is to be started now, or waits in the park.
    fn admit(&mut self, accepted: Accepted, core: &Core) -> Option<Accepted> {
        match accepted.call.lane {
            Lane::Standing => self.load.standing += 1,
            Lane::Ordinary if self.load.running >= core.options.limits.running => {
                self.load.parked_bytes += accepted.invocation.size();
                self.parked.push_back(accepted);
                return None;
            }
            Lane::Ordinary | Lane::Inline => self.load.running += 1,
        }
        Some(accepted)
    }

    /// The next request from the park whose answer somebody still wants; it takes a handler's place.
    pub(super) fn unpark(&mut self) -> Option<Accepted> {
        let next = self.parked.pop_front()?;
        self.load.parked_bytes -= next.invocation.size();
        self.load.running += 1;
        Some(next)
    }
}

fn owe(id: Option<&RequestId>, error: &ErrorObject) -> Next {
    let mut frame = Vec::new();
    jsonrpc::write_failure(&mut frame, id, error);
    Next::Owe(frame)
}
