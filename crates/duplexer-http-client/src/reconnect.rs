//! SSE streams that span several connections.
//!
//! A stream that ends before the response is resumed after the last event with an id. Only streams of a session can be
//! resumed; the stream of an envelope request is lost with its connection.

use std::time::Duration;

use duplexer_core::transport::TransportFailure;
use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::connection::{Connection, EVENTS, SessionRole};
use crate::exchange::{Exchange, Received, media_type};
use crate::failure;
use crate::sse::{Event, EventReader};

/// Delay before a resumption if the server sends no `retry`.
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
/// Minimum and maximum delay, whatever the server sends.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Maximum delay after failures: each one doubles it.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Failures after which the stream of a call is given up. With the delays between them they take longer than the default
/// timeout of a call, which ends it first: the number is the bound of calls without a timeout.
const MAX_FAILURES: u32 = 15;
/// Maximum connections of the stream of one call, however they end.
const MAX_CONNECTIONS: u32 = 10_000;
/// Minimum duration of a connection that clears the failures before it. One event does not.
const HEALTHY: Duration = Duration::from_secs(30);
/// Maximum length of an event id: longer header values are rejected by common servers.
const MAX_ID: usize = 4096;

/// Position in a stream, and when it is resumed.
#[derive(Debug, Default)]
struct Cursor {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
    failures: u32,
    connections: u32,
}

impl Cursor {
    fn advance(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            let usable = !id.is_empty() && id.len() <= MAX_ID;
            self.last = HeaderValue::from_bytes(id).ok().filter(|_| usable);
        }
        self.retry = event.retry.or(self.retry);
    }

    /// Returns the delay before the next connection.
    fn wait(&self) -> Duration {
        let retry = self.retry.unwrap_or(DEFAULT_RETRY).clamp(MIN_RETRY, MAX_RETRY);
        let backoff = retry.saturating_mul(2_u32.saturating_pow(self.failures.saturating_sub(1)));
        if self.failures > 1 { backoff.min(MAX_BACKOFF).max(retry) } else { retry }
    }

    /// Counts a connection that lasted for `lasted` and ended in this way.
    fn count(&mut self, end: &End, lasted: Duration) {
        self.connections += 1;
        if lasted >= HEALTHY {
            self.failures = 0;
        }
        if matches!(end, End::Failed(_)) {
            self.failures += 1;
        }
    }

    /// Returns whether the stream of a call is given up.
    fn is_exhausted(&self) -> bool {
        self.failures >= MAX_FAILURES || self.connections >= MAX_CONNECTIONS
    }
}

/// How one connection of a stream ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// With the response.
    Answered,
    /// Without a response; the server closed the stream orderly.
    Closed,
    /// By a failure after which another attempt is useful.
    Failed(String),
    /// With 405: the server has no such streams.
    Unsupported,
}

/// An SSE stream over one or more connections.
pub(crate) struct EventStream<'a> {
    exchange: Exchange<'a>,
    cursor: Cursor,
    /// Signalled when the server has answered the first GET.
    opened: Option<oneshot::Sender<()>>,
}

/// Reads the standalone stream, reconnecting until the server no longer offers one. Reports its first response to `opened`.
pub(crate) async fn listen(connection: &Connection, opened: oneshot::Sender<()>) {
    let mut stream = EventStream::new(Exchange { connection, id: None, role: SessionRole::Member });
    stream.opened = Some(opened);
    loop {
        match stream.connect().await {
            Ok(End::Unsupported) => return tracing::debug!("the server offers no stream of its own"),
            Ok(_) => sleep(stream.cursor.wait()).await,
            Err(error) => return tracing::warn!(%error, "the standalone stream is lost"),
        }
    }
}

impl<'a> EventStream<'a> {
    pub(crate) fn new(exchange: Exchange<'a>) -> Self {
        Self { exchange, cursor: Cursor::default(), opened: None }
    }

    /// Delivers messages until the JSON-RPC response; starts with the HTTP response to the request.
    pub(crate) async fn until_answered(mut self, first: Response) -> Result<(), TransportFailure> {
        let mut end = self.read(first).await?;
        loop {
            let resumable = self.exchange.role != SessionRole::None && self.cursor.last.is_some();
            let lost = match end {
                End::Answered => return Ok(()),
                End::Unsupported => {
                    "the stream ended without an answer, and the server does not resume streams".into()
                }
                _ if !resumable => "the stream ended without an answer".into(),
                End::Failed(reason) if self.cursor.is_exhausted() => {
                    format!("the stream could not be resumed: {reason}")
                }
                End::Closed if self.cursor.is_exhausted() => "the stream never brought an answer".into(),
                End::Closed | End::Failed(_) => {
                    sleep(self.cursor.wait()).await;
                    end = self.connect().await?;
                    continue;
                }
            };
            return Err(TransportFailure::Interrupted(lost.into()));
        }
    }

