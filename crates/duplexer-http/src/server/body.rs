//! The body of a response: nothing, one text, or a stream of events that drives its handler.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::exchange::{Answer, Exchange};
use super::hub::{Hub, lock, streams::Listed, streams::State};
use super::serve::UnderWay;
use super::sse;

/// The body of a response.
pub struct ResponseBody {
    kind: Kind,
    /// Held until the body has been read or given up.
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
enum Kind {
    Text(Bytes),
    Events(Box<Events>),
}

/// A stream was cut because nobody read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was cut because nobody read it")]
#[non_exhaustive]
pub struct StreamCut;

impl ResponseBody {
    pub(super) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(super) fn full(text: Bytes) -> Self {
        Self { kind: Kind::Text(text), under_way: None }
    }

    /// Takes the exchange over; `answer` is there if the handler has ended already.
    pub(super) fn stream(exchange: Exchange, answer: Option<Answer>) -> Self {
        Self { kind: Kind::Events(Box::new(Events::new(exchange, answer))), under_way: None }
    }

    /// Keeps `under_way` until the body has been read or given up.
    pub(super) fn until_read(&mut self, under_way: Option<UnderWay>) {
        self.under_way = under_way;
    }
}

/// A text, for layers that answer in the place of the service.
impl From<Bytes> for ResponseBody {
    fn from(text: Bytes) -> Self {
        Self::full(text)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = StreamCut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamCut>>> {
        let data = match &mut self.kind {
            Kind::Text(text) if text.is_empty() => return Poll::Ready(None),
            Kind::Text(text) => Some(Ok(std::mem::take(text))),
            Kind::Events(events) => ready!(events.poll(cx)),
        };
        Poll::Ready(data.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Text(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Text(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// A stream of events, read by the connection.
struct Events {
    listed: Listed,
    hub: Arc<Hub>,
    answer: Option<Answer>,
    /// When something was last sent.
    spoken: Instant,
    timer: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Events {
    fn new(exchange: Exchange, answer: Option<Answer>) -> Self {
        let hub = Arc::clone(exchange.admitted().hub());
        let ended = Arc::clone(&hub);
        Self {
            listed: hub.streams.open(exchange),
            answer,
            spoken: Instant::now(),
            timer: Box::pin(sleep(hub.config.timing.ping)),
            cut: Box::pin(async move { ended.cut.raised().await }),
            hub,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamCut>>> {
        let now = Instant::now();
        self.listed.stream.touch(now);
        let mut state = lock(&self.listed.stream.state);
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
            sse::write(&mut events, answer.text());
            *state = State::Finished;
        }
        if !events.is_empty() {
            self.spoken = now;
            return Poll::Ready(Some(Ok(events.into())));
        }
        drop(state);
        self.poll_silence(cx, self.hub.config.timing.ping)
    }

    /// The timer runs on while events flow; when it fires it is seen how long the silence really is.
    fn poll_silence(
        &mut self,
        cx: &mut Context<'_>,
        limit: Duration,
    ) -> Poll<Option<Result<Bytes, StreamCut>>> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let due = self.spoken + limit;
            let now = Instant::now();
            if due > now {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.spoken = now;
            self.timer.as_mut().reset(now + limit);
            return Poll::Ready(Some(Ok(Bytes::from_static(sse::PING))));
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResponseBody").field(&self.kind).finish()
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
