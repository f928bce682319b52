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
use super::shared::{Accepted, Call, Job, NotificationChannel};
use crate::dispatch::frame::{Frame, Rejected};
use crate::dispatch::outbox::Admission;
use crate::dispatch::panic::contain;
use crate::dispatch::{
    Batches, CallContext, Cancellation, Inbound, Intercept, Invocation, Lane, control_messages, lock,
};
use crate::transport::{
    FrameReader, Incoming, IncomingMessage, TransportContext, TransportError, Unanswered,
};

/// After this many answers without an id and no frame in between, junk is only logged: two peers that answer
/// each other's errors would never end.
const MAX_UNADDRESSED_ERRORS: u32 = 8;

/// What is read from, and how things stand there. One runner at a time has it.
pub(super) struct FrameSource {
    frames: Box<dyn FrameReader>,
    /// Answers without an id since the last frame.
    unaddressed_errors: u32,
    /// NotifyOutcome how reading has ended.
    ended: oneshot::Sender<Result<(), TransportError>>,
}

/// What the reader has to do before it reads on.
enum AfterFrame {
    Continue,
    /// Handle this.
    Run(Job),
    /// Say this first.
    SendControl(Vec<u8>),
    /// Let this handler end first.
    AwaitInline(JoinHandle<()>),
    /// There may be no room for another request.
    Backpressure,
    /// Take this array of messages apart first, one by one: what they error_response may be much more than they are.
    Batch(ByteString, Option<Arc<TransportContext>>),
}

