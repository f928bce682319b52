//! Body of a response: empty, one text, or an SSE stream.

mod exchange_body;
mod expiry;
mod heartbeat;
mod text_body;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use self::exchange_body::ExchangeBody;
use self::text_body::TextBody;
use super::exchange::Exchange;
use super::http_sse::SseSessionBody;
use super::serve::InFlightGuard;
use super::session::SseBody;

pub(super) use expiry::Expiry;
pub(super) use heartbeat::Heartbeat;
pub(super) use text_body::UnsentOwner;

/// Body of a response: empty, one text, or an SSE stream.
pub struct ResponseBody {
    kind: Kind,
    /// Counts the request as in flight until the body has been sent or dropped.
    in_flight: Option<InFlightGuard>,
}

enum Kind {
    Text(Bytes),
    /// Text of an HTTP/2 response.
    Watched(Box<TextBody>),
    /// SSE stream that drives its handler.
    Exchange(Box<ExchangeBody>),
    /// SSE stream of a session.
    Session(Box<SseBody>),
    /// SSE stream of the HTTP+SSE transport.
    HttpSse(Box<SseSessionBody>),
}

/// One piece of an SSE body.
pub(super) type Chunk = Result<Bytes, StreamTimedOut>;

/// Error of a stream that was closed because the client did not read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was closed because the client did not read it")]
#[non_exhaustive]
pub struct StreamTimedOut;

impl ResponseBody {
    pub(super) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(super) fn full(text: Bytes) -> Self {
        Self::new(Kind::Text(text))
    }

    /// Returns a stream that drives the handler of the exchange.
    pub(super) fn exchange(exchange: Exchange) -> Self {
        Self::new(Kind::Exchange(Box::new(ExchangeBody::new(exchange))))
    }

    /// Returns the body of a client that reads a stream of a session.
    pub(super) fn session(body: SseBody) -> Self {
        Self::new(Kind::Session(Box::new(body)))
    }

    /// Returns the body of an HTTP+SSE session.
    pub(super) fn http_sse(body: SseSessionBody) -> Self {
        Self::new(Kind::HttpSse(Box::new(body)))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, in_flight: None }
    }

    /// Holds `in_flight` until the body has been sent or dropped.
    pub(super) fn until_read(&mut self, in_flight: Option<InFlightGuard>) {
        if let Kind::Watched(text) = &self.kind {
            text.until_read(in_flight);
        } else {
            self.in_flight = in_flight;
        }
    }

    /// Puts a text under the watch over unread streams, for HTTP/2. Streams are under it already.
    pub(super) fn watch_text(&mut self, owner: &UnsentOwner) {
        if let Kind::Text(text) = &mut self.kind
            && !text.is_empty()
        {
            let text = TextBody::new(owner, std::mem::take(text), self.in_flight.take());
            self.kind = Kind::Watched(Box::new(text));
        }
    }
}

/// Returns an empty body, for layers that respond instead of the service.
impl Default for ResponseBody {
    fn default() -> Self {
        Self::empty()
    }
}

/// Converts a text, for layers that respond instead of the service.
impl From<Bytes> for ResponseBody {
    fn from(text: Bytes) -> Self {
        Self::full(text)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = StreamTimedOut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamTimedOut>>> {
        let data = match &mut self.kind {
            Kind::Text(text) if text.is_empty() => return Poll::Ready(None),
            Kind::Text(text) => Some(Ok(std::mem::take(text))),
            Kind::Watched(text) => text.next(),
            Kind::Exchange(body) => ready!(body.poll(cx)),
            Kind::Session(body) => ready!(body.poll(cx)),
            Kind::HttpSse(body) => ready!(body.poll(cx)),
        };
        Poll::Ready(data.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Text(text) => text.is_empty(),
            Kind::Watched(text) => text.remaining() == 0,
            Kind::Exchange(_) | Kind::Session(_) | Kind::HttpSse(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Text(text) => SizeHint::with_exact(text.len() as u64),
            Kind::Watched(text) => SizeHint::with_exact(text.remaining() as u64),
            Kind::Exchange(_) | Kind::Session(_) | Kind::HttpSse(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Text(text) => return f.debug_tuple("ResponseBody").field(text).finish(),
            Kind::Watched(_) => "text",
            Kind::Exchange(_) => "exchange",
            Kind::Session(_) => "session",
            Kind::HttpSse(_) => "http_sse",
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
