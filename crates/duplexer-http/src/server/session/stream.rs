//! One stream of a session: what is told on it waits here for whoever reads it.
//!
//! A reader may leave and another may come. Where events are kept, they pass through the store first and nobody has to
//! read them at once; elsewhere what nobody reads is lost, and its sender is told so.

mod keeping;
mod state;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use duplexer_core::dispatch::{NotifyFuture, StreamClosing};
use tokio_util::task::TaskTracker;

use self::keeping::Start;
use self::state::{Ended, Reader, State, Store};
use super::store::{StoreFailed, patient};
use crate::server::exchange::Answer;
use crate::server::hub::{enlist, lock};
use crate::server::sse;
use crate::session::{EventKind, EventStore, StoredEvent, StreamId, StreamKey};

pub(in crate::server) struct Stream {
    kept: Option<Kept>,
    state: Mutex<State>,
}

/// Where the events of a stream are kept.
struct Kept {
    key: StreamKey,
    store: Arc<dyn EventStore>,
    tasks: TaskTracker,
}

/// What a reader gets.
pub(in crate::server) enum Read {
    Events(Vec<u8>),
    End,
}

/// How far an answer has come, as long as nothing has been read.
pub(in crate::server) enum Turn {
    /// It is there, and nothing was told before.
    Answer(Answer),
    /// Something was told: it is a stream.
    Stream,
}

impl Stream {
    /// A stream whose events are lost unless somebody reads them.
    pub(super) fn passing() -> Arc<Self> {
        Arc::new(Self { kept: None, state: Mutex::default() })
    }

