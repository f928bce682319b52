//! The writer of a stream whose events are stored before a client sees them.
//!
//! Events wait in the outbox until a batch of them is stored (`write`). A reader at this node then gets them without
//! another call of the store; one that is too slow for that, or at another node, reads them from the store (`follow`).

mod outbox;
mod write;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::dispatch::{Cancellation, StreamClosing};
use duplexer_core::run::RunId;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::outbox::Outbox;
use super::vacancy::Vacancy;
use crate::server::event_queue::{QueueState, WhenFull, is_full};
use crate::server::response::ResponseStart;
use crate::server::rpc_response::RpcResponse;
use crate::server::session::stores::Stores;
use crate::session::{EventKind, StoredEvent, StreamKey};
use crate::sync::{Mutex, MutexGuard, lock};

/// The writer of a kept stream.
pub(in crate::server) struct Kept {
    stores: Arc<Stores>,
    key: StreamKey,
    /// The run that writes.
    run: RunId,
    state: Mutex<State>,
    /// Notified of every change that concerns the reader at this node.
    changed: Notify,
    /// Raised if the store refuses further events.
    cancellation: OnceLock<Arc<Cancellation>>,
}

#[derive(Default)]
struct State {
    phase: Phase,
    outbox: Outbox,
    stored: Stored,
    reader: LocalReader,
    /// Requests to the client without a response, with their number once they are stored.
    questions: BTreeMap<u64, Option<u64>>,
    /// The response, while it can still become a body of its own.
    response: Option<RpcResponse>,
    /// Tasks that wait for capacity.
    writers: Vec<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// The last event waits for the store.
    Ending,
    /// The last event is stored, or the store refuses further events.
    Over,
}

/// What the store has confirmed.
#[derive(Default)]
struct Stored {
    /// Number of the last event.
    last: u64,
    /// Number of events that this node has stored.
    count: u64,
    /// The newest events, for the reader at this node. They end with `last`.
    recent: VecDeque<StoredEvent>,
    recent_bytes: usize,
    health: Health,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Health {
    #[default]
    Sound,
    /// The store has not confirmed a batch for as long as operations are tried.
    Stalled,
}

/// The reader at this node.
#[derive(Default)]
struct LocalReader {
    number: Option<u64>,
    leaving: Option<Leaving>,
    vacancy: Vacancy,
}

/// A reader that leaves once it has received the events so far.
#[derive(Clone, Copy)]
struct Leaving {
    /// Number of events that were sent before.
    sent: u64,
    /// The last of them, once it is stored.
    last: Option<u64>,
}

/// What a reader at this node does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LocalEvents {
    /// Sends these events, which begin with this number.
    Events(u64, Vec<StoredEvent>),
    /// Waits: it has received all stored events.
    UpToDate,
    /// Waits for a batch that is on its way to the store.
    Writing,
    /// Reads the store: it lags behind.
    Behind,
    /// Ends.
    Over,
}

impl Kept {
    pub(super) fn new(stores: Arc<Stores>, key: StreamKey) -> Arc<Self> {
        let run = stores.run();
        Arc::new(Self {
            stores,
            key,
            run,
            state: Mutex::default(),
            changed: Notify::new(),
            cancellation: OnceLock::new(),
        })
    }

    pub(in crate::server::session) fn key(&self) -> &StreamKey {
        &self.key
    }

