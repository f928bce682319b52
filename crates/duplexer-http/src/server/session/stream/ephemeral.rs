//! A stream whose events are lost if no reader receives them: a queue, and a reader that can leave and be replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::Stream;
use super::vacancy::Vacancy;
use crate::server::event_queue::{EventQueue, WhenFull};
use crate::server::response::ResponseStart;
use crate::server::rpc_response::RpcResponse;
use crate::server::service_state::stream_watch::{LastRead, WatchedStream};
use crate::server::sse;
use crate::sync::{Mutex, lock};

/// A stream whose events are lost if no reader receives them.
#[derive(Default)]
pub(in crate::server) struct Ephemeral(Mutex<State>);

#[derive(Default)]
struct State {
    reader: ReaderSlot,
    /// Events for the reader. Closed once the response is known, or the stream has ended without one.
    queue: EventQueue,
    /// The response, while it can still become a body of its own. Otherwise it is sent after the queued events.
    response: Option<RpcResponse>,
}

/// The one reader of a stream. Readers are numbered, so that a replaced one is recognised.
#[derive(Default)]
struct ReaderSlot {
    current: Option<u64>,
    /// Number of the newest reader.
    newest: u64,
    vacancy: Vacancy,
}

impl Ephemeral {
    /// Attaches a reader, which replaces the current one.
    fn attach(&self) -> u64 {
        let mut state = lock(&self.0);
        let reader = &mut state.reader;
        reader.newest += 1;
        reader.current = Some(reader.newest);
        reader.vacancy = Vacancy::None;
        let number = reader.newest;
        let wakers = state.queue.wake_reader();
        drop(state);
        wakers.wake();
        number
    }

    /// Detaches a reader, unless it has been replaced. Queued events are lost to it.
    fn detach(&self, number: u64) {
        let wakers = {
            let mut state = lock(&self.0);
            if state.reader.current != Some(number) {
                return;
            }
            state.vacate();
            state.queue.reset()
        };
        wakers.wake();
    }

    pub(super) fn is_read(&self) -> bool {
        lock(&self.0).reader.current.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        !lock(&self.0).queue.is_open()
    }

    pub(super) fn abandoned_at(&self, limit: Duration) -> Option<Instant> {
        lock(&self.0).reader.vacancy.due(limit)
    }

    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.0).reader.vacancy == Vacancy::Abandoned
    }

    pub(super) fn has_receiver(&self) -> bool {
        lock(&self.0).has_receiver()
    }

    pub(super) fn finish(&self, response: RpcResponse) {
        let wakers = {
            let mut state = lock(&self.0);
            if !state.queue.is_open() {
                return;
            }
            state.response = Some(response);
            state.queue.close()
        };
        wakers.wake();
    }

    pub(super) fn close(&self) {
        let wakers = lock(&self.0).queue.close();
        wakers.wake();
    }

    pub(super) fn poll_start(&self, cx: &mut Context<'_>) -> Poll<ResponseStart> {
        let mut state = lock(&self.0);
        if !state.queue.is_empty() {
            return Poll::Ready(ResponseStart::Stream);
        }
        if let Some(response) = state.response.take() {
            return Poll::Ready(ResponseStart::Response(response));
        }
        state.queue.register_reader(cx.waker());
        Poll::Pending
    }

    /// Returns the next events for the reader with this number; `None` at the end, or if the reader has been replaced.
    fn poll_read(&self, number: u64, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut state = lock(&self.0);
        if state.reader.current != Some(number) {
            return Poll::Ready(None);
        }
        let (mut events, wakers) = state.queue.drain();
        if let Some(response) = state.response.take() {
            sse::write(&mut events, None, response.text());
        }
        let read = if !events.is_empty() {
            Poll::Ready(Some(events))
        } else if !state.queue.is_open() {
            state.vacate();
            Poll::Ready(None)
        } else {
            state.queue.register_reader(cx.waker());
            Poll::Pending
        };
        drop(state);
        wakers.wake();
        read
    }

    pub(super) fn offer(&self, json: &[u8], when_full: WhenFull<'_>) -> Poll<()> {
        let wakers = {
            let mut state = lock(&self.0);
            if !state.has_receiver() {
                return Poll::Ready(());
            }
            let is_full = state.queue.is_full();
            if state.queue.must_wait(is_full, when_full) {
                return Poll::Pending;
            }
            state.queue.push(None, json)
        };
        wakers.wake();
        Poll::Ready(())
    }
}

impl State {
    fn has_receiver(&self) -> bool {
        self.queue.is_open() && self.reader.current.is_some()
    }

    fn vacate(&mut self) {
        self.reader.current = None;
        self.reader.vacancy.begin(self.queue.state());
    }
}

/// One reader of an ephemeral stream. Dropping it detaches the reader.
pub(in crate::server::session) struct ReaderHandle {
    stream: Arc<Stream>,
    number: u64,
    last_read: LastRead,
    timed_out: AtomicBool,
}

impl ReaderHandle {
    /// Attaches a reader to a stream. A kept stream has another kind of reader, so this one receives nothing.
    pub(in crate::server::session) fn attach(stream: &Arc<Stream>) -> Self {
        let number = match &**stream {
            Stream::Ephemeral(stream) => stream.attach(),
            Stream::Kept(_) => 0,
        };
        let stream = Arc::clone(stream);
        Self { stream, number, last_read: LastRead::now(), timed_out: AtomicBool::new(false) }
    }

    pub(in crate::server::session) fn is_timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }

    /// Returns the next events; `None` at the end.
    pub(in crate::server::session) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        match &*self.stream {
            Stream::Ephemeral(stream) => stream.poll_read(self.number, cx),
            Stream::Kept(_) => Poll::Ready(None),
        }
    }

    fn detach(&self) {
        if let Stream::Ephemeral(stream) = &*self.stream {
            stream.detach(self.number);
        }
    }
}

impl WatchedStream for ReaderHandle {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    fn time_out(&self) {
        self.timed_out.store(true, Ordering::Release);
        self.detach();
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        self.detach();
    }
}
