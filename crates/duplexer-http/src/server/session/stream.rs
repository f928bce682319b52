//! One SSE stream of a session: an event queue with a reader that can leave and be replaced.
//!
//! A persistent stream stores its events before it delivers them (`persistence`), so a client can resume it. An ephemeral
//! stream loses events that no reader receives.

mod persistence;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::dispatch::StreamClosing;
use duplexer_core::error::StoreError;
use duplexer_core::tasks::TaskTracker;
use tokio::time::{Instant, sleep_until};

use self::persistence::{Delivery, Persistence, StoreStage};
use crate::server::event_queue::{EventQueue, EventSink, QueueState, Wakers, WhenFull};
use crate::server::response::ResponseStart;
use crate::server::rpc_response::RpcResponse;
use crate::server::service_state::lock;
use crate::server::sse;
use crate::session::{EventKind, EventStore, StreamId, StreamKey};

/// One SSE stream of a session.
pub(in crate::server) struct Stream {
    persistence: Option<Persistence>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    reader: ReaderSlot,
    /// Events for the reader. Closed once the response is known, or the stream has ended without one.
    queue: EventQueue,
    /// Events on their way to the store. Unused by an ephemeral stream.
    stage: StoreStage,
    /// The response, while it can still become a body of its own. An ephemeral stream sends it after the queued events.
    response: Option<RpcResponse>,
}

/// The one reader of a stream. Readers are numbered, so that a replaced one is recognised.
#[derive(Default)]
struct ReaderSlot {
    current: Reader,
    /// Number of the newest reader.
    newest: u64,
    vacancy: Vacancy,
}

/// How long a stream has been without a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Vacancy {
    /// It has a reader, or has not had one yet.
    #[default]
    None,
    Since(Instant),
    /// For so long that its call has been cancelled.
    Abandoned,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reader {
    #[default]
    None,
    Attached(u64),
    /// Leaves once it has received the events up to `last`.
    Leaving {
        number: u64,
        last: u64,
    },
}

impl ReaderSlot {
    fn attach(&mut self) -> u64 {
        self.newest += 1;
        self.current = Reader::Attached(self.newest);
        self.vacancy = Vacancy::None;
        self.newest
    }

    /// Removes the reader. Once the response is known, no call waits for another reader.
    fn vacate(&mut self, response: QueueState) {
        self.current = Reader::None;
        if response == QueueState::Open {
            self.vacancy = Vacancy::Since(Instant::now());
        }
    }

    fn is_held_by(&self, number: u64) -> bool {
        matches!(self.current, Reader::Attached(own) | Reader::Leaving { number: own, .. } if own == number)
    }

    /// Returns whether the reader receives the event with this sequence number.
    fn receives(&self, sequence: u64) -> bool {
        match self.current {
            Reader::None => false,
            Reader::Attached(_) => true,
            Reader::Leaving { last, .. } => sequence <= last,
        }
    }

    /// Returns whether the reader receives no event after this one.
    fn has_received_all(&self, delivered: u64) -> bool {
        !self.receives(delivered + 1)
    }

    fn is_vacant(&self) -> bool {
        self.current == Reader::None
    }
}

impl StreamState {
    /// Returns whether everything has been delivered and nothing follows.
    fn is_over(&self) -> bool {
        !self.queue.is_open() && !self.stage.holds_final_event()
    }
}

/// A reader that has been attached.
pub(super) struct Attached {
    pub(super) number: u64,
    /// Sequence number of the last event that was delivered to earlier readers. Later ones come on the stream.
    pub(super) delivered: u64,
}

impl Stream {
    /// Creates a stream whose events are lost if no reader receives them.
    pub(super) fn ephemeral() -> Arc<Self> {
        Arc::new(Self { persistence: None, state: Mutex::default() })
    }

    /// Creates a stream whose events are stored.
    pub(super) fn persistent(key: StreamKey, store: Arc<dyn EventStore>, tasks: TaskTracker) -> Arc<Self> {
        let persistence = Some(Persistence { key, store, tasks });
        Arc::new(Self { persistence, state: Mutex::default() })
    }

    /// Returns the id of a persistent stream.
    pub(super) fn id(&self) -> Option<StreamId> {
        self.persistence.as_ref().map(|persistence| persistence.key.stream)
    }

    /// Stores the priming event, so that every node knows the stream.
    pub(super) async fn open(&self) -> Result<(), StoreError> {
        match &self.persistence {
            Some(persistence) => persistence.store_priming_event().await,
            None => Ok(()),
        }
    }

    /// Attaches a reader, which replaces the current one. It does not receive events that were delivered before.
    pub(super) fn attach(&self) -> Attached {
        let mut state = lock(&self.state);
        let number = state.reader.attach();
        if self.persistence.is_some() {
            state.queue.clear();
        }
        let delivered = state.stage.last_delivered();
        let wakers = state.queue.wake_reader();
        drop(state);
        wakers.wake();
        Attached { number, delivered }
    }

    /// Detaches a reader, unless it has been replaced. Queued events are lost to it.
    pub(super) fn detach(&self, number: u64) {
        let wakers = {
            let mut state = lock(&self.state);
            if !state.reader.is_held_by(number) {
                return;
            }
            let response = state.queue.state();
            state.reader.vacate(response);
            state.queue.reset()
        };
        wakers.wake();
    }

