//! Reading: takes in frames in wire order until there is one to handle.
//!
//! The reader waits for no handler and not for the writer, except for an inline method and for back-pressure.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

/// The transport's reader. One worker at a time holds it.
pub(super) struct FrameSource {
    frames: Box<dyn FrameReader>,
    /// Receives how reading has ended.
    ended: oneshot::Sender<Result<(), TransportError>>,
}

impl FrameSource {
    pub(super) fn new(
        frames: Box<dyn FrameReader>,
        ended: oneshot::Sender<Result<(), TransportError>>,
    ) -> Self {
        Self { frames, ended }
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
    pub(super) async fn read(self: &Arc<Self>, source: FrameSource) -> Option<Job> {
        let mut held = Some(source);
        loop {
            let woken = match &mut held {
                Some(source) => self.next_frame(&mut *source.frames).await,
                None => return None,
            };
            let next = match woken {
                Woken::Closing | Woken::Frame(None) => return end(held, Ok(())),
                Woken::Frame(Some(Err(error))) => return end(held, Err(error)),
                Woken::Frame(Some(Ok(Incoming::Message(message)))) => self.message(message, &mut held),
                Woken::Frame(Some(Ok(Incoming::Unreadable(reason)))) => {
                    self.shared.report_unreadable(None, &reason);
                    self.reject(&Malformed::NotJson)
                }
                Woken::Frame(Some(Ok(Incoming::Failed(id, failure)))) => {
                    self.shared.settle(&id, Err(CallError::Transport(failure)));
                    AfterFrame::Continue
                }
            };
            match next {
                AfterFrame::Continue => {}
                AfterFrame::Run(job) => {
                    // A request has released it already, under the lock that admitted it, unless the connection ends.
                    if let Some(source) = held {
                        self.release_reader(source);
                    }
                    return Some(job);
                }
                next => tokio::select! {
                    biased;
                    () = self.apply(next) => {}
                    () = self.shared.closing.cancelled() => return end(held, Ok(())),
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

    async fn apply(self: &Arc<Self>, next: AfterFrame) {
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
            AfterFrame::Batch(text, context) => self.batch(&text, context.as_ref()).await,
        }
        self.shared.wait_for_capacity().await;
    }

    fn message(self: &Arc<Self>, message: IncomingMessage, held: &mut Option<FrameSource>) -> AfterFrame {
        let IncomingMessage { text, context, unanswered } = message;
        match Frame::parse_owned(text) {
            Ok(Frame::Batch(text)) if self.accepts_batches() => AfterFrame::Batch(text, context),
            Ok(Frame::Batch(text)) => {
                let reason = "batches are not part of this protocol revision";
                self.malformed(&text, &Malformed::Invalid { id: None, reason })
            }
            Ok(frame) => self.frame(frame, context, unanswered, held),
            Err(Rejected { text, reason }) => self.malformed(&text, &reason),
        }
    }

    fn malformed(&self, text: &str, malformed: &Malformed) -> AfterFrame {
        self.shared.report_unreadable(Some(text), malformed);
        self.reject(malformed)
    }

    /// Returns the response to something that is not a frame, if there is one.
    fn reject(&self, malformed: &Malformed) -> AfterFrame {
        let Some((id, error)) = malformed.answer() else { return AfterFrame::Continue };
        if id.is_none() {
            let errors = self.unaddressed_errors.load(Ordering::Relaxed).saturating_add(1);
            self.unaddressed_errors.store(errors, Ordering::Relaxed);
            if errors > MAX_UNADDRESSED_ERRORS {
                return AfterFrame::Continue;
            }
        }
        error_response(id, &error)
    }

    fn frame(
        self: &Arc<Self>,
        frame: Frame,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<OnUnanswered>,
        held: &mut Option<FrameSource>,
    ) -> AfterFrame {
        // A confused peer sends an error without an id for each error of ours, so it does not reset the count.
        if !matches!(frame, Frame::ErrorWithoutId | Frame::Batch(_)) {
            self.unaddressed_errors.store(0, Ordering::Relaxed);
        }
        match frame {
            Frame::Request(id, call) => return self.admit_request(id, call, context, unanswered, held),
            Frame::Notification(call) => return self.admit_notification(call, context),
            Frame::Response(id, response) => self.shared.settle(&id, response),
            Frame::ErrorWithoutId => tracing::debug!("the peer reports an error without an id"),
            // `message` and `batch` handle these.
            Frame::Batch(_) => {}
        }
        AfterFrame::Continue
    }

    async fn batch(self: &Arc<Self>, text: &ByteString, context: Option<&Arc<TransportContext>>) {
        let items = match Frame::batch(text) {
            Ok(items) => items,
            Err(malformed) => {
                let next = self.malformed(text, &malformed);
                return Box::pin(self.apply(next)).await;
            }
        };
        for item in items {
            let next = match item {
                Ok(Frame::Request(id, call)) if self.schedule(&call) == Schedule::Inline => {
                    let malformed = Malformed::Invalid { id: Some(id), reason: "not allowed in a batch" };
                    self.malformed(call.text(), &malformed)
                }
                // The reader is kept: it takes in the rest of the batch.
                Ok(frame) => self.frame(frame, context.cloned(), None, &mut None),
                Err(Rejected { text, reason }) => self.malformed(&text, &reason),
            };
            if !matches!(next, AfterFrame::Continue | AfterFrame::Backpressure) {
                Box::pin(self.apply(next)).await;
            }
        }
    }

    fn accepts_batches(&self) -> bool {
        matches!(catch_unwind(|| self.inbound.batches()), Ok(Batches::Accepted))
    }
}

/// Reports how reading has ended. There is no further message.
fn end(held: Option<FrameSource>, how: Result<(), TransportError>) -> Option<Job> {
    if let Some(source) = held {
        source.end(how);
    }
    None
}

pub(super) fn error_response(id: Option<&RequestId>, error: &ErrorObject) -> AfterFrame {
    let mut frame = Vec::new();
    jsonrpc::write_failure(&mut frame, id, error);
    AfterFrame::SendControl(frame)
}
