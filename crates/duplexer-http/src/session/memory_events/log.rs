//! One stream of the event store in memory: its events, its writer and its reader.

use std::collections::VecDeque;
use std::sync::Arc;

use duplexer_core::run::RunId;
use duplexer_server::subscriptions::Position;
use duplexer_types::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{ENDED, EVENT_OVERHEAD, EventLimits, RECEIVED};
use crate::session::{
    Appended, Attach, Attached, Batch, EventKind, Numbering, Page, StoredEvent, StreamReader, Takeover,
};

/// Number of batches whose repetition is noticed.
const TOKENS: usize = 64;
/// How far beyond the last stored event a client can claim to have read: the store may have lost the end of a stream, but
/// not more than fits into it.
const LOST: u64 = 100_000;

/// One stream.
pub(super) struct Log {
    origin: Origin,
    kept: Kept,
    readers: Readers,
    batches: Batches,
    end: Option<End>,
    changed: Arc<Notify>,
}

struct Origin {
    /// `None`: several.
    writer: Option<RunId>,
    request: Option<RequestId>,
}

/// What repeated batches are recognised by.
#[derive(Default)]
struct Batches {
    /// Newest batches that the store numbered, with their last event.
    tokens: VecDeque<(u128, u64)>,
    /// Position of the last changes.
    position: Option<Position>,
}

/// The end of a stream.
#[derive(Clone, Copy)]
struct End {
    expires: Instant,
    by: EndedBy,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    Writer,
    /// Another run, because the writer's was gone.
    Reader,
}

/// The events that are kept: a contiguous range of numbers.
struct Kept {
    first: u64,
    events: VecDeque<StoredEvent>,
    bytes: usize,
}

#[derive(Default)]
struct Readers {
    current: Option<StreamReader>,
    /// Number of the newest reader.
    newest: u64,
    /// Last event that the last reader has received.
    left_at: Option<u64>,
    /// Token of the newest reader, and the number after which it began.
    attached: Option<(u64, u64)>,
}

/// Outcome of a batch.
pub(super) enum Written {
    UpTo(u64),
    Full,
    Closed,
}

impl Log {
    pub(super) fn of_request(writer: RunId, request: Option<RequestId>) -> Self {
        let first = StreamReader { run: writer, number: 1 };
        let readers = Readers { current: Some(first), newest: 1, ..Readers::default() };
        Self::new(Origin { writer: Some(writer), request }, readers)
    }

    pub(super) fn standalone() -> Self {
        Self::new(Origin { writer: None, request: None }, Readers::default())
    }

    fn new(origin: Origin, readers: Readers) -> Self {
        Self {
            origin,
            kept: Kept { first: 1, events: VecDeque::new(), bytes: 0 },
            readers,
            batches: Batches::default(),
            end: None,
            changed: Arc::default(),
        }
    }

    /// Returns what opening the stream again results in.
    pub(super) fn opened_by(&self, writer: RunId) -> Appended {
        if self.origin.writer != Some(writer) || self.has_ended() {
            return Appended::Closed;
        }
        Appended::UpTo { last: self.kept.last(), reader: self.reader().map(|reader| reader.run) }
    }

    pub(super) fn is_unused_by(&self, writer: RunId) -> bool {
        self.origin.writer == Some(writer) && self.kept.last() == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.bytes
    }

    pub(super) fn request(&self) -> Option<&RequestId> {
        self.origin.request.as_ref()
    }

    pub(super) fn reader(&self) -> Option<StreamReader> {
        self.readers.current
    }

    pub(super) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn has_expired(&self) -> bool {
        self.end.is_some_and(|end| end.expires <= Instant::now())
    }

    /// Appends what is new of a batch.
    pub(super) fn write(&mut self, batch: &Batch<'_>, limits: &EventLimits) -> Written {
        let last = self.kept.last();
        let new = match batch.numbering {
            Numbering::From(from) => {
                let upto = from.saturating_add(batch.events.len() as u64 - 1);
                let by_reader = self.end.is_some_and(|end| end.by == EndedBy::Reader);
                if self.origin.writer != Some(batch.writer) || (by_reader && upto >= last) {
                    return Written::Closed;
                }
                if upto <= last {
                    return Written::UpTo(upto);
                }
                if self.has_ended() {
                    return Written::Closed;
                }
                if from > last + 1 {
                    // The store has lost the end of the stream. It continues at the writer's own number.
                    self.kept.restart(from);
                }
                let stored = (last + 1).saturating_sub(from);
                batch.events.get(usize::try_from(stored).unwrap_or(usize::MAX)..).unwrap_or_default()
            }
            Numbering::Next { token, position } => {
                let Batches { tokens, position: newest } = &self.batches;
                if let Some((_, last)) = tokens.iter().find(|(known, _)| *known == token) {
                    return Written::UpTo(*last);
                }
                if position.is_some_and(|position| newest.is_some_and(|newest| position <= newest)) {
                    return Written::UpTo(last);
                }
                batch.events
            }
        };
        if !self.kept.make_room(new, batch.unanswered, limits) {
            return Written::Full;
        }
        for event in new {
            self.kept.push(event.clone());
            if event.kind == EventKind::Final {
                self.end(EndedBy::Writer);
            }
        }
        if let Numbering::Next { token, position } = batch.numbering {
            self.batches.tokens.truncate(TOKENS - 1);
            self.batches.tokens.push_front((token, self.kept.last()));
            self.batches.position = position.or(self.batches.position);
        }
        Written::UpTo(self.kept.last())
    }

