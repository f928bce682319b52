//! The way of an event through the store to the reader, in order. A task runs while something is on that way, and no
//! longer.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::Stream;
use super::state::{Ended, Passing, Reader, Store};
use crate::server::hub::{enlist, lock};
use crate::server::session::store::patient;
use crate::server::sse;
use crate::session::{EventKind, StoredEvent};

/// Whether a task is to pass events on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    No,
    Yes,
}

impl Stream {
    pub(super) fn start(self: &Arc<Self>, start: Start) {
        if let (Start::Yes, Some(kept)) = (start, &self.kept) {
            kept.tasks.spawn(Arc::clone(self).pass_on());
        }
    }

    /// Passes what waits through the store to the reader, in order, until nothing waits.
    async fn pass_on(self: Arc<Self>) {
        let Some(kept) = &self.kept else { return };
        while let Some((event, store)) = self.next_pending() {
            if store == Store::Sound {
                let stored = patient(|| kept.store.append(&kept.key, event.clone())).await;
                if stored.is_err() {
                    lock(&self.state).store = Store::Broken;
                }
            }
            std::future::poll_fn(|cx| self.poll_pass(cx, &event)).await;
        }
    }

    fn next_pending(&self) -> Option<(StoredEvent, Store)> {
        let mut state = lock(&self.state);
        let next = state.pending.pop_front();
        match &next {
            Some(event) => state.pending_bytes -= event.data.len(),
            None => state.passing = Passing::Idle,
        }
        let store = state.store;
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        writers.into_iter().for_each(Waker::wake);
        next.map(|event| (event, store))
    }

    /// Waits for a slow reader, unless it is the last event; whoever does not read at all is cut elsewhere.
    fn poll_pass(&self, cx: &mut Context<'_>, event: &StoredEvent) -> Poll<()> {
        let Some(kept) = &self.kept else { return Poll::Ready(()) };
        let mut state = lock(&self.state);
        let attached = matches!(state.reader, Reader::Attached(_));
        let is_last = event.kind == EventKind::Last;
        if attached && !is_last && state.is_reader_full() {
            enlist(&mut state.writers, cx.waker());
            return Poll::Pending;
        }
        if attached {
            let id = sse::EventId { stream: kept.key.stream, sequence: event.sequence };
            let id = (state.store != Store::Broken).then_some(id);
            sse::write(&mut state.live, id, &event.data);
            state.live_events += 1;
        }
        state.passed_on = event.sequence;
        if is_last {
            state.ended = Ended::Yes;
        }
        let woken = state.waker.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        Poll::Ready(())
    }
}
