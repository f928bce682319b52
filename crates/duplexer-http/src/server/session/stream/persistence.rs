//! Persistence stage of a stream: events are stored in order and then delivered to the reader.
//!
//! A task runs only while events are pending. If the store fails, events are still delivered, but without ids: the client
//! cannot resume after them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::tasks::TaskTracker;

use super::Stream;
use crate::server::event_queue;
use crate::server::service_state::lock;
use crate::server::session::store::with_timeout;
use crate::server::sse::EventId;
use crate::session::{Batch, EventKind, EventStore, Numbering, StoredEvent, StreamKey};
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;

/// Store of a persistent stream, and the tracker of its delivery task.
pub(super) struct Persistence {
    pub(super) key: StreamKey,
    pub(super) store: Arc<dyn EventStore>,
    pub(super) tasks: TaskTracker,
}

impl Persistence {
    pub(super) async fn store_priming_event(&self) -> Result<(), StoreError> {
        with_timeout(|| self.store.append(&self.key, Batch::new(RunId(0), Numbering::From(1), &[]))).await?;
        Ok(())
    }

    async fn append(&self, sequence: u64, event: &StoredEvent) -> Result<(), StoreError> {
        let batch = Batch::new(RunId(0), Numbering::From(sequence), std::slice::from_ref(event));
        with_timeout(|| self.store.append(&self.key, batch)).await?;
        Ok(())
    }
}

/// Events that have not been stored and delivered.
#[derive(Default)]
pub(super) struct StoreStage {
    pending: VecDeque<(u64, StoredEvent)>,
    pending_bytes: usize,
    delivery: Delivery,
    health: StoreHealth,
    /// Sequence number of the newest event.
    last_assigned: u64,
    /// Sequence number of the newest event that a reader can have received.
    last_delivered: u64,
    final_event: FinalEvent,
}

/// Whether a delivery task must be started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Delivery {
    #[default]
    Idle,
    /// A task runs, or none is needed.
    InFlight,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StoreHealth {
    #[default]
    Sound,
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FinalEvent {
    #[default]
    None,
    Pending,
}

impl StoreStage {
    pub(super) fn is_full(&self) -> bool {
        event_queue::is_full(self.pending.len(), self.pending_bytes)
    }

    /// Returns whether no event has been sent.
    pub(super) fn is_unused(&self) -> bool {
        self.last_assigned == 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.health == StoreHealth::Failed
    }

    pub(super) fn last_assigned(&self) -> u64 {
        self.last_assigned
    }

    pub(super) fn last_delivered(&self) -> u64 {
        self.last_delivered
    }

    /// Returns whether the final event has been sent, but not delivered.
    pub(super) fn holds_final_event(&self) -> bool {
        self.final_event == FinalEvent::Pending
    }

    /// Adds an event. [`Delivery::Idle`] if the caller must start the delivery task.
    pub(super) fn push(&mut self, data: Bytes, kind: EventKind) -> Delivery {
        self.last_assigned += 1;
        self.pending_bytes += data.len();
        if kind == EventKind::Final {
            self.final_event = FinalEvent::Pending;
        }
        self.pending.push_back((self.last_assigned, StoredEvent::new(data, kind)));
        std::mem::replace(&mut self.delivery, Delivery::InFlight)
    }

    /// Returns the oldest pending event. Without one the delivery task ends.
    fn pop(&mut self) -> Option<(u64, StoredEvent)> {
        let next = self.pending.pop_front();
        match &next {
            Some((_, event)) => self.pending_bytes -= event.data.len(),
            None => self.delivery = Delivery::Idle,
        }
        next
    }

    fn delivered(&mut self, sequence: u64, event: &StoredEvent) {
        self.last_delivered = sequence;
        if event.kind == EventKind::Final {
            self.final_event = FinalEvent::None;
        }
    }
}

impl Stream {
    /// Starts the delivery task if `delivery` says that none runs.
    pub(super) fn start(self: &Arc<Self>, delivery: Delivery) {
        if let (Delivery::Idle, Some(persistence)) = (delivery, &self.persistence) {
            persistence.tasks.spawn(Arc::clone(self).deliver_pending());
        }
    }

    /// Stores and delivers events in order until none is pending.
    async fn deliver_pending(self: Arc<Self>) {
        let Some(persistence) = &self.persistence else { return };
        while let Some(((sequence, event), health)) = self.next_pending() {
            if health == StoreHealth::Sound && persistence.append(sequence, &event).await.is_err() {
                lock(&self.state).stage.health = StoreHealth::Failed;
            }
            poll_fn(|cx| self.poll_deliver(cx, persistence, sequence, &event)).await;
        }
    }

    fn next_pending(&self) -> Option<((u64, StoredEvent), StoreHealth)> {
        let (next, health, wakers) = {
            let mut state = lock(&self.state);
            (state.stage.pop(), state.stage.health, state.queue.wake_writers())
        };
        wakers.wake();
        next.map(|event| (event, health))
    }

    /// Moves a stored event into the reader's queue. Waits for a slow reader, except with the final event. A reader that
    /// does not read at all is cut by the task that watches all streams.
    fn poll_deliver(
        &self,
        cx: &mut Context<'_>,
        persistence: &Persistence,
        sequence: u64,
        event: &StoredEvent,
    ) -> Poll<()> {
        let mut state = lock(&self.state);
        let is_received = state.reader.receives(sequence);
        if is_received && event.kind != EventKind::Final && state.queue.is_full() {
            state.queue.register_writer(cx.waker());
            return Poll::Pending;
        }
        let wakers = if is_received {
            let id = EventId { stream: persistence.key.stream, sequence };
            let id = (!state.stage.has_failed()).then_some(id);
            state.queue.push(id, &event.data)
        } else {
            state.queue.wake_reader()
        };
        state.stage.delivered(sequence, event);
        drop(state);
        wakers.wake();
        Poll::Ready(())
    }
}
