//! SSE body that reads a stream of a session.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use duplexer_server::Principal;
use tokio::time::Instant;

use super::ActivityGuard;
use super::stream::{FollowHandle, Follower, NextEvents, ReaderHandle, Stream};
use crate::server::body::{Chunk, Expiry, Heartbeat, StreamTimedOut};
use crate::server::service_state::ServiceState;
use crate::server::service_state::stream_watch::{WatchGuard, WatchedStream};

/// SSE body that reads a stream of a session.
pub(in crate::server) struct SseBody {
    source: Source,
    /// Sent before the stream: the priming event.
    prefix: Vec<u8>,
    heartbeat: Heartbeat,
    /// Expiry of the reader's token, which ends the stream.
    expiry: Expiry,
    _watch: WatchGuard,
    _activity: Arc<ActivityGuard>,
}

/// The reader of a stream whose body has not begun.
pub(super) enum Reader {
    Queue(ReaderHandle),
    Follow(Arc<FollowHandle>),
}

impl Reader {
    /// Attaches the first reader of a stream.
    pub(super) fn first(stream: &Arc<Stream>) -> Self {
        match stream.as_kept() {
            Some(kept) => Self::Follow(FollowHandle::first(kept)),
            None => Self::Queue(ReaderHandle::attach(stream)),
        }
    }
}

/// Where the events come from.
enum Source {
    Queue(Arc<ReaderHandle>),
    Follow(Arc<FollowHandle>, NextEvents),
}

impl Source {
    fn watched(&self) -> Weak<dyn WatchedStream> {
        match self {
            Self::Queue(reader) => Arc::downgrade(reader) as Weak<dyn WatchedStream>,
            Self::Follow(reader, _) => Arc::downgrade(reader) as Weak<dyn WatchedStream>,
        }
    }

    fn touch(&self, now: Instant) {
        match self {
            Self::Queue(reader) => reader.last_read().touch(now),
            Self::Follow(reader, _) => reader.last_read().touch(now),
        }
    }

    fn is_timed_out(&self) -> bool {
        match self {
            Self::Queue(reader) => reader.is_timed_out(),
            Self::Follow(reader, _) => reader.is_timed_out(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        match self {
            Self::Queue(reader) => reader.poll(cx),
            Self::Follow(_, next) => next.as_mut().poll(cx).map(|(follower, events)| {
                *next = follower.next();
                events
            }),
        }
    }
}

impl SseBody {
    pub(super) fn new(
        service: &Arc<ServiceState>,
        reader: Reader,
        prefix: Vec<u8>,
        activity: Arc<ActivityGuard>,
    ) -> Self {
        let source = match reader {
            Reader::Queue(reader) => Source::Queue(Arc::new(reader)),
            Reader::Follow(handle) => {
                let follower = Follower::new(Arc::clone(&handle), Arc::clone(service));
                Source::Follow(handle, follower.next())
            }
        };
        Self::reading(service, source, prefix, activity)
    }

    /// Creates the body of a reader of a kept stream.
    pub(super) fn following(
        service: &Arc<ServiceState>,
        follower: Follower,
        prefix: Vec<u8>,
        activity: Arc<ActivityGuard>,
    ) -> Self {
        let source = Source::Follow(Arc::clone(follower.handle()), follower.next());
        Self::reading(service, source, prefix, activity)
    }

    fn reading(
        service: &Arc<ServiceState>,
        source: Source,
        prefix: Vec<u8>,
        activity: Arc<ActivityGuard>,
    ) -> Self {
        Self {
            _watch: service.streams.watch(source.watched()),
            source,
            prefix,
            heartbeat: Heartbeat::new(service.config.timing.keep_alive),
            expiry: Expiry::default(),
            _activity: activity,
        }
    }

    /// Ends the body when the token of the principal expires.
    pub(super) fn until_expiry(mut self, principal: Option<&Principal>) -> Self {
        self.expiry = Expiry::of(principal);
        self
    }

    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let now = Instant::now();
        self.source.touch(now);
        let chunk = self.poll_events(cx);
        self.heartbeat.poll_chunk(cx, now, chunk)
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if self.source.is_timed_out() {
            return Poll::Ready(Some(Err(StreamTimedOut)));
        }
        if self.expiry.poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if !self.prefix.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.prefix).into())));
        }
        self.source.poll(cx).map(|events| events.map(|events| Ok(events.into())))
    }
}
