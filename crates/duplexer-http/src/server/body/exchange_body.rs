//! SSE body that drives the handler of its exchange: the handler advances while the connection reads.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::{Chunk, Expiry, Heartbeat, StreamTimedOut};
use crate::server::exchange::Exchange;
use crate::server::response::ResponseSource;
use crate::server::service_state::stream_watch::{LastRead, WatchGuard, WatchedStream};
use crate::server::sse;
use crate::sync::{Mutex, lock};

/// Body of a streamed exchange.
pub(super) struct ExchangeBody {
    shared: Arc<Shared>,
    _watch: WatchGuard,
    heartbeat: Heartbeat,
    /// Expiry of the token, which ends a subscription.
    expiry: Expiry,
    abort: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The exchange, shared with the task that ends unread streams: that task drops the handler.
struct Shared {
    state: Mutex<State>,
    last_read: LastRead,
}

enum State {
    Running(Box<Exchange>),
    Finished,
    TimedOut,
}

impl WatchedStream for Shared {
    fn last_read(&self) -> &LastRead {
        &self.last_read
    }

    /// Drops the handler, unless it is being polled at this moment or has finished.
    fn time_out(&self) {
        if let Ok(mut state) = self.state.try_lock()
            && matches!(*state, State::Running(_))
        {
            *state = State::TimedOut;
        }
    }
}

impl ExchangeBody {
    pub(super) fn new(exchange: Exchange) -> Self {
        let service = Arc::clone(exchange.service());
        let expiry = Expiry::at(exchange.expires_at());
        let state = Mutex::new(State::Running(Box::new(exchange)));
        let shared = Arc::new(Shared { state, last_read: LastRead::now() });
        let watched = Arc::downgrade(&shared);
        Self {
            _watch: service.streams.watch(watched as Weak<dyn WatchedStream>),
            shared,
            expiry,
            heartbeat: Heartbeat::new(service.config.timing.keep_alive),
            abort: Box::pin(async move { service.abort.cancelled().await }),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let now = Instant::now();
        self.shared.last_read.touch(now);
        let chunk = self.poll_events(cx);
        self.heartbeat.poll_chunk(cx, now, chunk)
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        let mut state = lock(&self.shared.state);
        let exchange = match &mut *state {
            State::Running(exchange) => exchange,
            State::Finished => return Poll::Ready(None),
            State::TimedOut => return Poll::Ready(Some(Err(StreamTimedOut))),
        };
        if self.expiry.poll(cx).is_ready() {
            *state = State::Finished;
            return Poll::Ready(None);
        }
        exchange.channel().forget_reader();
        let response = match exchange.poll(cx) {
            Poll::Pending if self.abort.as_mut().poll(cx).is_ready() => Poll::Ready(exchange.abort_handler()),
            response => response,
        };
        let mut events = exchange.channel().read(cx.waker());
        if let Poll::Ready(response) = response {
            sse::write(&mut events, None, response.text());
            *state = State::Finished;
        }
        if events.is_empty() { Poll::Pending } else { Poll::Ready(Some(Ok(events.into()))) }
    }
}
