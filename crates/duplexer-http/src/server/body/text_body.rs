//! Text of an HTTP/2 response, in pieces and under the watch over unread streams.
//!
//! A socket whose peer does not read stalls, but a stream of HTTP/2 behind a window of zero does not. The text stays here
//! until the connection asks for it, and is dropped if the connection never does.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Chunk, StreamTimedOut};
use crate::server::serve::InFlightGuard;
use crate::server::service_state::stream_watch::{LastRead, WatchGuard, WatchedStream};
use crate::server::service_state::{RequestPermit, ServiceState, Share};
use crate::sync::{Mutex, lock};

/// Maximum size of a piece, which the HTTP library queues as a whole.
const MAX_PIECE: usize = 16 * 1024;

/// Text of an HTTP/2 response. It counts as a request in flight until it has been sent or dropped.
pub(super) struct TextBody {
    shared: Arc<SharedText>,
    remaining: usize,
    _watch: WatchGuard,
}

/// Whose limits a text counts against until it has been sent.
pub(in crate::server) struct UnsentOwner {
    pub(in crate::server) service: Arc<ServiceState>,
    pub(in crate::server) share: Option<Arc<Share>>,
}

/// The text, shared with the task that ends unread streams.
struct SharedText {
    /// `None` once the client has not read it for too long.
    unsent: Mutex<Option<Unsent>>,
    last_read: LastRead,
}

struct Unsent {
    text: Bytes,
    in_flight: Option<InFlightGuard>,
    _permit: Option<RequestPermit>,
}

impl WatchedStream for SharedText {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    fn time_out(&self) {
        *lock(&self.unsent) = None;
    }

    /// A finished response is sent as long as its connection is open.
    fn shut_down(&self) {}
}

impl TextBody {
    pub(super) fn new(owner: &UnsentOwner, text: Bytes, in_flight: Option<InFlightGuard>) -> Self {
        let UnsentOwner { service, share } = owner;
        let remaining = text.len();
        let unsent = Unsent { text, in_flight, _permit: service.count_request(share.clone()) };
        let shared = Arc::new(SharedText { unsent: Mutex::new(Some(unsent)), last_read: LastRead::now() });
        let watched = Arc::downgrade(&shared);
        Self { _watch: service.streams.watch(watched as Weak<dyn WatchedStream>), shared, remaining }
    }

    /// Holds `in_flight` until the text has been sent or dropped.
    pub(super) fn until_read(&self, in_flight: Option<InFlightGuard>) {
        if let Some(unsent) = &mut *lock(&self.shared.unsent) {
            unsent.in_flight = in_flight;
        }
    }

    pub(super) fn remaining(&self) -> usize {
        self.remaining
    }

    /// Returns the next piece. `None` at the end.
    pub(super) fn next(&mut self) -> Option<Chunk> {
        if self.remaining == 0 {
            return None;
        }
        self.shared.last_read.touch(Instant::now());
        let mut unsent = lock(&self.shared.unsent);
        let Some(Unsent { text, .. }) = &mut *unsent else { return Some(Err(StreamTimedOut)) };
        let piece = text.split_to(text.len().min(MAX_PIECE));
        self.remaining = text.len();
        Some(Ok(piece))
    }
}