    /// Reopens the stream at the cursor and reads it. Fails when no further attempt is useful.
    async fn connect(&mut self) -> Result<End, TransportFailure> {
        let response = self.exchange.connection.get(self.cursor.last.as_ref()).await;
        if let Some(opened) = self.opened.take() {
            // The receiver is gone if the first request did not wait.
            let _ = opened.send(());
        }
        let started = Instant::now();
        let end = match response {
            Ok(response) => self.judge(response).await?,
            Err(error @ (TransportFailure::Unreachable(_) | TransportFailure::Interrupted(_))) => {
                End::Failed(error.to_string())
            }
            Err(error) => return Err(error),
        };
        self.cursor.count(&end, started.elapsed());
        Ok(end)
    }

    async fn judge(&mut self, response: Response) -> Result<End, TransportFailure> {
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(End::Unsupported),
            // What the session had in flight is lost with it, and may have run.
            StatusCode::NOT_FOUND if self.exchange.connection.session.has_id() => {
                Err(TransportFailure::Interrupted("the server has ended the session".into()))
            }
            status if status.is_success() && media_type(&response) == EVENTS => self.read(response).await,
            status if status.is_success() => Ok(End::Failed("it is not a stream of events".to_owned())),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT => {
                Ok(End::Failed(format!("the server answered {}", response.status())))
            }
            status if status.is_server_error() => Ok(End::Failed(format!("the server answered {status}"))),
            _ => Err(failure::of_refusal(response).await),
        }
    }

    /// Reads one connection to its end or to the response.
    async fn read(&mut self, mut response: Response) -> Result<End, TransportFailure> {
        let limit = self.exchange.connection.endpoint.limit;
        let mut reader = EventReader::new(limit);
        let mut ready = Vec::new();
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(End::Closed),
                Err(error) => return Ok(End::Failed(failure::of_reading(error).to_string())),
            };
            let fed = reader.feed(&piece, &mut |event| ready.push(event));
            for event in ready.drain(..) {
                self.cursor.advance(&event);
                if event.data.is_empty() || event.kind.is_some() {
                    continue;
                }
                match self.exchange.receive(event.data).await {
                    Received::Response => return Ok(End::Answered),
                    Received::Other => {}
                    Received::Unreadable => tracing::warn!("an unreadable event is dropped"),
                }
            }
            fed.map_err(|_| failure::too_large(limit))?;
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
        check(event(None, Some(u64::MAX)), Some("a-1"), 60_000);
        check(event(None, Some(2500)), Some("a-1"), 2500);
        check(event(Some(b"a-2"), None), Some("a-2"), 2500);
        check(event(None, Some(0)), Some("a-2"), 100);
        // An id that cannot be sent makes the stream not resumable.
        check(event(Some(b"a\x01"), None), None, 100);
        check(event(Some(b"a-3"), None), Some("a-3"), 100);
        check(event(Some(b""), None), None, 100);
        check(event(Some(&[b'x'; MAX_ID + 1]), None), None, 100);
    }

    /// D-10: "one event, then a broken connection" is a failure each time; only a connection that lasts clears them.
    #[test]
    fn failures_are_counted_whatever_events_came_between_them() {
        let mut cursor = Cursor { retry: Some(MIN_RETRY), ..Cursor::default() };
        let mut waited = Duration::ZERO;
        for _ in 0..MAX_FAILURES {
            assert!(!cursor.is_exhausted());
            cursor.advance(&event(Some(b"a"), None));
            cursor.count(&End::Failed(String::new()), Duration::from_secs(1));
            assert!(cursor.wait() <= MAX_BACKOFF);
            waited += cursor.wait();
        }
        assert!(cursor.is_exhausted());
        assert!(waited > Duration::from_secs(120), "{waited:?}");
        cursor.count(&End::Closed, HEALTHY);
        assert!(!cursor.is_exhausted());
        assert_eq!(cursor.wait(), MIN_RETRY);
    }

    /// An orderly end is no failure: a server may have its client poll. Yet the number of connections is bounded.
    #[test]
    fn polling_is_bounded_by_the_number_of_connections() {
        let mut cursor = Cursor::default();
        for _ in 0..MAX_CONNECTIONS {
            assert!(!cursor.is_exhausted());
            cursor.count(&End::Closed, Duration::ZERO);
            assert_eq!(cursor.wait(), DEFAULT_RETRY);
        }
        assert!(cursor.is_exhausted());
    }
}
