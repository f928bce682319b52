//! Reading: takes in frames in wire order until there is one to handle.
//!
//! The reader waits for no handler and not for the writer, except for an inline method and for back-pressure.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytestring::ByteString;
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::{self, Malformed, RequestId};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Connection;
use super::admission::Job;
use crate::dispatch::call_table::LockedCalls;
use crate::dispatch::frame::{Frame, Rejected};
use crate::dispatch::outbox::Admission;
use crate::dispatch::panic::catch_unwind;
use crate::dispatch::{Batches, Inbound, Schedule};
use crate::error::CallError;
use crate::transport::{
    FrameReader, Incoming, IncomingMessage, OnUnanswered, TransportContext, TransportError,
};

/// Maximum number of consecutive error responses without an id. Beyond it malformed input is only logged; otherwise two
/// peers could answer each other's errors forever.
const MAX_UNADDRESSED_ERRORS: u32 = 8;

/// The transport's reader and its state. One worker at a time holds it.
pub(super) struct FrameSource {
    frames: Box<dyn FrameReader>,
    /// Error responses without an id since the last frame.
    unaddressed_errors: u32,
    /// Receives how reading has ended.
    ended: oneshot::Sender<Result<(), TransportError>>,
}

impl FrameSource {
    pub(super) fn new(
        frames: Box<dyn FrameReader>,
        ended: oneshot::Sender<Result<(), TransportError>>,
    ) -> Self {
        Self { frames, unaddressed_errors: 0, ended }
    }

    fn end(self, how: Result<(), TransportError>) {
        // The receiver is gone if the whole connection ends at this moment.
        let _ = self.ended.send(how);
    }
}

/// What the reader does after a frame, before it reads the next one.
pub(super) enum AfterFrame {
    Continue,
    /// Handle this message.
    Run(Job),
    /// Send this frame first.
    SendControl(Vec<u8>),
    /// Wait for this handler first.
    AwaitInline(JoinHandle<()>),
    /// Wait for capacity: another request might not fit.
    Backpressure,
    /// Take in the items of this batch first, one by one: their responses can be much larger than they are.
    Batch(ByteString, Option<Arc<TransportContext>>),
}

/// What the reader woke up for.
enum Woken {
    Frame(Option<Result<Incoming, TransportError>>),
    Closing,
}

impl<I: Inbound> Connection<I> {
    /// Reads until there is a message to handle, and releases the reader; or until the input ends.
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
                    self.shared.report_unreadable(None, &reason);
                    reject(&Malformed::NotJson, unaddressed_errors)
                }
                Woken::Frame(Some(Ok(Incoming::Failed(id, failure)))) => {
                    self.shared.settle(&id, Err(CallError::Transport(failure)));
                    AfterFrame::Continue
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
                    () = self.shared.closing.cancelled() => {
                        source.end(Ok(()));
                        return None;
                    }
                },
            }
        }
    }

    /// Returns the next frame. Flushes the outbox before it waits for one.
    async fn next_frame(&self, frames: &mut dyn FrameReader) -> Woken {
        let mut closing = pin!(self.shared.closing.cancelled());
        std::future::poll_fn(|cx| match frames.poll_next(cx) {
            Poll::Ready(frame) => Poll::Ready(Woken::Frame(frame)),
            Poll::Pending => {
                self.shared.flush_before_waiting(0);
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
                // A panic is caught inside; the handle has nothing to report.
                let _ = handler.await;
            }
            AfterFrame::Batch(text, context) => self.batch(&text, context.as_ref(), unaddressed_errors).await,
        }
        self.shared.wait_for_capacity().await;
    }

    fn message(self: &Arc<Self>, message: IncomingMessage, unaddressed_errors: &mut u32) -> AfterFrame {
        let IncomingMessage { text, context, unanswered } = message;
        match Frame::parse_owned(text) {
            Ok(Frame::Batch(text)) if self.accepts_batches() => AfterFrame::Batch(text, context),
            Ok(Frame::Batch(text)) => {
                let reason = "batches are not part of this protocol revision";
                self.malformed(&text, &Malformed::Invalid { id: None, reason }, unaddressed_errors)
            }
            Ok(frame) => self.frame(frame, context, unanswered, unaddressed_errors),
            Err(Rejected { text, reason }) => self.malformed(&text, &reason, unaddressed_errors),
        }
    }

    fn malformed(&self, text: &str, malformed: &Malformed, unaddressed_errors: &mut u32) -> AfterFrame {
        self.shared.report_unreadable(Some(text), malformed);
        reject(malformed, unaddressed_errors)
    }

    fn frame(
        self: &Arc<Self>,
        frame: Frame,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<OnUnanswered>,
        unaddressed_errors: &mut u32,
    ) -> AfterFrame {
        match frame {
            Frame::Request(id, call) => {
                *unaddressed_errors = 0;
                return self.admit_request(id, call, context, unanswered);
            }
            Frame::Notification(call) => {
                *unaddressed_errors = 0;
                return self.admit_notification(call, context);
            }
            Frame::Response(id, response) => {
                *unaddressed_errors = 0;
                self.shared.settle(&id, response);
            }
            // A confused peer sends one for each error of ours, so it does not reset the count.
            Frame::ErrorWithoutId => tracing::debug!("the peer reports an error without an id"),
            // `message` and `batch` handle these.
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
                Ok(Frame::Request(id, call)) if self.schedule(&call) == Schedule::Inline => {
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

    fn accepts_batches(&self) -> bool {
        matches!(catch_unwind(|| self.inbound.batches()), Ok(Batches::Accepted))
    }
}

/// Returns the response to something that is not a frame, if there is one.
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

pub(super) fn error_response(id: Option<&RequestId>, error: &ErrorObject) -> AfterFrame {
    let mut frame = Vec::new();
    jsonrpc::write_failure(&mut frame, id, error);
    AfterFrame::SendControl(frame)
}