    /// A stream whose events are kept.
    pub(super) fn keeping(key: StreamKey, store: Arc<dyn EventStore>, tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self { kept: Some(Kept { key, store, tasks }), state: Mutex::default() })
    }

    pub(super) fn id(&self) -> Option<StreamId> {
        self.kept.as_ref().map(|kept| kept.key.stream)
    }

    /// Writes the opening event down, so that any node knows the stream.
    pub(super) async fn open(&self) -> Result<(), StoreFailed> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let opening = StoredEvent::new(0, Bytes::new(), EventKind::Opening);
        patient(|| kept.store.append(&kept.key, opening)).await
    }

    /// Becomes the reader, in the place of any other. What was passed on before is not read again; its last number is
    /// given back.
    pub(super) fn attach(&self) -> (u64, u64) {
        let mut state = lock(&self.state);
        state.readers += 1;
        let number = state.readers;
        state.reader = Reader::Attached(number);
        if self.kept.is_some() {
            state.live.clear();
            state.live_events = 0;
        }
        let passed_on = state.passed_on;
        let woken = state.waker.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        (number, passed_on)
    }

    /// The reader has gone, if it still was the reader. What waited for it alone is lost.
    pub(super) fn detach(&self, number: u64) {
        let writers = {
            let mut state = lock(&self.state);
            if !matches!(state.reader, Reader::Attached(own) | Reader::Leaving(own) if own == number) {
                return;
            }
            state.leave()
        };
        writers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_read(&self) -> bool {
        lock(&self.state).reader != Reader::Nobody
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).ended == Ended::Yes
    }

    /// Whether what is told can reach anybody, now or later.
    pub(super) fn is_of_use(&self) -> bool {
        self.reaches_somebody(&lock(&self.state))
    }

    fn reaches_somebody(&self, state: &State) -> bool {
        state.ended == Ended::No && (self.kept.is_some() || state.reader != Reader::Nobody)
    }

    /// Queues a message, or drops it where there is nobody to tell.
    fn offer(self: &Arc<Self>, json: &[u8], room: Room) -> Offer {
        let (woken, start) = {
            let mut state = lock(&self.state);
            if !self.reaches_somebody(&state) {
                return Offer::Dropped;
            }
            if room == Room::Needed && state.is_full() {
                return Offer::Full;
            }
            match &self.kept {
                None => {
                    sse::write(&mut state.live, None, json);
                    state.live_events += 1;
                    (state.waker.take(), Start::No)
                }
                Some(_) => (None, state.keep(Bytes::copy_from_slice(json), EventKind::Message)),
            }
        };
        if let Some(reader) = woken {
            reader.wake();
        }
        self.start(start);
        Offer::Taken
    }

    fn poll_room(self: &Arc<Self>, cx: &mut Context<'_>, json: &[u8]) -> Poll<()> {
        if self.offer(json, Room::Needed) != Offer::Full {
            return Poll::Ready(());
        }
        enlist(&mut lock(&self.state).writers, cx.waker());
        // Room may have come between the two locks.
        if self.offer(json, Room::Needed) == Offer::Full { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Tells something; there may be something to wait for.
    pub(super) fn tell(self: &Arc<Self>, json: Vec<u8>) -> NotifyFuture {
        if self.offer(&json, Room::Needed) != Offer::Full {
            return NotifyFuture::done();
        }
        let stream = Arc::clone(self);
        NotifyFuture::waiting(std::future::poll_fn(move |cx| stream.poll_room(cx, &json)))
    }

    /// Tells something that cannot wait, beyond any limit.
    pub(super) fn tell_now(self: &Arc<Self>, json: &[u8]) {
        self.offer(json, Room::Beyond);
    }

    /// The answer: the last that is told.
    pub(super) fn finish(self: &Arc<Self>, answer: Answer) {
        let (woken, start) = {
            let mut state = lock(&self.state);
            if state.ended != Ended::No {
                return;
            }
            if self.kept.is_some() {
                state.ended = Ended::Told;
                let text = if answer.is_challenge() && state.told == 0 {
                    let text = Bytes::copy_from_slice(answer.text());
                    state.challenge = Some(answer);
                    text
                } else {
                    answer.into_text()
                };
                (None, state.keep(text, EventKind::Last))
            } else {
                state.ended = Ended::Yes;
                state.answer = Some(answer);
                (state.waker.take(), Start::No)
            }
        };
        if let Some(reader) = woken {
            reader.wake();
        }
        self.start(start);
    }

    /// Nothing more will be told, and there is no answer.
    pub(super) fn close(&self) {
        let (reader, writers) = {
            let mut state = lock(&self.state);
            if state.ended == Ended::No {
                state.ended = Ended::Yes;
            }
            (state.waker.take(), std::mem::take(&mut state.writers))
        };
        reader.into_iter().chain(writers).for_each(Waker::wake);
    }

    /// Lets the reader go, once it has got what waits; it comes back for the rest.
    pub(super) fn release(&self) -> StreamClosing {
        let mut state = lock(&self.state);
        if self.kept.is_none() || state.store == Store::Broken {
            return StreamClosing::NotSupported;
        }
        if let Reader::Attached(number) = state.reader {
            state.reader = Reader::Leaving(number);
        }
        let woken = state.waker.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
        StreamClosing::Closing
    }

    /// What has become of the answer, for a response that has not begun.
    pub(super) fn turn(&self) -> Option<Turn> {
        let mut state = lock(&self.state);
        if let Some(challenge) = state.challenge.take() {
            return Some(Turn::Answer(challenge));
        }
        if state.live_events > 0 {
            return Some(Turn::Stream);
        }
        state.answer.take().map(Turn::Answer)
    }

    /// Who is to be woken when there is something to read.
    pub(super) fn register(&self, reader: &Waker) {
        let mut state = lock(&self.state);
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(reader)) {
            state.waker = Some(reader.clone());
        }
    }

    /// The next events for the reader with this number.
    pub(super) fn poll_read(&self, number: u64, cx: &mut Context<'_>) -> Poll<Read> {
        let mut state = lock(&self.state);
        let leaving = match state.reader {
            Reader::Attached(own) if own == number => false,
            Reader::Leaving(own) if own == number => true,
            // Somebody else reads, or this one was given up.
            _ => return Poll::Ready(Read::End),
        };
        let mut events = std::mem::take(&mut state.live);
        state.live_events = 0;
        if let Some(answer) = state.answer.take() {
            sse::write(&mut events, None, answer.text());
        }
        let writers = std::mem::take(&mut state.writers);
        let read = if !events.is_empty() {
            Poll::Ready(Read::Events(events))
        } else if leaving || state.ended == Ended::Yes {
            state.reader = Reader::Nobody;
            Poll::Ready(Read::End)
        } else {
            if !state.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                state.waker = Some(cx.waker().clone());
            }
            Poll::Pending
        };
        drop(state);
        writers.into_iter().for_each(Waker::wake);
        read
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Needed,
    /// It cannot wait.
    Beyond,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    Taken,
    Dropped,
    Full,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("kept", &self.kept.is_some()).finish_non_exhaustive()
    }
}