    pub(in crate::server::session) fn stores(&self) -> &Arc<Stores> {
        &self.stores
    }

    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    pub(super) fn set_cancellation(&self, cancellation: &Arc<Cancellation>) {
        let _ = self.cancellation.set(Arc::clone(cancellation));
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).phase == Phase::Open
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).phase == Phase::Over
    }

    pub(super) fn is_read(&self) -> bool {
        lock(&self.state).reader.number.is_some()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        lock(&self.state).reader.vacancy == Vacancy::Abandoned
    }

    /// Returns the time at which the stream counts as abandoned; `None` if it does now. A reader at another node counts.
    pub(super) async fn abandoned_at(&self, limit: Duration) -> Option<Instant> {
        let due = lock(&self.state).reader.vacancy.due(limit);
        if due.is_some() || self.stores.shared().is_none() {
            return due;
        }
        // While the store is unavailable, it is unknown whether a client reads elsewhere.
        if let Ok(page) = self.stores.read(&self.key, 0, 0).await {
            let reader = page?.reader?;
            if reader.run == self.run || !self.stores.is_alive(reader.run).await {
                return None;
            }
        }
        let mut state = lock(&self.state);
        if state.reader.vacancy == Vacancy::Abandoned {
            state.reader.vacancy = Vacancy::Since(Instant::now());
        }
        state.reader.vacancy.due(limit)
    }

    /// Makes the reader with this number the one at this node.
    pub(in crate::server::session) fn attach(&self, number: u64) {
        let mut state = lock(&self.state);
        state.reader = LocalReader { number: Some(number), ..LocalReader::default() };
        state.stored.forget_recent();
        // The store has just attached the reader, so it responds again.
        state.stored.health = Health::Sound;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Removes the reader with this number, unless it has been replaced.
    pub(super) fn detach(&self, number: u64) {
        let mut state = lock(&self.state);
        if state.reader.number == Some(number) {
            state.vacate();
        }
    }

    /// Returns what the reader with this number does next, after the event that it has received.
    pub(super) fn next(&self, number: u64, after: u64) -> LocalEvents {
        let mut state = lock(&self.state);
        let last = state.reader.leaving.and_then(|leaving| leaving.last).unwrap_or(u64::MAX);
        let is_stalled = state.stored.health == Health::Stalled;
        if state.reader.number != Some(number) || after >= last || is_stalled {
            return LocalEvents::Over;
        }
        if after < state.stored.last {
            return match state.stored.take(after, last) {
                Some(events) => LocalEvents::Events(after + 1, events),
                None => LocalEvents::Behind,
            };
        }
        match state.phase {
            Phase::Over => LocalEvents::Over,
            _ if state.outbox.is_writing() => LocalEvents::Writing,
            _ => LocalEvents::UpToDate,
        }
    }

    /// Returns how many events the reader can receive before it leaves.
    pub(super) fn until_leaving(&self, after: u64) -> usize {
        let last = lock(&self.state).reader.leaving.and_then(|leaving| leaving.last);
        last.map_or(usize::MAX, |last| usize::try_from(last.saturating_sub(after)).unwrap_or(usize::MAX))
    }

    /// Sends an event, or discards it if the stream has ended. Pending if too many wait for the store.
    pub(super) fn offer(
        self: &Arc<Self>,
        json: &[u8],
        question: Option<&Question>,
        when_full: WhenFull<'_>,
    ) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open {
            return Poll::Ready(());
        }
        if state.outbox.is_full() {
            match when_full {
                WhenFull::Exceed => {}
                WhenFull::Reject => return Poll::Pending,
                WhenFull::Wait(waker) => {
                    if !state.writers.iter().any(|known| known.will_wake(waker)) {
                        state.writers.push(waker.clone());
                    }
                    return Poll::Pending;
                }
            }
        }
        let kind = if question.is_some() { EventKind::Request } else { EventKind::Notification };
        let event = StoredEvent::new(Bytes::copy_from_slice(json), kind);
        self.push(state, event, question.map(|question| question.id));
        Poll::Ready(())
    }

    /// Ends the stream with its response.
    pub(super) fn finish(self: &Arc<Self>, response: RpcResponse) {
        let mut state = lock(&self.state);
        if state.phase != Phase::Open {
            return;
        }
        state.phase = Phase::Ending;
        let text = if response.is_refusal() && state.outbox.is_unused() {
            let text = Bytes::copy_from_slice(response.text());
            state.response = Some(response);
            text
        } else {
            response.into_text()
        };
        self.push(state, StoredEvent::new(text, EventKind::Final), None);
    }

    /// Ends the stream on this node, without a response.
    pub(super) fn close(&self) {
        self.end(lock(&self.state));
    }

    fn end(&self, mut state: MutexGuard<'_, State>) {
        state.phase = Phase::Over;
        state.outbox.clear();
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        self.changed.notify_waiters();
        writers.into_iter().for_each(Waker::wake);
    }

    /// Lets the reader at this node leave once it has received the events so far.
    pub(super) fn release(&self) -> StreamClosing {
        let mut state = lock(&self.state);
        if state.stored.health == Health::Stalled {
            return StreamClosing::NotSupported;
        }
        if state.reader.number.is_some() {
            let sent = state.outbox.sent();
            state.reader.leaving = Some(Leaving { sent, last: None });
            state.settle_leaving();
        }
        drop(state);
        self.changed.notify_waiters();
        StreamClosing::Closing
    }

    /// A kept stream begins at once, unless its only event is an authorization challenge.
    pub(super) fn start_response(&self) -> ResponseStart {
        lock(&self.state).response.take().map_or(ResponseStart::Stream, ResponseStart::Response)
    }

    /// Registers a request to the client.
    pub(super) fn question(self: &Arc<Self>) -> Arc<Question> {
        let mut state = lock(&self.state);
        let id = state.questions.last_key_value().map_or(0, |(id, _)| id + 1).max(state.outbox.sent());
        state.questions.insert(id, None);
        drop(state);
        Arc::new(Question { stream: Arc::clone(self), id })
    }
}

impl State {
    fn vacate(&mut self) {
        let response = if self.phase == Phase::Open { QueueState::Open } else { QueueState::Closed };
        self.reader.number = None;
        self.reader.vacancy.begin(response);
        self.stored.forget_recent();
    }

    /// Finds the last event that a leaving reader receives, once it is stored.
    fn settle_leaving(&mut self) {
        let Stored { last, count, .. } = self.stored;
        if let Some(leaving) = &mut self.reader.leaving
            && leaving.last.is_none()
            && count >= leaving.sent
        {
            leaving.last = Some(last - (count - leaving.sent));
        }
    }
}

impl Stored {
    /// Takes the events after a number, up to another. `None` if they are not all here.
    fn take(&mut self, after: u64, up_to: u64) -> Option<Vec<StoredEvent>> {
        let first = self.last + 1 - self.recent.len() as u64;
        let received = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        self.recent.drain(..received.min(self.recent.len()));
        let count = usize::try_from(up_to.min(self.last) - after).ok()?.min(self.recent.len());
        let events: Vec<_> = self.recent.drain(..count).collect();
        self.recent_bytes = self.recent.iter().map(|event| event.data.len()).sum();
        Some(events)
    }

    /// Keeps stored events for the reader at this node, unless too many wait for it: then it reads the store.
    fn keep(&mut self, events: impl IntoIterator<Item = StoredEvent>) {
        for event in events {
            self.recent_bytes += event.data.len();
            self.recent.push_back(event);
        }
        if is_full(self.recent.len() / 2, self.recent_bytes / 2) {
            self.forget_recent();
        }
    }

    fn forget_recent(&mut self) {
        self.recent = VecDeque::new();
        self.recent_bytes = 0;
    }
}

/// A request to the client. Until it is dropped, the store keeps its event.
pub(in crate::server::session) struct Question {
    stream: Arc<Kept>,
    id: u64,
}

impl Drop for Question {
    fn drop(&mut self) {
        lock(&self.stream.state).questions.remove(&self.id);
    }
}
