//! Reading: takes frames in, in wire order, until there is one to handle. Whoever reads waits for no handler and not for
//! the writer, except for an inline method, and when the peer is to feel that there is no room.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Malformed, RequestId};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Connection;
use super::core::{Accepted, Call, Job, Standalone};
use crate::dispatch::contain::contain;
use crate::dispatch::frame::{Frame, Rejected};
use crate::dispatch::outbox::Admission;
use crate::dispatch::{
    Batches, CallContext, Cancellation, Inbound, Intercept, Invocation, Lane, lock, signals,
};
use crate::transport::{
    FrameReader, Incoming, IncomingMessage, TransportContext, TransportError, Unanswered,
};

/// After this many answers without an id and no frame in between, junk is only logged: two peers that answer
/// each other's errors would never end.
const NAMELESS_ANSWERS: u32 = 8;

/// What is read from, and how things stand there. One runner at a time has it.
pub(super) struct Intake {
    frames: Box<dyn FrameReader>,
    /// Answers without an id since the last frame.
    nameless: u32,
    /// Told how reading has ended.
    ended: oneshot::Sender<Result<(), TransportError>>,
}

/// What the reader has to do before it reads on.
enum Next {
    ReadOn,
    /// Handle this.
    Run(Job),
    /// Say this first.
    Owe(Vec<u8>),
    /// Let this handler end first.
    Await(JoinHandle<()>),
    /// There may be no room for another request.
    WaitForRoom,
    /// Take this array of messages apart first, one by one: what they owe may be much more than they are.
    Batch(ByteString, Option<Arc<TransportContext>>),
}

impl Intake {
    pub(super) fn new(
        frames: Box<dyn FrameReader>,
        ended: oneshot::Sender<Result<(), TransportError>>,
    ) -> Self {
        Self { frames, nameless: 0, ended }
    }

    fn end(self, how: Result<(), TransportError>) {
        // Nobody hears it if the whole connection ends at this moment.
        let _ = self.ended.send(how);
    }
}

/// What the reader woke up for.
enum Woken {
    Frame(Option<Result<Incoming, TransportError>>),
    Closing,
}

impl<I: Inbound> Connection<I> {
    /// Reads until there is something to handle, and leaves the seat; or until there is nothing more to read.
    pub(super) async fn read(self: &Arc<Self>, mut intake: Intake) -> Option<Job> {
        loop {
            let nameless = &mut intake.nameless;
            let next = match self.next_frame(&mut *intake.frames).await {
                Woken::Closing | Woken::Frame(None) => {
                    intake.end(Ok(()));
                    return None;
                }
                Woken::Frame(Some(Err(error))) => {
                    intake.end(Err(error));
                    return None;
                }
                Woken::Frame(Some(Ok(Incoming::Message(message)))) => self.message(message, nameless),
                Woken::Frame(Some(Ok(Incoming::Unreadable(reason)))) => {
                    self.core.observe(None, &reason);
                    reject(&Malformed::NotJson, nameless)
                }
            };
            match next {
                Next::ReadOn => {}
                Next::Run(job) => {
                    self.leave_seat(intake);
                    return Some(job);
                }
                next => tokio::select! {
                    biased;
                    () = self.carry_out(next, nameless) => {}
                    () = self.core.closing.raised() => {
                        intake.end(Ok(()));
                        return None;
                    }
                },
            }
        }
    }

    /// The next frame. While there is none, nothing that is queued is held back.
    async fn next_frame(&self, frames: &mut dyn FrameReader) -> Woken {
        let mut closing = pin!(self.core.closing.raised());
        std::future::poll_fn(|cx| match frames.poll_next(cx) {
            Poll::Ready(frame) => Poll::Ready(Woken::Frame(frame)),
            Poll::Pending => {
                self.core.outbox.flush();
                closing.as_mut().poll(cx).map(|()| Woken::Closing)
            }
        })
        .await
    }

    async fn carry_out(self: &Arc<Self>, next: Next, nameless: &mut u32) {
        match next {
            Next::ReadOn | Next::WaitForRoom => {}
            Next::Run(job) => self.make_ready(job),
            Next::Owe(frame) => {
                self.core.outbox.admit(&frame, None, Admission::Control).await;
            }
            Next::Await(handler) => {
                // A panic has been contained inside; there is nothing to learn from the handle.
                let _ = handler.await;
            }
            Next::Batch(text, context) => self.batch(&text, context.as_ref(), nameless).await,
        }
        self.core.wait_for_room().await;
    }

    fn message(self: &Arc<Self>, message: IncomingMessage, nameless: &mut u32) -> Next {
        let IncomingMessage { text, context, unanswered } = message;
        match Frame::parse_owned(text) {
            Ok(Frame::Batch(text)) if self.takes_batches() => Next::Batch(text, context),
            Ok(Frame::Batch(text)) => {
                let reason = "batches are not part of this protocol revision";
                self.malformed(&text, &Malformed::Invalid { id: None, reason }, nameless)
            }
            Ok(frame) => self.frame(frame, context, unanswered, nameless),
            Err(Rejected { text, reason }) => self.malformed(&text, &reason, nameless),
        }
    }

