//! SSE streams that span several connections.
//!
//! A stream that ends before the response is resumed after the last event with an id. Only streams of a session can be
//! resumed; the stream of an envelope request is lost with its connection.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use tokio::time::sleep;

use crate::connection::{Connection, EVENTS, SessionRole};
use crate::exchange::{Exchange, ExchangeError, Received, media_type};
use crate::sse::{Event, EventReader};

/// Maximum consecutive failures to resume a stream.
const MAX_ATTEMPTS: u32 = 2;
/// Delay before a resumption if the server sends no `retry`.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// Minimum delay, whatever the server sends.
const MIN_RETRY: Duration = Duration::from_millis(100);
/// Maximum length of an event id: longer header values are rejected by common servers.
const MAX_ID: usize = 4096;

/// Position in a stream, and the delay before its resumption.
#[derive(Debug, Default)]
struct Cursor {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl Cursor {
    fn advance(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            let usable = !id.is_empty() && id.len() <= MAX_ID;
            self.last = HeaderValue::from_bytes(id).ok().filter(|_| usable);
        }
        self.retry = event.retry.or(self.retry);
    }

    fn wait(&self) -> Duration {
        self.retry.map_or(DEFAULT_RETRY, |retry| retry.max(MIN_RETRY))
    }
}

/// How one connection of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the response.
    Answered,
    /// Without a response; the server closed the stream orderly.
    Closed,
    /// By a transport error.
    Broken,
    /// With 405: the server has no such streams.
    Unsupported,
}

/// An SSE stream over one or more connections.
pub(crate) struct EventStream<'a> {
    exchange: Exchange<'a>,
    cursor: Cursor,
    failures: u32,
}

/// Reads the standalone stream, reconnecting until the server no longer offers one.
pub(crate) async fn listen(connection: &Connection) {
    let mut stream = EventStream::new(Exchange { connection, id: None, role: SessionRole::Member });
    loop {
        match stream.connect().await {
            Ok(End::Unsupported) => return tracing::debug!("the server offers no stream of its own"),
            Ok(_) => sleep(stream.cursor.wait()).await,
            Err(ExchangeError(error)) => {
                return tracing::warn!(%error, "the standalone stream is lost");
            }
        }
    }
}

impl<'a> EventStream<'a> {
    pub(crate) fn new(exchange: Exchange<'a>) -> Self {
        Self { exchange, cursor: Cursor::default(), failures: 0 }
    }

    /// Delivers messages until the JSON-RPC response; starts with the HTTP response to the request.
    pub(crate) async fn until_answered(mut self, first: Response) -> Result<(), ExchangeError> {
        let mut end = self.read(first).await?;
        loop {
            let resumable = self.exchange.role != SessionRole::None && self.cursor.last.is_some();
            match end {
                End::Answered => return Ok(()),
                End::Unsupported => {
                    let reason = "the stream ended without an answer, and the server does not resume streams";
                    return Err(ExchangeError::closed(reason));
                }
                _ if !resumable => return Err(ExchangeError::closed("the stream ended without an answer")),
                _ => {}
            }
            sleep(self.cursor.wait()).await;
            end = self.connect().await?;
        }
    }

    /// Reopens the stream at the cursor and reads it. Fails when no further attempt is useful.
    async fn connect(&mut self) -> Result<End, ExchangeError> {
        let connection = self.exchange.connection;
        let response = match connection.get(self.cursor.last.as_ref()).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(%error, "a stream could not be opened");
                return self.failed("the server could not be reached");
            }
        };
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(End::Unsupported),
            StatusCode::NOT_FOUND if connection.session.has_id() => Err(ExchangeError::terminated()),
            status if status.is_success() && media_type(&response) == EVENTS => {
                match self.read(response).await? {
                    End::Broken => self.failed("it broke off"),
                    end => {
                        self.failures = 0;
                        Ok(end)
                    }
                }
            }
            status => self.failed(&format!("the server answered {status}")),
        }
    }

    fn failed(&mut self, reason: &str) -> Result<End, ExchangeError> {
        self.failures += 1;
        if self.failures < MAX_ATTEMPTS {
            return Ok(End::Broken);
        }
        Err(ExchangeError::closed(&format!("the stream could not be resumed: {reason}")))
    }

    /// Reads one connection to its end or to the response.
    async fn read(&mut self, mut response: Response) -> Result<End, ExchangeError> {
        let mut reader = EventReader::new(self.exchange.connection.endpoint.limit);
        let mut ready = Vec::new();
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(End::Closed),
                Err(error) => {
                    tracing::debug!(%error, "a stream broke off");
                    return Ok(End::Broken);
                }
            };
            let fed = reader.feed(&piece, &mut |event| ready.push(event));
            for event in ready.drain(..) {
                self.failures = 0;
                self.cursor.advance(&event);
                if event.data.is_empty() {
                    continue;
                }
                match self.exchange.receive(event.data).await {
                    Received::Response => return Ok(End::Answered),
                    Received::Other => {}
                    Received::Unreadable => tracing::warn!("an unreadable event is dropped"),
                }
            }
            fed.map_err(|_| ExchangeError::too_large())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&[u8]>, retry: Option<u64>) -> Event {
        Event { id: id.map(Into::into), retry: retry.map(Duration::from_millis), ..Event::default() }
    }

    /// CHTTP-03, P-LEG-18: the last id and the last `retry` apply; the default delay is one second.
    #[test]
    fn a_cursor_follows_the_events() {
        let mut cursor = Cursor::default();
        let mut check = |event: Event, last: Option<&str>, wait: u64| {
            cursor.advance(&event);
            let found = cursor.last.as_ref().map(|last| last.to_str().unwrap());
            assert_eq!((found, cursor.wait()), (last, Duration::from_millis(wait)), "{event:?}");
        };
        check(event(None, None), None, 1000);
        check(event(Some(b"a-1"), None), Some("a-1"), 1000);
        check(event(None, Some(2500)), Some("a-1"), 2500);
        check(event(Some(b"a-2"), None), Some("a-2"), 2500);
        check(event(None, Some(0)), Some("a-2"), 100);
        // An id that cannot be sent makes the stream not resumable.
        check(event(Some(b"a\x01"), None), None, 100);
        check(event(Some(b"a-3"), None), Some("a-3"), 100);
        check(event(Some(b""), None), None, 100);
        check(event(Some(&[b'x'; MAX_ID + 1]), None), None, 100);
    }
}
