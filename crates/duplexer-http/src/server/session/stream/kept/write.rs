//! Writes the events of a kept stream, one batch at a time, each until the store has confirmed or refused it.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use duplexer_core::run::RunId;
use tokio::time::{Instant, sleep};

use super::outbox::{SentEvent, Writing};
use super::{Health, Kept, Phase, State};
use crate::server::session::random;
use crate::server::session::store::jittered;
use crate::session::{Appended, Batch, EventKind, Numbering, StoredEvent, StreamId};
use crate::sync::{MutexGuard, lock};

/// Time after which a writer gives up a batch: the lease of a run that cannot reach the store has ended by then, and
/// another node has ended its streams.
const GIVE_UP: Duration = Duration::from_secs(30);
/// Longest pause after the patience for one operation has ended.
const PAUSE: Duration = Duration::from_secs(1);

impl Kept {
    pub(super) fn push(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        event: StoredEvent,
        question: Option<u64>,
    ) {
        let writing = state.outbox.push(event, question);
        drop(state);
        if writing == Writing::Idle {
            let stream = Arc::clone(self);
            self.stores.spawn(async move { stream.write_all().await });
        }
    }

    /// Writes batches until no event waits.
    async fn write_all(self: Arc<Self>) {
        loop {
            let batch = lock(&self.state).outbox.next_batch();
            if batch.is_empty() {
                // A reader that has all events and saw a batch on its way can look at the store again.
                self.changed.notify_waiters();
                return;
            }
            self.write(batch).await;
        }
    }

    /// Writes one batch, again and again with the same numbers until the store has confirmed or refused it.
    async fn write(&self, batch: Vec<SentEvent>) {
        let (mut questions, mut events): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|sent| (sent.question, sent.event)).unzip();
        let numbering = if self.key.stream == StreamId::STANDALONE {
            Numbering::Next { token: random().unwrap_or_default(), position: None }
        } else {
            Numbering::From(lock(&self.state).stored.last + 1)
        };
        let start = Instant::now();
        while !events.is_empty() {
            let unanswered = lock(&self.state).questions.values().flatten().next().copied();
            let batch = Batch::new(self.run, numbering, &events).unanswered(unanswered);
            match self.stores.append(&self.key, batch).await {
                Ok(Appended::UpTo { last, reader }) => return self.confirm(last, reader, events, &questions),
                Ok(Appended::Full) => self.drop_notifications(&mut events, &mut questions),
                Ok(Appended::Closed | Appended::Unknown) => return self.refused(),
                Err(_) if start.elapsed() >= GIVE_UP => return self.refused(),
                Err(_) => {
                    self.stall();
                    sleep(jittered(PAUSE)).await;
                }
            }
        }
    }

    fn confirm(&self, last: u64, reader: Option<RunId>, events: Vec<StoredEvent>, questions: &[Option<u64>]) {
        let bytes = events.iter().map(|event| event.data.len()).sum();
        let count = events.len() as u64;
        let ended = events.last().is_some_and(|event| event.kind == EventKind::Final);
        let mut state = lock(&self.state);
        state.outbox.confirm(events.len(), bytes);
        for (number, question) in (last + 1 - count..).zip(questions) {
            if let Some(known) = question.and_then(|id| state.questions.get_mut(&id)) {
                *known = Some(number);
            }
        }
        if reader.is_some_and(|reader| reader != self.run) && state.reader.number.is_some() {
            state.vacate();
        }
        if last != state.stored.last + count {
            // Another writer was in between, so what is kept is no longer contiguous.
            state.stored.forget_recent();
        }
        state.stored.last = last;
        state.stored.count += count;
        state.stored.health = Health::Sound;
        if state.reader.number.is_some() {
            state.stored.keep(events);
        }
        state.settle_leaving();
        if ended {
            state.phase = Phase::Over;
        }
        self.proceed(state);
    }

    /// Drops notifications that the store has no capacity for.
    fn drop_notifications(&self, events: &mut Vec<StoredEvent>, questions: &mut Vec<Option<u64>>) {
        let (count, bytes) = (events.len(), size(events));
        let all = std::mem::take(events).into_iter().zip(std::mem::take(questions));
        (*events, *questions) = all.filter(|(event, _)| event.kind != EventKind::Notification).unzip();
        let dropped = count - events.len();
        tracing::warn!(dropped, "a stream is full, so notifications are dropped");
        let mut state = lock(&self.state);
        state.outbox.confirm(dropped, bytes - size(events));
        if dropped == 0 {
            // A store that refuses even these is broken.
            drop(state);
            events.clear();
            return self.refused();
        }
        state.stored.count += dropped as u64;
        self.proceed(state);
    }

    /// Lets the reader at this node go: the client resumes the stream at another.
    fn stall(&self) {
        lock(&self.state).stored.health = Health::Stalled;
        self.changed.notify_waiters();
    }

    /// Ends the writing of a stream that the store has closed. Its handler has no one to work for.
    fn refused(&self) {
        self.end(lock(&self.state));
        if let Some(cancellation) = self.cancellation.get() {
            cancellation.cancel();
        }
    }

    fn proceed(&self, mut state: MutexGuard<'_, State>) {
        let writers = std::mem::take(&mut state.writers);
        drop(state);
        self.changed.notify_waiters();
        writers.into_iter().for_each(Waker::wake);
    }
}

fn size(events: &[StoredEvent]) -> usize {
    events.iter().map(|event| event.data.len()).sum()
}
