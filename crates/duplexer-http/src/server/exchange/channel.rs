//! Channel from the handler of an exchange to its client: notifications only, through the event queue.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, Cancellation, Channel, NotifyFuture, Outbound, OutboundRequest};
use duplexer_core::error::CallError;
use duplexer_types::jsonrpc::Body;

use crate::server::event_queue::{EventQueue, EventSink, QueueState, WhenFull, encode_notification, enqueue};
use crate::server::service_state::ServiceState;
use crate::sync::{Mutex, lock};

/// Channel of one exchange.
pub(in crate::server) struct ExchangeChannel {
    me: Weak<Self>,
    service: Arc<ServiceState>,
    cancellation: Cancellation,
    queue: Mutex<EventQueue>,
}

impl ExchangeChannel {
    pub(in crate::server) fn new(service: Arc<ServiceState>, state: QueueState) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            service,
            cancellation: Cancellation::new(),
            queue: Mutex::new(EventQueue::new(state)),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.queue).is_empty()
    }

    /// Ready if an event is queued. Otherwise the next one wakes the task.
    pub(super) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = lock(&self.queue);
        if !queue.is_empty() {
            return Poll::Ready(());
        }
        queue.register_reader(cx.waker());
        Poll::Pending
    }

    /// Forgets the reader while it polls the handler: it reads the queue right after that, and needs no wake-up.
    pub(in crate::server) fn forget_reader(&self) {
        lock(&self.queue).forget_reader();
    }

    /// Takes all queued events. The next one, sent by another task than the reader's, wakes `reader`.
    pub(in crate::server) fn read(&self, reader: &Waker) -> Vec<u8> {
        let (events, wakers) = {
            let mut queue = lock(&self.queue);
            queue.register_reader(reader);
            queue.drain()
        };
        wakers.wake();
        events
    }

    /// Discards further events and cancels what the handler has left running.
    pub(super) fn close(&self) {
        let wakers = lock(&self.queue).close();
        wakers.wake();
        self.cancellation.cancel();
    }
}

impl EventSink for ExchangeChannel {
    fn offer(self: &Arc<Self>, json: &[u8], when_full: WhenFull<'_>) -> Poll<()> {
        let wakers = {
            let mut queue = lock(&self.queue);
            if !queue.is_open() {
                return Poll::Ready(());
            }
            let is_full = queue.is_full();
            if queue.must_wait(is_full, when_full) {
                return Poll::Pending;
            }
            queue.push(None, json)
        };
        wakers.wake();
        Poll::Ready(())
    }
}

impl Outbound for ExchangeChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if !lock(&self.queue).is_open() {
            return NotifyFuture::done();
        }
        match (encode_notification(method, params), self.me.upgrade()) {
            (Some(json), Some(channel)) => enqueue(&channel, json),
            _ => NotifyFuture::done(),
        }
    }
}

impl Channel for ExchangeChannel {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn closing(&self) -> &Cancellation {
        &self.service.closing
    }
}