    fn malformed(&self, text: &str, malformed: &Malformed, nameless: &mut u32) -> Next {
        self.core.observe(Some(text), malformed);
        reject(malformed, nameless)
    }

    fn frame(
        self: &Arc<Self>,
        frame: Frame,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<Unanswered>,
        nameless: &mut u32,
    ) -> Next {
        match frame {
            Frame::Request(id, call) => {
                *nameless = 0;
                return self.request(id, call, context, unanswered);
            }
            Frame::Notification(call) => {
                *nameless = 0;
                return self.notification(call, context);
            }
            Frame::Response(id, answer) => {
                *nameless = 0;
                self.core.settle(&id, answer);
            }
            // It is what a confused peer sends for each error of ours, and no sign that it has come to reason.
            Frame::ErrorWithoutId => tracing::debug!("the peer reports an error without an id"),
            // Taken apart before it comes here.
            Frame::Batch(_) => {}
        }
        Next::ReadOn
    }

    async fn batch(
        self: &Arc<Self>,
        text: &ByteString,
        context: Option<&Arc<TransportContext>>,
        nameless: &mut u32,
    ) {
        let items = match Frame::batch(text) {
            Ok(items) => items,
            Err(malformed) => {
                let next = self.malformed(text, &malformed, nameless);
                return Box::pin(self.carry_out(next, nameless)).await;
            }
        };
        for item in items {
            let next = match item {
                Ok(Frame::Request(id, call)) if self.lane(&call) == Lane::Inline => {
                    let malformed = Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" };
                    self.malformed(call.text(), &malformed, nameless)
                }
                Ok(frame) => self.frame(frame, context.cloned(), None, nameless),
                Err(Rejected { text, reason }) => self.malformed(&text, &reason, nameless),
            };
            if !matches!(next, Next::ReadOn | Next::WaitForRoom) {
                Box::pin(self.carry_out(next, nameless)).await;
            }
        }
    }

    fn takes_batches(&self) -> bool {
        matches!(contain(|| self.inbound.batches()), Ok(Batches::Accepted))
    }

    fn lane(&self, call: &Invocation) -> Lane {
        contain(|| self.inbound.lane(call)).unwrap_or(Lane::Ordinary)
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
        let lane = self.lane(&invocation);
        let mut table = lock(&self.core.table);
        if !table.has_place(lane, &self.core) {
            drop(table);
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Too many requests in flight");
            return owe(Some(&id), &error);
        }
        let accepted = table.theirs.accept(id.clone(), |ticket| {
            Arc::new(Call::new(&self.core, id.clone(), ticket, lane, transport.back_channel))
        });
        let Ok(call) = accepted.map(Arc::clone) else {
            drop(table);
            return owe(Some(&id), &ErrorObject::id_in_flight(&id));
        };
        let cx = CallContext::new(Some(id), transport, Arc::clone(&call) as _);
        let accepted = Accepted { call, cx, invocation: Arc::new(invocation), unanswered };
        match table.admit(accepted, &self.core) {
            Some(accepted) if lane == Lane::Inline => {
                drop(table);
                Next::Await(self.start_inline(accepted))
            }
            Some(accepted) => Next::Run(Job::Request(accepted)),
            None => Next::WaitForRoom,
        }
    }

    fn notification(&self, call: Invocation, context: Option<Arc<TransportContext>>) -> Next {
        match call.method() {
            signals::CANCELLED => self.core.cancel(call.params()),
            signals::PROGRESS => self.core.progress(call.params()),
            _ => {}
        }
        if matches!(contain(|| self.inbound.intercept(&call)), Ok(Intercept::Consume)) {
            return Next::ReadOn;
        }
        let Some(transport) = context else { return Next::ReadOn };
        let mut table = lock(&self.core.table);
        if table.load.notifications >= self.core.options.limits.notifications {
            table.load.dropped += 1;
            // Ever more rarely: a peer must not choose how much the log holds.
            if table.load.dropped.is_power_of_two() {
                tracing::warn!(dropped = table.load.dropped, "too many notifications are being handled");
            }
            return Next::ReadOn;
        }
        table.load.notifications += 1;
        drop(table);
        let back_channel = transport.back_channel;
        let channel = Standalone { core: Arc::clone(&self.core), back_channel, never: Cancellation::new() };
        let cx = CallContext::new(None, transport, Arc::new(channel));
        Next::Run(Job::Notification(cx, Arc::new(call)))
    }
}

/// What is owed for something that is not a frame.
fn reject(malformed: &Malformed, nameless: &mut u32) -> Next {
    let Some((id, error)) = malformed.answer() else { return Next::ReadOn };
    if id.is_none() {
        *nameless = nameless.saturating_add(1);
        if *nameless > NAMELESS_ANSWERS {
            return Next::ReadOn;
        }
    }
    owe(id, &error)
}

fn owe(id: Option<&RequestId>, error: &ErrorObject) -> Next {
    let mut frame = Vec::new();
    jsonrpc::write_failure(&mut frame, id, error);
    Next::Owe(frame)
}
