//! Bounded queue of encoded SSE events between the senders of one stream and its reader, for both eras.
//!
//! The queue is plain data: its owner holds it behind a lock and wakes the returned [`Wakers`] after releasing the lock.

use std::sync::Arc;
use std::task::{Poll, Waker};

use duplexer_core::dispatch::NotifyFuture;
use duplexer_types::jsonrpc::{self, Body};

use super::sse::{self, EventId};

/// Maximum number of queued events. Beyond it senders wait.
pub(super) const MAX_EVENTS: usize = 64;
/// Maximum number of queued bytes. The last event can exceed it.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// Returns whether a queue of this size accepts no further event.
pub(super) fn is_full(events: usize, bytes: usize) -> bool {
    events >= MAX_EVENTS || bytes >= MAX_BYTES
}

/// Bounded queue of encoded events with the wakers of its reader and of the senders that wait for capacity.
#[derive(Default)]
pub(super) struct EventQueue {
    state: QueueState,
    bytes: Vec<u8>,
    events: usize,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// Whether a queue accepts events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueState {
    #[default]
    Open,
    /// Events are discarded: the response is one JSON body, or it has ended.
    Closed,
}

/// What a sender does when the queue is full.
#[derive(Clone, Copy)]
pub(super) enum WhenFull<'a> {
    /// The event is not queued.
    Reject,
    /// The event is not queued; the waker is woken when there is capacity.
    Wait(&'a Waker),
    /// The event is queued beyond the limit, because its sender cannot wait.
    Exceed,
}

impl EventQueue {
    pub(super) fn new(state: QueueState) -> Self {
        Self { state, ..Self::default() }
    }

    pub(super) fn state(&self) -> QueueState {
        self.state
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == QueueState::Open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events == 0
    }

    pub(super) fn is_full(&self) -> bool {
        is_full(self.events, self.bytes.len())
    }

    /// Returns whether a sender must wait, given whether there is capacity, and registers its waker.
    pub(super) fn must_wait(&mut self, is_full: bool, when_full: WhenFull<'_>) -> bool {
        match when_full {
            _ if !is_full => false,
            WhenFull::Exceed => false,
            WhenFull::Reject => true,
            WhenFull::Wait(waker) => {
                self.register_writer(waker);
                true
            }
        }
    }

    /// Appends an event. Checks neither state nor capacity.
    pub(super) fn push(&mut self, id: Option<EventId>, json: &[u8]) -> Wakers {
        sse::write(&mut self.bytes, id, json);
        self.events += 1;
        self.wake_reader()
    }

    /// Takes all queued events, which frees capacity for the waiting senders.
    pub(super) fn drain(&mut self) -> (Vec<u8>, Wakers) {
        self.events = 0;
        (std::mem::take(&mut self.bytes), self.wake_writers())
    }

    /// Discards all queued events and forgets the reader.
    pub(super) fn reset(&mut self) -> Wakers {
        self.reader = None;
        self.drain().1
    }

    /// Discards further events. Queued ones stay readable.
    pub(super) fn close(&mut self) -> Wakers {
        self.state = QueueState::Closed;
        Wakers { reader: self.reader.take(), writers: std::mem::take(&mut self.writers) }
    }

    /// Registers the task to be woken by the next event.
    pub(super) fn register_reader(&mut self, reader: &Waker) {
        if !self.reader.as_ref().is_some_and(|known| known.will_wake(reader)) {
            self.reader = Some(reader.clone());
        }
    }

    pub(super) fn forget_reader(&mut self) {
        self.reader = None;
    }

    /// Registers a task to be woken when there is capacity.
    pub(super) fn register_writer(&mut self, writer: &Waker) {
        if !self.writers.iter().any(|known| known.will_wake(writer)) {
            self.writers.push(writer.clone());
        }
    }

    pub(super) fn wake_reader(&mut self) -> Wakers {
        Wakers { reader: self.reader.take(), writers: Vec::new() }
    }

    pub(super) fn wake_writers(&mut self) -> Wakers {
        Wakers { reader: None, writers: std::mem::take(&mut self.writers) }
    }
}

/// Tasks to be woken once the lock of the queue is released.
#[derive(Default)]
#[must_use = "the tasks wait until they are woken"]
pub(super) struct Wakers {
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

impl Wakers {
    pub(super) fn wake(self) {
        self.reader.into_iter().chain(self.writers).for_each(Waker::wake);
    }
}

/// Shared owner of an [`EventQueue`].
pub(super) trait EventSink: Send + Sync + 'static {
    /// Queues an event, or discards it if no client can receive it. Pending if the queue is full.
    fn offer(self: &Arc<Self>, json: &[u8], when_full: WhenFull<'_>) -> Poll<()>;
}

/// Sends an event. The returned future is ready unless the queue is full.
pub(super) fn enqueue<S: EventSink>(sink: &Arc<S>, json: Vec<u8>) -> NotifyFuture {
    if sink.offer(&json, WhenFull::Reject).is_ready() {
        return NotifyFuture::done();
    }
    let sink = Arc::clone(sink);
    NotifyFuture::waiting(std::future::poll_fn(move |cx| sink.offer(&json, WhenFull::Wait(cx.waker()))))
}

/// Encodes a notification. Runs outside of any lock, because the params serialize themselves with user code.
pub(super) fn encode_notification(method: &str, params: Option<&dyn Body>) -> Option<Vec<u8>> {
    let mut json = Vec::with_capacity(256);
    match jsonrpc::write_notification(&mut json, method, params) {
        Ok(()) => Some(json),
        Err(error) => {
            tracing::warn!(method, %error, "a notification could not be written and is dropped");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_sender_waits_for_capacity_and_is_woken_once_by_the_reader() {
        let (mut queue, woken) = (EventQueue::default(), Arc::new(Counter::default()));
        let waker = Waker::from(Arc::clone(&woken));
        for _ in 0..MAX_EVENTS {
            assert!(!queue.must_wait(queue.is_full(), WhenFull::Reject));
            queue.push(None, b"{}").wake();
        }
        for _ in 0..2 {
            assert!(queue.must_wait(queue.is_full(), WhenFull::Wait(&waker)));
        }
        assert!(!queue.must_wait(queue.is_full(), WhenFull::Exceed));
        let (bytes, wakers) = queue.drain();
        wakers.wake();
        assert_eq!((bytes.is_empty(), queue.is_empty(), queue.is_full()), (false, true, false));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_large_event_fills_the_queue_by_its_bytes() {
        let mut queue = EventQueue::default();
        queue.push(None, &vec![b' '; MAX_BYTES]).wake();
        assert!(queue.is_full());
    }

    #[test]
    fn a_closed_queue_keeps_what_is_queued_and_wakes_everyone() {
        let (mut queue, woken) = (EventQueue::default(), Arc::new(Counter::default()));
        let waker = Waker::from(Arc::clone(&woken));
        queue.push(None, b"{}").wake();
        queue.register_reader(&waker);
        queue.register_writer(&waker);
        queue.close().wake();
        assert!(!queue.is_open() && !queue.is_empty());
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    }
}