    /// Ends the stream of a writer. Returns whether it was open.
    pub(super) fn conclude(&mut self, writer: RunId, last: StoredEvent) -> bool {
        if self.has_ended() || self.origin.writer != Some(writer) {
            return false;
        }
        self.kept.push(last);
        self.end(EndedBy::Reader);
        true
    }

    fn end(&mut self, by: EndedBy) {
        self.end = Some(End { expires: Instant::now() + ENDED, by });
    }

    pub(super) fn page(&self, after: u64, at_most: usize) -> Page {
        let kept = &self.kept;
        let first = after.saturating_add(1).max(kept.first);
        let skipped = usize::try_from(first - kept.first).unwrap_or(usize::MAX);
        let events: Vec<_> = kept.events.iter().skip(skipped).take(at_most).cloned().collect();
        let ended = self.has_ended() && first.saturating_add(events.len() as u64) > kept.last();
        let Origin { writer, request } = &self.origin;
        Page { first, events, ended, writer: *writer, request: request.clone(), reader: self.readers.current }
    }

    pub(super) fn attach(&mut self, attach: Attach) -> Attached {
        let Attach { reader: run, after, takeover, token } = attach;
        if let (Some(current), Some((known, after))) = (self.readers.current, self.readers.attached)
            && known == token
        {
            return Attached::Reader { number: current.number, after, position: self.batches.position };
        }
        match (takeover, self.readers.current) {
            (Takeover::Never, Some(current)) => return Attached::Held(current.run),
            (Takeover::Of(gone), Some(current)) if current.run != gone => {
                return Attached::Held(current.run);
            }
            _ => {}
        }
        let last = self.kept.last();
        let after = match after {
            Some(after) if after > last.saturating_add(LOST) => return Attached::Unknown,
            Some(after) => after,
            None => self.readers.left_at.unwrap_or(last),
        };
        if after > last {
            // The store has lost the end of the stream. No number is given to two events.
            self.kept.restart(after + 1);
        }
        self.readers.newest += 1;
        self.readers.left_at = None;
        self.readers.attached = Some((token, after));
        self.readers.current = Some(StreamReader { run, number: self.readers.newest });
        Attached::Reader { number: self.readers.newest, after, position: self.batches.position }
    }

    pub(super) fn detach(&mut self, reader: u64, received: u64) {
        if self.readers.current.is_none_or(|current| current.number != reader) {
            return;
        }
        self.readers.current = None;
        self.readers.left_at = Some(received);
        if let Some(end) = &mut self.end
            && received >= self.kept.last()
        {
            end.expires = Instant::now() + RECEIVED;
        }
    }
}

impl Kept {
    fn last(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }

    fn restart(&mut self, first: u64) {
        self.first = first;
        self.events.clear();
        self.bytes = 0;
    }

    fn push(&mut self, event: StoredEvent) {
        self.bytes += size(&event);
        self.events.push_back(event);
    }

    /// Evicts the oldest events until the new ones fit. Returns `false`, and evicts none, if an event that must stay is in
    /// the way of notifications.
    fn make_room(&mut self, new: &[StoredEvent], unanswered: Option<u64>, limits: &EventLimits) -> bool {
        let added: usize = new.iter().map(size).sum();
        let evictable = unanswered.map_or(u64::MAX, |number| number.saturating_sub(self.first));
        let (mut count, mut freed) = (0, 0);
        for event in &self.events {
            let is_within = self.bytes - freed + added <= limits.stream_bytes
                && self.events.len() - count + new.len() <= limits.stream_events;
            if is_within {
                break;
            }
            if count as u64 >= evictable {
                if new.iter().any(|event| event.kind == EventKind::Notification) {
                    return false;
                }
                break;
            }
            (count, freed) = (count + 1, freed + size(event));
        }
        self.events.drain(..count);
        self.first += count as u64;
        self.bytes -= freed;
        true
    }
}

fn size(event: &StoredEvent) -> usize {
    event.data.len() + EVENT_OVERHEAD
}
