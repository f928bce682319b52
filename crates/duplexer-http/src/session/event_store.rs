//! Store of the events of streams: written in batches, read in pages, by one reader at a time.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_server::subscriptions::Position;
use duplexer_types::jsonrpc::RequestId;
use serde::{Deserialize, Serialize};

/// Stores the events of streams for clients that lose their connection, or that read at another node.
///
/// A stream is identified by its session and its id together, so that one session cannot read events of another. Events
/// are numbered from one, without a gap. The stream of a request has one writer, the run that serves the request, and one
/// last event. The stream for messages outside a request ([`StreamId::STANDALONE`]) has several writers and no end.
pub trait EventStore: Send + Sync + 'static {
    /// Appends events. A batch without events opens the stream, with its writer as reader number 1. Events that are
    /// stored already, by their numbers or by the token of their batch, are skipped.
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>>;

    /// Returns the events after a number, oldest first. `None` if the stream is unknown.
    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>>;

    /// Makes a run the reader of a stream. An earlier reader is woken and finds that it was replaced. Opens the stream if
    /// it is the standalone one.
    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>>;

    /// Removes a reader that has received the events up to a number, unless it was replaced.
    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends the stream of a writer whose run is gone with a last event. Later events of that writer are refused.
    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>>;

    /// Removes the streams of a session that has ended. [`super::SessionStore::delete`] does the same.
    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns a future that resolves when the stream may have changed since this call, at whichever node. A wake-up can
    /// be lost, so readers also look at intervals.
    fn watch(&self, stream: &StreamKey) -> Wake;
}

impl<T: EventStore + ?Sized> EventStore for Arc<T> {
    fn append<'a>(
        &'a self,
        stream: &'a StreamKey,
        batch: Batch<'a>,
    ) -> BoxFuture<'a, Result<Appended, StoreError>> {
        (**self).append(stream, batch)
    }

    fn read<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
        at_most: usize,
    ) -> BoxFuture<'a, Result<Option<Page>, StoreError>> {
        (**self).read(stream, after, at_most)
    }

    fn attach<'a>(
        &'a self,
        stream: &'a StreamKey,
        attach: Attach,
    ) -> BoxFuture<'a, Result<Attached, StoreError>> {
        (**self).attach(stream, attach)
    }

    fn detach<'a>(
        &'a self,
        stream: &'a StreamKey,
        reader: u64,
        received: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).detach(stream, reader, received)
    }

    fn conclude<'a>(
        &'a self,
        stream: &'a StreamKey,
        writer: RunId,
        last: &'a Bytes,
    ) -> BoxFuture<'a, Result<Concluded, StoreError>> {
        (**self).conclude(stream, writer, last)
    }

    fn forget<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).forget(session)
    }

    fn watch(&self, stream: &StreamKey) -> Wake {
        (**self).watch(stream)
    }
}

/// One stream of one session.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamKey {
    /// The id of the session.
    pub session: Arc<str>,
    /// The id of the stream.
    pub stream: StreamId,
}

impl StreamKey {
    /// Creates the key of a stream.
    pub fn new(session: Arc<str>, stream: StreamId) -> Self {
        Self { session, stream }
    }
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The id of the session is a secret.
        f.debug_struct("StreamKey").field("stream", &self.stream).finish_non_exhaustive()
    }
}

/// Id of a stream within its session: 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StreamId(pub u128);

impl StreamId {
    /// The stream for messages outside a request.
    pub const STANDALONE: Self = Self(0);
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys and event ids consist of these digits, and `{:032x}` takes five times as long.
        let digit = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
        let pairs = self.0.to_be_bytes().map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        f.write_str(std::str::from_utf8(pairs.as_flattened()).map_err(|_| fmt::Error)?)
    }
}

/// One stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredEvent {
    /// The message as JSON text.
    pub data: Bytes,
    /// The role of the event in the stream.
    pub kind: EventKind,
}

impl StoredEvent {
    /// Creates an event.
    pub fn new(data: Bytes, kind: EventKind) -> Self {
        Self { data, kind }
    }
}

/// Role of an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A notification.
    Notification,
    /// A request of the server to the client.
    Request,
    /// The last message: the response to the request of the stream. It is never evicted.
    Final,
}

/// Events to be appended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Batch<'a> {
    /// The run that writes.
    pub writer: RunId,
    /// How the events are numbered.
    pub numbering: Numbering,
    /// The events.
    pub events: &'a [StoredEvent],
    /// The request whose stream a batch without events opens.
    pub request: Option<&'a RequestId>,
    /// The oldest event that must stay, because the client has not answered it.
    pub unanswered: Option<u64>,
}