impl FrameSource {
    pub(super) fn new(
        frames: Box<dyn FrameReader>,
        ended: oneshot::Sender<Result<(), TransportError>>,
    ) -> Self {
        Self { frames, unaddressed_errors: 0, ended }
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
    /// Reads until there is something to handle, and leaves the reader; or until there is nothing more to read.
    pub(super) async fn read(self: &Arc<Self>, mut source: FrameSource) -> Option<Job> {
        loop {
            let unaddressed_errors = &mut source.unaddressed_errors;
            let next = match self.next_frame(&mut *source.frames).await {
                Woken::Closing | Woken::Frame(None) => {
                    source.end(Ok(()));
                    return None;
                }
                Woken::Frame(Some(Err(error))) => {
                    source.end(Err(error));
                    return None;
                }
                Woken::Frame(Some(Ok(Incoming::Message(message)))) => {
                    self.message(message, unaddressed_errors)
                }
                Woken::Frame(Some(Ok(Incoming::Unreadable(reason)))) => {
                    self.shared.observe(None, &reason);
                    reject(&Malformed::NotJson, unaddressed_errors)
                }
            };
            match next {
                AfterFrame::Continue => {}
                AfterFrame::Run(job) => {
                    self.release_reader(source);
                    return Some(job);
                }
                next => tokio::select! {
                    biased;
                    () = self.apply(next, unaddressed_errors) => {}
                    () = self.shared.closing.raised() => {
                        source.end(Ok(()));
                        return None;
                    }
                },
            }
        }
    }

    /// The next frame. While there is none, nothing that is queued is held back.
    async fn next_frame(&self, frames: &mut dyn FrameReader) -> Woken {
        let mut closing = pin!(self.shared.closing.raised());
        std::future::poll_fn(|cx| match frames.poll_next(cx) {
            Poll::Ready(frame) => Poll::Ready(Woken::Frame(frame)),
            Poll::Pending => {
                self.shared.outbox.flush();
                closing.as_mut().poll(cx).map(|()| Woken::Closing)
            }
        })
        .await
    }

    async fn apply(self: &Arc<Self>, next: AfterFrame, unaddressed_errors: &mut u32) {
        match next {
            AfterFrame::Continue | AfterFrame::Backpressure => {}
            AfterFrame::Run(job) => self.make_ready(job),
            AfterFrame::SendControl(frame) => {
                self.shared.outbox.admit(&frame, None, Admission::Control).await;
            }
            AfterFrame::AwaitInline(handler) => {
                // A panic has been contained inside; there is nothing to learn from the handle.
                let _ = handler.await;
            }
            AfterFrame::Batch(text, context) => self.batch(&text, context.as_ref(), unaddressed_errors).await,
        }
        self.shared.wait_for_room().await;
    }

    fn message(self: &Arc<Self>, message: IncomingMessage, unaddressed_errors: &mut u32) -> AfterFrame {
        let IncomingMessage { text, context, unanswered } = message;
        match Frame::parse_owned(text) {
            Ok(Frame::Batch(text)) if self.takes_batches() => AfterFrame::Batch(text, context),
            Ok(Frame::Batch(text)) => {
                let reason = "batches are not part of this protocol revision";
                self.malformed(&text, &Malformed::Invalid { id: None, reason }, unaddressed_errors)
            }
            Ok(frame) => self.frame(frame, context, unanswered, unaddressed_errors),
            Err(Rejected { text, reason }) => self.malformed(&text, &reason, unaddressed_errors),
        }
    }

    fn malformed(&self, text: &str, malformed: &Malformed, unaddressed_errors: &mut u32) -> AfterFrame {
        self.shared.observe(Some(text), malformed);
        reject(malformed, unaddressed_errors)
    }

    fn frame(
        self: &Arc<Self>,
        frame: Frame,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<Unanswered>,
        unaddressed_errors: &mut u32,
    ) -> AfterFrame {
        match frame {
            Frame::Request(id, call) => {
                *unaddressed_errors = 0;
                return self.request(id, call, context, unanswered);
            }
            Frame::Notification(call) => {
                *unaddressed_errors = 0;
                return self.notification(call, context);
            }
            Frame::Response(id, answer) => {
                *unaddressed_errors = 0;
                self.shared.settle(&id, answer);
            }
            // It is what a confused peer sends for each error of outgoing, and no sign that it has come to reason.
            Frame::ErrorWithoutId => tracing::debug!("the peer reports an error without an id"),
            // Taken apart before it comes here.
            Frame::Batch(_) => {}
        }
        AfterFrame::Continue
    }

    async fn batch(
        self: &Arc<Self>,
        text: &ByteString,
        context: Option<&Arc<TransportContext>>,
        unaddressed_errors: &mut u32,
    ) {
        let items = match Frame::batch(text) {
            Ok(items) => items,
            Err(malformed) => {
                let next = self.malformed(text, &malformed, unaddressed_errors);
                return Box::pin(self.apply(next, unaddressed_errors)).await;
            }
        };
        for item in items {
            let next = match item {
                Ok(Frame::Request(id, call)) if self.lane(&call) == Lane::Inline => {
                    let malformed = Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" };
                    self.malformed(call.text(), &malformed, unaddressed_errors)
                }
                Ok(frame) => self.frame(frame, context.cloned(), None, unaddressed_errors),
                Err(Rejected { text, reason }) => self.malformed(&text, &reason, unaddressed_errors),
            };
            if !matches!(next, AfterFrame::Continue | AfterFrame::Backpressure) {
                Box::pin(self.apply(next, unaddressed_errors)).await;
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
    ) -> AfterFrame {
        let Some(transport) = context else {
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "transport context unavailable");
            return error_response(Some(&id), &error);
        };
        let lane = self.lane(&invocation);
        let mut table = lock(&self.shared.table);
        if !table.can_admit(lane, &self.shared) {
            drop(table);
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Too many requests in flight");
            return error_response(Some(&id), &error);
        }
        let accepted = table.incoming.accept(id.clone(), |generation| {
            Arc::new(Call::new(&self.shared, id.clone(), generation, lane, transport.back_channel))
        });
        let Ok(call) = accepted.map(Arc::clone) else {
            drop(table);
            return error_response(Some(&id), &ErrorObject::id_in_flight(&id));
        };
        let cx = CallContext::new(Some(id), transport, Arc::clone(&call) as _);
        let accepted = Accepted { call, cx, invocation: Arc::new(invocation), unanswered };
        match table.admit(accepted, &self.shared) {
            Some(accepted) if lane == Lane::Inline => {
                drop(table);
                AfterFrame::AwaitInline(self.start_inline(accepted))
            }
            Some(accepted) => AfterFrame::Run(Job::Request(accepted)),
            None => AfterFrame::Backpressure,
        }
    }

    fn notification(&self, call: Invocation, context: Option<Arc<TransportContext>>) -> AfterFrame {
        match call.method() {
            control_messages::CANCELLED => self.shared.cancel(call.params()),
            control_messages::PROGRESS => self.shared.progress(call.params()),
            _ => {}
        }
        if matches!(contain(|| self.inbound.intercept(&call)), Ok(Intercept::Consume)) {
            return AfterFrame::Continue;
        }
        let Some(transport) = context else { return AfterFrame::Continue };
        let mut table = lock(&self.shared.table);
        if table.load.notifications >= self.shared.options.limits.notifications {
            table.load.dropped += 1;
            // Ever more rarely: a peer must not choose how much the log holds.
            if table.load.dropped.is_power_of_two() {
                tracing::warn!(dropped = table.load.dropped, "too many notifications are being handled");
            }
            return AfterFrame::Continue;
        }
        table.load.notifications += 1;
        drop(table);
        let back_channel = transport.back_channel;
        let channel = NotificationChannel {
            shared: Arc::clone(&self.shared),
            back_channel,
            never: Cancellation::new(),
        };
        let cx = CallContext::new(None, transport, Arc::new(channel));
        AfterFrame::Run(Job::Notification(cx, Arc::new(call)))
    }
}

/// What is owed for something that is not a frame.
fn reject(malformed: &Malformed, unaddressed_errors: &mut u32) -> AfterFrame {
    let Some((id, error)) = malformed.answer() else { return AfterFrame::Continue };
    if id.is_none() {
        *unaddressed_errors = unaddressed_errors.saturating_add(1);
        if *unaddressed_errors > MAX_UNADDRESSED_ERRORS {
            return AfterFrame::Continue;
        }
    }
    error_response(id, &error)
}

fn error_response(id: Option<&RequestId>, error: &ErrorObject) -> AfterFrame {
    let mut frame = Vec::new();
    jsonrpc::write_failure(&mut frame, id, error);
    AfterFrame::SendControl(frame)
}
