//! The body of whoever reads a stream of a session.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;

use duplexer_core::server::Principal;
use tokio::time::{Instant, Sleep, sleep};

use super::Busy;
use super::stream::Stream;
use crate::server::body::{Chunk, Heartbeat, StreamCut};
use crate::server::hub::Hub;
use crate::server::hub::streams::{Listed, Touched, Watched};

pub(in crate::server) struct Tail {
    reading: Arc<Reading>,
    /// What comes before the stream: where to come back to, and what was missed.
    before: Vec<u8>,
    heartbeat: Heartbeat,
    /// When the reader's rights end, and the stream with them.
    expiry: Option<Pin<Box<Sleep>>>,
    _listed: Listed,
    _busy: Arc<Busy>,
}

/// One reader of a stream; dropped, it has left.
pub(super) struct Reading {
    stream: Arc<Stream>,
    number: u64,
    touched: Touched,
    cut: AtomicBool,
}

impl Reading {
    /// The reader that a stream knows by this number.
    pub(super) fn new(stream: Arc<Stream>, number: u64) -> Self {
        Self { stream, number, touched: Touched::now(), cut: AtomicBool::new(false) }
    }

    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }
}

impl Watched for Reading {
    fn touched(&self) -> &Touched {
        &self.touched
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        self.stream.detach(self.number);
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.stream.detach(self.number);
    }
}

impl Tail {
    pub(super) fn new(hub: &Hub, reading: Reading, before: Vec<u8>, busy: Arc<Busy>) -> Self {
        let reading = Arc::new(reading);
        let watched = Arc::downgrade(&reading);
        Self {
            _listed: hub.streams.watch(watched as Weak<dyn Watched>),
            reading,
            before,
            heartbeat: Heartbeat::new(hub.config.timing.ping),
            expiry: None,
            _busy: busy,
        }
    }

    /// The same, until the rights of this reader end.
    pub(super) fn until_expiry(mut self, principal: Option<&Principal>) -> Self {
        let end = principal.and_then(|principal| principal.expires_at);
        let left = end.map(|end| end.duration_since(SystemTime::now()).unwrap_or_default());
        self.expiry = left.map(|left| Box::pin(sleep(left)));
        self
    }

    pub(in crate::server) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let now = Instant::now();
        self.reading.touched.touch(now);
        let chunk = self.poll_events(cx);
        self.heartbeat.poll_chunk(cx, now, chunk)
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let Reading { stream, number, cut, .. } = &*self.reading;
        if cut.load(Ordering::Acquire) {
            return Poll::Ready(Some(Err(StreamCut)));
        }
        if self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(None);
        }
        if !self.before.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.before).into())));
        }
        stream.poll_read(*number, cx).map(|events| events.map(|events| Ok(events.into())))
    }
}