impl<'a> Batch<'a> {
    /// Creates a batch of a run.
    pub fn new(writer: RunId, numbering: Numbering, events: &'a [StoredEvent]) -> Self {
        Self { writer, numbering, events, request: None, unanswered: None }
    }

    /// Creates the batch that opens the stream of a request.
    pub fn open(writer: RunId, request: &'a RequestId) -> Self {
        Self { writer, numbering: Numbering::From(1), events: &[], request: Some(request), unanswered: None }
    }

    /// Sets the oldest event that must stay.
    #[must_use]
    pub fn unanswered(mut self, number: Option<u64>) -> Self {
        self.unanswered = number;
        self
    }
}

/// How the events of a batch are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Numbering {
    /// By the only writer of the stream, from this number on.
    From(u64),
    /// By the store, because the stream has several writers. The token identifies the batch.
    Next {
        /// Random bits of the batch.
        token: u128,
        /// The position of the changes that the events are about. A batch whose position is not after that of an earlier
        /// one is skipped: another node has written the changes.
        position: Option<Position>,
    },
}

/// Outcome of [`EventStore::append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Appended {
    /// The events are stored.
    UpTo {
        /// The number of the last event of the batch.
        last: u64,
        /// The run of the stream's reader.
        reader: Option<RunId>,
    },
    /// Nothing was stored: the stream is at its limit, and its oldest event must stay. Without notifications the batch
    /// is accepted.
    Full,
    /// Nothing was stored: the stream has ended, or has another writer.
    Closed,
    /// Nothing was stored: there is no such stream.
    Unknown,
}

/// A reader to be attached.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Attach {
    /// The run that reads.
    pub reader: RunId,
    /// The number of the last event that the client has received. `None`: the client continues where the last reader
    /// left, or at the end.
    pub after: Option<u64>,
    /// What happens to the current reader.
    pub takeover: Takeover,
    /// Random number by which a repetition is recognized. It has the outcome of the first attempt.
    pub token: u64,
}

impl Attach {
    /// Creates the attachment of a client that has received events: it replaces any reader.
    pub fn after(reader: RunId, after: u64) -> Self {
        Self { reader, after: Some(after), takeover: Takeover::Always, token: token() }
    }

    /// Creates the attachment of a client that has received nothing.
    pub fn anew(reader: RunId, takeover: Takeover) -> Self {
        Self { reader, after: None, takeover, token: token() }
    }
}

fn token() -> u64 {
    RandomState::new().hash_one(0)
}

/// Which current reader a new one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Takeover {
    /// Any.
    Always,
    /// None.
    Never,
    /// One of this run, which is gone.
    Of(RunId),
}

/// Outcome of [`EventStore::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Attached {
    /// The run is the reader.
    Reader {
        /// The number of the reader.
        number: u64,
        /// The number of the last event that the client has received.
        after: u64,
        /// The position of the last changes that were written.
        position: Option<Position>,
    },
    /// Another run reads the stream.
    Held(RunId),
    /// There is no such stream.
    Unknown,
}

/// Events of a stream, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The number of the first event of the page. Greater than requested if earlier events were evicted.
    pub first: u64,
    /// The events.
    pub events: Vec<StoredEvent>,
    /// Whether the stream has ended and no event follows the page.
    pub ended: bool,
    /// The run that writes the stream, if it has one writer.
    pub writer: Option<RunId>,
    /// The request of the stream.
    pub request: Option<RequestId>,
    /// The reader.
    pub reader: Option<StreamReader>,
}

impl Page {
    /// Creates the page of a stream that has no events after a number.
    pub fn empty(after: u64) -> Self {
        Self { first: after + 1, events: Vec::new(), ended: false, writer: None, request: None, reader: None }
    }
}

/// The reader of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReader {
    /// Its run.
    pub run: RunId,
    /// Its number. Every attachment has a greater one.
    pub number: u64,
}

/// Outcome of [`EventStore::conclude`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Concluded {
    /// The stream has ended with this event.
    Ended,
    /// The stream had ended before, or has another writer. Nothing was written.
    Already,
    /// There is no such stream.
    Unknown,
}

/// Resolves when a stream may have changed.
#[must_use = "a wake-up does nothing unless it is awaited"]
pub struct Wake(BoxFuture<'static, ()>);

impl Wake {
    /// Creates a wake-up from a future.
    pub fn new(changed: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(changed))
    }
}

impl Future for Wake {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}
