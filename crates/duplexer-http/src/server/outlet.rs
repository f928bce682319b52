//! The way from a handler back to its client while the answer is being made: a small queue of events.
//!
//! The handler fills it, whoever polls the handler empties it. No task and no channel stand between.

use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, Cancellation, Channel, NotifyFuture, Outbound, OutboundRequest};
use duplexer_core::error::CallError;
use duplexer_types::jsonrpc::{self, Body};

use super::hub::{Hub, enlist, lock};
use super::sse;

/// Events that wait, at most; then their senders wait.
const MAX_EVENTS: usize = 64;
/// Bytes that wait, at most; one event more may exceed it.
const MAX_BYTES: usize = 64 * 1024;

/// The channel of one request.
pub(super) struct Outlet {
    me: Weak<Self>,
    hub: Arc<Hub>,
    cancellation: Cancellation,
    queue: Mutex<Queue>,
}

struct Queue {
    state: State,
    bytes: Vec<u8>,
    events: usize,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// What becomes of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// They are queued.
    Open,
    /// There is nobody to tell: the answer is one JSON body, or nobody waits for it any more.
    Closed,
}

impl Outlet {
    pub(super) fn new(hub: Arc<Hub>, state: State) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            hub,
            cancellation: Cancellation::new(),
            queue: Mutex::new(Queue {
                state,
                bytes: Vec::new(),
                events: 0,
                reader: None,
                writers: Vec::new(),
            }),
        })
    }

    /// Who is to be woken when there is something to read.
    pub(super) fn register(&self, reader: &Waker) {
        let mut queue = lock(&self.queue);
        if !queue.reader.as_ref().is_some_and(|known| known.will_wake(reader)) {
            queue.reader = Some(reader.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.queue).events == 0
    }

    /// Takes all that waits, which makes room.
    pub(super) fn take(&self) -> Vec<u8> {
        let (bytes, writers) = {
            let mut queue = lock(&self.queue);
            queue.events = 0;
            queue.reader = None;
            (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.writers))
        };
        writers.into_iter().for_each(Waker::wake);
        bytes
    }

    /// Nobody reads any more; what is told from now on is dropped.
    pub(super) fn close(&self) {
        let writers = {
            let mut queue = lock(&self.queue);
            queue.state = State::Closed;
            queue.reader = None;
            std::mem::take(&mut queue.writers)
        };
        writers.into_iter().for_each(Waker::wake);
        self.cancellation.cancel();
    }

    /// Queues an event if there is room, or drops it if there is nobody to tell.
    fn offer(&self, json: &[u8]) -> Offer {
        let reader = {
            let mut queue = lock(&self.queue);
            if queue.state == State::Closed {
                return Offer::Taken;
            }
            if queue.events >= MAX_EVENTS || queue.bytes.len() >= MAX_BYTES {
                return Offer::Full;
            }
            sse::write(&mut queue.bytes, None, json);
            queue.events += 1;
            queue.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
        Offer::Taken
    }

    fn poll_room(&self, cx: &mut Context<'_>, json: &[u8]) -> Poll<()> {
        if self.offer(json) == Offer::Taken {
            return Poll::Ready(());
        }
        enlist(&mut lock(&self.queue).writers, cx.waker());
        // Room may have come between the two locks.
        if self.offer(json) == Offer::Taken { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[derive(PartialEq, Eq)]
enum Offer {
    Taken,
    Full,
}

impl Outbound for Outlet {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if lock(&self.queue).state == State::Closed {
            return NotifyFuture::done();
        }
        // Written outside of the lock: what writes itself here is the author's code.
        let mut json = Vec::with_capacity(256);
        if let Err(error) = jsonrpc::write_notification(&mut json, method, params) {
            tracing::warn!(method, %error, "a notification could not be written and is dropped");
            return NotifyFuture::done();
        }
        if self.offer(&json) == Offer::Taken {
            return NotifyFuture::done();
        }
        let Some(outlet) = self.me.upgrade() else { return NotifyFuture::done() };
        NotifyFuture::waiting(std::future::poll_fn(move |cx| outlet.poll_room(cx, &json)))
    }
}

impl Channel for Outlet {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn closing(&self) -> &Cancellation {
        &self.hub.closing
    }
}
