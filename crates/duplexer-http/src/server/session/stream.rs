//! One SSE stream of a session.
//!
//! An ephemeral stream is a queue with a reader: events that no reader receives are lost. The events of a kept stream are
//! stored before a client sees them, so a client can resume it, at any node that shares the store.

mod ephemeral;
mod follow;
mod kept;
mod vacancy;

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::dispatch::{Cancellation, NotifyFuture, StreamClosing};
use tokio::time::sleep_until;

use self::ephemeral::Ephemeral;
use super::stores::Stores;
use crate::server::event_queue::{EventSink, WhenFull};
use crate::server::response::ResponseStart;
use crate::server::rpc_response::RpcResponse;
use crate::session::{StreamId, StreamKey};

pub(super) use ephemeral::ReaderHandle;
pub(super) use follow::{FollowHandle, Follower, NextEvents, node_lost};
pub(super) use kept::{Kept, Question};

/// One SSE stream of a session.
pub(in crate::server) enum Stream {
    Ephemeral(Ephemeral),
    Kept(Arc<Kept>),
}

impl Stream {
    /// Creates a stream whose events are lost if no reader receives them.
    pub(super) fn ephemeral() -> Arc<Self> {
        Arc::new(Self::Ephemeral(Ephemeral::default()))
    }

    /// Creates a stream whose events are stored.
    pub(super) fn kept(stores: &Arc<Stores>, key: StreamKey) -> Arc<Self> {
        Arc::new(Self::Kept(Kept::new(Arc::clone(stores), key)))
    }

    /// Returns the id of a kept stream.
    pub(super) fn id(&self) -> Option<StreamId> {
        self.as_kept().map(|kept| kept.key().stream)
    }

    pub(super) fn as_kept(&self) -> Option<&Arc<Kept>> {
        match self {
            Self::Ephemeral(_) => None,
            Self::Kept(kept) => Some(kept),
        }
    }

    pub(super) fn is_read(&self) -> bool {
        match self {
            Self::Ephemeral(stream) => stream.is_read(),
            Self::Kept(kept) => kept.is_read(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Ephemeral(stream) => stream.is_over(),
            Self::Kept(kept) => kept.is_over(),
        }
    }

    /// Resolves when the stream has been without a reader for `limit`.
    pub(super) async fn abandoned(&self, limit: Duration) {
        loop {
            let due = match self {
                Self::Ephemeral(stream) => stream.abandoned_at(limit),
                Self::Kept(kept) => kept.abandoned_at(limit).await,
            };
            match due {
                Some(due) => sleep_until(due).await,
                None => return,
            }
        }
    }

    /// Returns whether [`Self::abandoned`] has resolved, and no reader has come since.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Ephemeral(stream) => stream.is_abandoned(),
            Self::Kept(kept) => kept.is_abandoned(),
        }
    }

    /// Returns whether an event can reach the client, now or later.
    pub(super) fn has_receiver(&self) -> bool {
        match self {
            Self::Ephemeral(stream) => stream.has_receiver(),
            Self::Kept(kept) => kept.is_open(),
        }
    }

    /// Sets what is cancelled if the store refuses further events.
    pub(super) fn set_cancellation(&self, cancellation: &Arc<Cancellation>) {
        if let Self::Kept(kept) = self {
            kept.set_cancellation(cancellation);
        }
    }

    /// Ends the stream with its response.
    pub(super) fn finish(&self, response: RpcResponse) {
        match self {
            Self::Ephemeral(stream) => stream.finish(response),
            Self::Kept(kept) => kept.finish(response),
        }
    }

    /// Ends the stream without a response.
    pub(super) fn close(&self) {
        match self {
            Self::Ephemeral(stream) => stream.close(),
            Self::Kept(kept) => kept.close(),
        }
    }

    /// Detaches the reader once it has received the events so far, including those on their way to the store. The client
    /// resumes the stream later.
    pub(super) fn release(&self) -> StreamClosing {
        match self {
            Self::Ephemeral(_) => StreamClosing::NotSupported,
            Self::Kept(kept) => kept.release(),
        }
    }

    /// Returns how the response starts. While that is unknown, the next event or the response wakes the task.
    pub(super) fn poll_start(&self, cx: &mut Context<'_>) -> Poll<ResponseStart> {
        match self {
            Self::Ephemeral(stream) => stream.poll_start(cx),
            Self::Kept(kept) => Poll::Ready(kept.start_response()),
        }
    }

    fn push(&self, json: &[u8], question: Option<&Question>, when_full: WhenFull<'_>) -> Poll<()> {
        match self {
            Self::Ephemeral(stream) => stream.offer(json, when_full),
            Self::Kept(kept) => kept.offer(json, question, when_full),
        }
    }

    /// Registers a request to the client, so that the store keeps it until it is answered.
    pub(super) fn question(&self) -> Option<Arc<Question>> {
        self.as_kept().map(Kept::question)
    }

    /// Sends a request to the client. The returned future is ready unless the queue is full.
    pub(super) fn ask(self: &Arc<Self>, json: &[u8], question: Option<&Arc<Question>>) -> NotifyFuture {
        if self.push(json, question.map(|question| &**question), WhenFull::Reject).is_ready() {
            return NotifyFuture::done();
        }
        let (stream, question, json) = (Arc::clone(self), question.cloned(), json.to_owned());
        NotifyFuture::waiting(std::future::poll_fn(move |cx| {
            stream.push(&json, question.as_deref(), WhenFull::Wait(cx.waker()))
        }))
    }
}

impl EventSink for Stream {
    fn offer(self: &Arc<Self>, json: &[u8], when_full: WhenFull<'_>) -> Poll<()> {
        self.push(json, None, when_full)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("kept", &self.as_kept().is_some()).finish_non_exhaustive()
    }
}