    pub(super) fn is_read(&self) -> bool {
        !lock(&self.state).reader.is_vacant()
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over()
    }

    /// Resolves when the stream has been without a reader for `limit`.
    pub(super) async fn abandoned(&self, limit: Duration) {
        loop {
            let due = {
                let mut state = lock(&self.state);
                let now = Instant::now();
                match state.reader.vacancy {
                    Vacancy::Abandoned => return,
                    Vacancy::Since(since) if now.duration_since(since) >= limit => {
                        state.reader.vacancy = Vacancy::Abandoned;
                        return;
                    }
                    Vacancy::Since(since) => since + limit,
                    Vacancy::None => now + limit,
                }
            };
            sleep_until(due).await;
        }
    }

    /// Returns whether [`Self::abandoned`] has resolved, and no reader has come since.
    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.state).reader.vacancy == Vacancy::Abandoned
    }

    /// Returns whether an event can reach the client, now or later.
    pub(super) fn has_receiver(&self) -> bool {
        self.reaches_client(&lock(&self.state))
    }

    fn reaches_client(&self, state: &StreamState) -> bool {
        state.queue.is_open() && (self.persistence.is_some() || !state.reader.is_vacant())
    }

    /// Ends the stream with its response.
    pub(super) fn finish(self: &Arc<Self>, response: RpcResponse) {
        let (wakers, delivery) = {
            let mut state = lock(&self.state);
            if !state.queue.is_open() {
                return;
            }
            let wakers = state.queue.close();
            if self.persistence.is_none() {
                state.response = Some(response);
                (wakers, Delivery::InFlight)
            } else if response.is_challenge() && state.stage.is_unused() {
                let text = Bytes::copy_from_slice(response.text());
                state.response = Some(response);
                (wakers, state.stage.push(text, EventKind::Final))
            } else {
                (wakers, state.stage.push(response.into_text(), EventKind::Final))
            }
        };
        wakers.wake();
        self.start(delivery);
    }

    /// Ends the stream without a response.
    pub(super) fn close(&self) {
        let wakers = lock(&self.state).queue.close();
        wakers.wake();
    }

    /// Detaches the reader once it has received the events so far, including those on their way to the store. The client
    /// resumes the stream later.
    pub(super) fn release(&self) -> StreamClosing {
        let mut state = lock(&self.state);
        if self.persistence.is_none() || state.stage.has_failed() {
            return StreamClosing::NotSupported;
        }
        if let Reader::Attached(number) = state.reader.current {
            state.reader.current = Reader::Leaving { number, last: state.stage.last_assigned() };
        }
        let wakers = state.queue.wake_reader();
        drop(state);
        wakers.wake();
        StreamClosing::Closing
    }

    /// Returns how the response starts. While that is unknown, the next event or the response wakes the task.
    pub(super) fn poll_start(&self, cx: &mut Context<'_>) -> Poll<ResponseStart> {
        let mut state = lock(&self.state);
        // A persistent stream starts with its priming event, unless its only event is an authorization challenge.
        let is_stream =
            if self.persistence.is_some() { state.response.is_none() } else { !state.queue.is_empty() };
        if is_stream {
            return Poll::Ready(ResponseStart::Stream);
        }
        if let Some(response) = state.response.take() {
            return Poll::Ready(ResponseStart::Response(response));
        }
        state.queue.register_reader(cx.waker());
        Poll::Pending
    }

    /// Returns the next events for the reader with this number; `None` at the end, or if the reader has been replaced.
    pub(super) fn poll_read(&self, number: u64, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut state = lock(&self.state);
        if !state.reader.is_held_by(number) {
            return Poll::Ready(None);
        }
        let (mut events, wakers) = state.queue.drain();
        if self.persistence.is_none()
            && let Some(response) = state.response.take()
        {
            sse::write(&mut events, None, response.text());
        }
        let read = if !events.is_empty() {
            Poll::Ready(Some(events))
        } else if state.reader.has_received_all(state.stage.last_delivered()) || state.is_over() {
            let response = state.queue.state();
            state.reader.vacate(response);
            Poll::Ready(None)
        } else {
            state.queue.register_reader(cx.waker());
            Poll::Pending
        };
        drop(state);
        wakers.wake();
        read
    }
}

impl EventSink for Stream {
    fn offer(self: &Arc<Self>, json: &[u8], when_full: WhenFull<'_>) -> Poll<()> {
        let (wakers, delivery) = {
            let mut state = lock(&self.state);
            if !self.reaches_client(&state) {
                return Poll::Ready(());
            }
            let is_full = state.queue.is_full() || state.stage.is_full();
            if state.queue.must_wait(is_full, when_full) {
                return Poll::Pending;
            }
            if self.persistence.is_none() {
                (state.queue.push(None, json), Delivery::InFlight)
            } else {
                (Wakers::default(), state.stage.push(Bytes::copy_from_slice(json), EventKind::Notification))
            }
        };
        wakers.wake();
        self.start(delivery);
        Poll::Ready(())
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("persistent", &self.persistence.is_some()).finish_non_exhaustive()
    }
}
