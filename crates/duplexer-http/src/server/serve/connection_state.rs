//! What one connection is doing: its requests in flight, and since when it waits for its peer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

/// State of one connection, shared by its I/O, its requests and the task that accepts connections.
pub(super) struct ConnectionState {
    begun: AtomicUsize,
    ended: AtomicUsize,
    /// Number of requests in flight whose body has not arrived.
    bodies: AtomicUsize,
    /// Time since which the connection waits for its peer, in nanoseconds after the epoch.
    waiting_since: AtomicU64,
    epoch: Instant,
    is_http_2: AtomicBool,
}

impl ConnectionState {
    /// Creates the state of a new connection. All connections that are compared have the same epoch.
    pub(super) fn new(epoch: Instant) -> Self {
        let state = Self {
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            bodies: AtomicUsize::new(0),
            waiting_since: AtomicU64::new(0),
            epoch,
            is_http_2: AtomicBool::new(false),
        };
        state.waits_since(Instant::now());
        state
    }

    /// Returns the number of finished requests if none is in flight.
    pub(super) fn quiescent_after(&self) -> Option<usize> {
        let ended = self.ended.load(Ordering::Relaxed);
        (self.begun.load(Ordering::Relaxed) == ended).then_some(ended)
    }

    /// Records since when the connection waits for its peer.
    pub(super) fn waits_since(&self, since: Instant) {
        let since = since.saturating_duration_since(self.epoch).as_nanos();
        self.waiting_since.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns since when the connection waits for its peer. `None` while the server works on a request.
    pub(super) fn waiting_since(&self) -> Option<u64> {
        let in_flight = self.begun.load(Ordering::Relaxed).wrapping_sub(self.ended.load(Ordering::Relaxed));
        (in_flight <= self.bodies.load(Ordering::Relaxed)).then(|| self.waiting_since.load(Ordering::Relaxed))
    }

    /// Records a request of HTTP/2.
    pub(super) fn begins_http_2(&self) {
        self.is_http_2.store(true, Ordering::Relaxed);
        // Bytes do not begin a head in HTTP/2, so this is the beginning of the request.
        self.waits_since(Instant::now());
    }

    pub(super) fn is_http_2(&self) -> bool {
        self.is_http_2.load(Ordering::Relaxed)
    }
}

/// A request in flight, until the last byte of its response.
pub(in crate::server) struct InFlightGuard(Arc<ConnectionState>);

impl InFlightGuard {
    pub(super) fn begin(state: &Arc<ConnectionState>) -> Self {
        state.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // The wait has just begun. The next read records the exact time.
        self.0.waiting_since.store(u64::MAX, Ordering::Relaxed);
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Body of a request. Its connection waits for the peer while the body is pending.
pub(super) struct PeerBody<B> {
    body: B,
    state: Arc<ConnectionState>,
    is_pending: bool,
}

impl<B> PeerBody<B> {
    pub(super) fn new(body: B, state: &Arc<ConnectionState>) -> Self {
        Self { body, state: Arc::clone(state), is_pending: false }
    }

    fn arrived(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.state.bodies.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<B: Body + Unpin> Body for PeerBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() {
            self.arrived();
        } else if !self.is_pending {
            self.is_pending = true;
            self.state.bodies.fetch_add(1, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for PeerBody<B> {
    fn drop(&mut self) {
        self.arrived();
    }
}
