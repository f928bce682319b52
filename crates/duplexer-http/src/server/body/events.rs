//! A stream of events that drives its handler, read by the connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Heartbeat, StreamCut};
use crate::server::exchange::{Answer, Exchange};
use crate::server::hub::lock;
use crate::server::hub::streams::{Listed, Touched, Watched};
use crate::server::sse;

pub(super) struct Events {
    driven: Arc<Driven>,
    _listed: Listed,
    answer: Option<Answer>,
    heartbeat: Heartbeat,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// An answer that is being streamed. The handler is in it, so that it can be dropped from elsewhere.
struct Driven {
    state: Mutex<State>,
    touched: Touched,
}

enum State {
    Running(Box<Exchange>),
    Finished,
    Cut,
}

impl Watched for Driven {
    fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Drops the handler, unless it is being polled at this moment or has ended.
    fn cut(&self) {
        if let Ok(mut state) = self.state.try_lock()
            && matches!(*state, State::Running(_))
        {
            *state = State::Cut;
        }
    }
}

impl Events {
    pub(super) fn new(exchange: Exchange, answer: Option<Answer>) -> Self {
        let hub = Arc::clone(exchange.admitted().hub());
        let state = Mutex::new(State::Running(Box::new(exchange)));
        let driven = Arc::new(Driven { state, touched: Touched::now() });
        let watched = Arc::downgrade(&driven);
        Self {
            _listed: hub.streams.watch(watched as Weak<dyn Watched>),
            driven,
            answer,
            heartbeat: Heartbeat::new(hub.config.timing.ping),
            cut: Box::pin(async move { hub.cut.cancelled().await }),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamCut>>> {
        let now = Instant::now();
        self.driven.touched.touch(now);
        let mut state = lock(&self.driven.state);
        let exchange = match &mut *state {
            State::Running(exchange) => exchange,
            State::Finished => return Poll::Ready(None),
            State::Cut => return Poll::Ready(Some(Err(StreamCut))),
        };
        let answer = match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => exchange.poll(cx),
        };
        let answer = match answer {
            Poll::Pending if self.cut.as_mut().poll(cx).is_ready() => Poll::Ready(exchange.cut_short()),
            answer => answer,
        };
        let mut events = exchange.outlet().take();
        if let Poll::Ready(answer) = answer {
            sse::write(&mut events, None, answer.text());
            *state = State::Finished;
        }
        if !events.is_empty() {
            self.heartbeat.spoke(now);
            return Poll::Ready(Some(Ok(events.into())));
        }
        drop(state);
        self.heartbeat.poll(cx).map(|()| Some(Ok(Bytes::from_static(sse::PING))))
    }
}
