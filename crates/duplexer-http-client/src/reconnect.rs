//! Streams of events that outlive the connections they come over.
//!
//! A stream that ends without what it was for is taken up again behind the last event that had an id. Only streams of a
//! session can be; an envelope's is lost with its connection.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Response, StatusCode};
use tokio::time::sleep;

use crate::exchange::{Exchange, Heard, Unanswered, media_type};
use crate::link::{EVENTS, Link, Standing};
use crate::stream::{Event, EventReader};

/// How often in a row taking up a stream may fail.
const ATTEMPTS: u32 = 2;
/// How long to wait before it, if the server does not say.
const WAIT: Duration = Duration::from_secs(1);
/// However little the server asks for.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
/// The longest id that fits into a header everywhere.
const MAX_ID: usize = 4096;

/// How far a stream has been read, and how soon it may be taken up again.
#[derive(Debug, Default)]
struct Cursor {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl Cursor {
    fn pass(&mut self, event: &Event) {
        if let Some(id) = &event.id {
            let usable = !id.is_empty() && id.len() <= MAX_ID;
            self.last = HeaderValue::from_bytes(id).ok().filter(|_| usable);
        }
        self.retry = event.retry.or(self.retry);
    }

    fn wait(&self) -> Duration {
        self.retry.map_or(WAIT, |retry| retry.max(SHORTEST_WAIT))
    }
}

/// How one connection of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the answer.
    Answered,
    /// Without it, but as the server wanted.
    InOrder,
    /// In the middle.
    Broken,
    /// Before it began: the server has no such streams.
    NotOffered,
}

/// A stream of events, over as many connections as it takes.
pub(crate) struct Stream<'a> {
    exchange: Exchange<'a>,
    cursor: Cursor,
    failures: u32,
}

/// Listens to what the server says beside any request, until it offers no more to listen to.
pub(crate) async fn listen(link: &Link) {
    let mut stream = Stream::new(Exchange { link, id: None, standing: Standing::Within });
    loop {
        match stream.connect().await {
            Ok(End::NotOffered) => return tracing::debug!("the server offers no stream of its own"),
            Ok(_) => sleep(stream.cursor.wait()).await,
            Err(Unanswered(error)) => {
                return tracing::warn!(%error, "what the server says beside requests is not heard any more");
            }
        }
    }
}

impl<'a> Stream<'a> {
    pub(crate) fn new(exchange: Exchange<'a>) -> Self {
        Self { exchange, cursor: Cursor::default(), failures: 0 }
    }

    /// Delivers what comes until the answer; begins with the response to the request.
    pub(crate) async fn until_answered(mut self, first: Response) -> Result<(), Unanswered> {
        let mut end = self.read(first).await?;
        loop {
            let resumable = self.exchange.standing != Standing::Alone && self.cursor.last.is_some();
            match end {
                End::Answered => return Ok(()),
                End::NotOffered => {
                    let reason = "the stream ended without an answer, and the server does not resume streams";
                    return Err(Unanswered::closed(reason));
                }
                _ if !resumable => return Err(Unanswered::closed("the stream ended without an answer")),
                _ => {}
            }
            sleep(self.cursor.wait()).await;
            end = self.connect().await?;
        }
    }

    /// Opens the stream where it was left and reads on. Fails if it is no use to try again.
    async fn connect(&mut self) -> Result<End, Unanswered> {
        let link = self.exchange.link;
        let response = match link.get(self.cursor.last.as_ref()).await {
            Ok(response) => response,
            Err(error) => {
                tracing::debug!(%error, "a stream could not be opened");
                return self.failed("the server could not be reached");
            }
        };
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Ok(End::NotOffered),
            StatusCode::NOT_FOUND if link.session.has_id() => Err(Unanswered::terminated()),
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

    fn failed(&mut self, reason: &str) -> Result<End, Unanswered> {
        self.failures += 1;
        if self.failures < ATTEMPTS {
            return Ok(End::Broken);
        }
        Err(Unanswered::closed(&format!("the stream could not be resumed: {reason}")))
    }

    /// Reads one connection to its end, or to the answer.
    async fn read(&mut self, mut response: Response) -> Result<End, Unanswered> {
        let mut reader = EventReader::new(self.exchange.link.endpoint.limit);
        let mut ready = Vec::new();
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(End::InOrder),
                Err(error) => {
                    tracing::debug!(%error, "a stream broke off");
                    return Ok(End::Broken);
                }
            };
            let fed = reader.feed(&piece, &mut |event| ready.push(event));
            for event in ready.drain(..) {
                self.failures = 0;
                self.cursor.pass(&event);
                if event.data.is_empty() {
                    continue;
                }
                match self.exchange.hear(event.data).await {
                    Heard::Answer => return Ok(End::Answered),
                    Heard::Other => {}
                    Heard::Unreadable => tracing::warn!("an unreadable event is dropped"),
                }
            }
            fed.map_err(|_| Unanswered::too_large())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&[u8]>, retry: Option<u64>) -> Event {
        Event { id: id.map(Into::into), retry: retry.map(Duration::from_millis), ..Event::default() }
    }

    /// CHTTP-03, P-LEG-18: the last id counts, and the last time that was asked for; a second without one.
    #[test]
    fn a_cursor_follows_the_events() {
        let mut cursor = Cursor::default();
        let mut check = |event: Event, last: Option<&str>, wait: u64| {
            cursor.pass(&event);
            let found = cursor.last.as_ref().map(|last| last.to_str().unwrap());
            assert_eq!((found, cursor.wait()), (last, Duration::from_millis(wait)), "{event:?}");
        };
        check(event(None, None), None, 1000);
        check(event(Some(b"a-1"), None), Some("a-1"), 1000);
        check(event(None, Some(2500)), Some("a-1"), 2500);
        check(event(Some(b"a-2"), None), Some("a-2"), 2500);
        check(event(None, Some(0)), Some("a-2"), 100);
        // Behind what cannot be named, nothing can be taken up.
        check(event(Some(b"a\x01"), None), None, 100);
        check(event(Some(b"a-3"), None), Some("a-3"), 100);
        check(event(Some(b""), None), None, 100);
        check(event(Some(&[b'x'; MAX_ID + 1]), None), None, 100);
    }
}
