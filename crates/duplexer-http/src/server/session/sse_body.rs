//! SSE body that reads a stream of a session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use duplexer_server::Principal;
use tokio::time::Instant;

use super::ActivityGuard;
use super::stream::Stream;
use crate::server::body::{Chunk, Expiry, Heartbeat, StreamTimedOut};
use crate::server::service_state::ServiceState;
use crate::server::service_state::stream_watch::{LastRead, WatchGuard, WatchedStream};

/// SSE body that reads a stream of a session.
pub(in crate::server) struct SseBody {
    reader: Arc<ReaderHandle>,
    /// Sent before the stream: the priming event and the replayed events.
    prefix: Vec<u8>,
    heartbeat: Heartbeat,
    /// Expiry of the reader's token, which ends the stream.
    expiry: Expiry,
    _watch: WatchGuard,
    _activity: Arc<ActivityGuard>,
}

/// One reader of a stream. Dropping it detaches the reader.
pub(super) struct ReaderHandle {
    stream: Arc<Stream>,
    number: u64,
    last_read: LastRead,
    timed_out: AtomicBool,
}

impl ReaderHandle {
    /// Creates the handle of the reader with this number.
    pub(super) fn new(stream: Arc<Stream>, number: u64) -> Self {
        Self { stream, number, last_read: LastRead::now(), timed_out: AtomicBool::new(false) }
    }

    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }
}

impl WatchedStream for ReaderHandle {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    fn time_out(&self) {
        self.timed_out.store(true, Ordering::Release);
        self.stream.detach(self.number);
    }
}

impl Drop for ReaderHandle {
    fn drop(&mut self) {
        self.stream.detach(self.number);
    }
}

impl SseBody {
    pub(super) fn new(
        service: &ServiceState,
        reader: ReaderHandle,
        prefix: Vec<u8>,
        activity: Arc<ActivityGuard>,
    ) -> Self {
        let reader = Arc::new(reader);
        let watched = Arc::downgrade(&reader);
        Self {
            _watch: service.streams.watch(watched as Weak<dyn WatchedStream>),
            reader,
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
        self.reader.last_read.touch(now);
        let chunk = self.poll_events(cx);
        self.heartbeat.poll_chunk(cx, now, chunk)
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let ReaderHandle { stream, number, timed_out, .. } = &*self.reader;
        if timed_out.load(Ordering::Acquire) {
            return Poll::Ready(Some(Err(StreamTimedOut)));
        }
        if self.expiry.poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if !self.prefix.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.prefix).into())));
        }
        stream.poll_read(*number, cx).map(|events| events.map(|events| Ok(events.into())))
    }
}
