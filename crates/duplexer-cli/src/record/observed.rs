//! Bodies of responses whose messages are recorded while they pass.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use duplexer::dispatch::lock;
use duplexer::testing::Sender;
use duplexer::types::headers::SESSION_ID;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};

use super::Recorder;
use crate::events::events;

/// Maximum bytes of a message that is recorded.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Maximum sessions whose connections are remembered.
const MAX_SESSIONS: usize = 10_000;

/// The connection on which each session was opened.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, u64>>);

impl Sessions {
    /// Returns the connection of the session that a request belongs to.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<u64> {
        lock(&self.0).get(id(headers)?).copied()
    }

    /// Notes the session that a response opens.
    pub(super) fn note(&self, headers: &HeaderMap, connection: u64) {
        let Some(id) = id(headers) else { return };
        let mut sessions = lock(&self.0);
        if sessions.len() < MAX_SESSIONS {
            sessions.entry(id.to_owned()).or_insert(connection);
        }
    }
}

fn id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID.lower)?.to_str().ok()
}

/// What a body carries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message.
    Message,
    /// Events.
    Events,
    /// Nothing that is recorded, or something too large.
    Other,
}

/// A body whose messages are recorded.
pub(super) struct Observed<B> {
    body: B,
    kind: Kind,
    /// What of the current message or event has passed.
    seen: Vec<u8>,
    recorder: Recorder,
    connection: u64,
}

impl<B> Observed<B> {
    pub(super) fn new(body: B, headers: &HeaderMap, recorder: Recorder, connection: u64) -> Self {
        let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = match value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => Kind::Message,
            "text/event-stream" => Kind::Events,
            _ => Kind::Other,
        };
        Self { body, kind, seen: Vec::new(), recorder, connection }
    }

    fn see(&mut self, data: &[u8]) {
        if self.kind == Kind::Other {
            return;
        }
        if self.seen.len() + data.len() > MAX_MESSAGE {
            self.recorder.terminal.note("a message of more than 16 MiB is not in the transcript");
            (self.kind, self.seen) = (Kind::Other, Vec::new());
            return;
        }
        self.seen.extend_from_slice(data);
        if self.kind == Kind::Events {
            let mut messages = Vec::new();
            let end = events(&self.seen, &mut messages);
            self.seen.drain(..end);
            for message in &messages {
                self.recorder.write(Sender::Server, self.connection, message);
            }
        }
    }

    fn end(&mut self) {
        if self.kind == Kind::Message
            && let Ok(text) = std::str::from_utf8(&self.seen)
        {
            self.recorder.write(Sender::Server, self.connection, text);
        }
        self.kind = Kind::Other;
    }
}

impl<B> Body for Observed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.see(data);
                }
                if self.body.is_end_stream() {
                    self.end();
                }
            }
            Some(Err(_)) | None => self.end(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
