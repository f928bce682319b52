//! The transport: frames out as POSTs, whatever comes back in.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::transport::{
    FrameReader, FrameWriter, Frames, Hints, Incoming, Transport, TransportContext, TransportError,
};
use duplexer_types::jsonrpc::{self, Frame, RequestId};
use duplexer_types::meta::is_envelope;
use duplexer_types::methods::{Cancelled, Notification};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::exchange::{self, DEFAULT_LIMIT, Endpoint, Inbox};

/// Requests under way at once; further ones wait to be sent.
const MAX_EXCHANGES: usize = 1024;
/// Messages that wait to be read.
const MAX_WAITING: usize = 64;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// Not a URL of HTTP.
    #[error("'{0}' is not a URL that begins with http:// or https://")]
    Url(String),
    /// A header that cannot be sent.
    #[error("'{0}' is not a header that can be sent")]
    Header(String),
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// A server at a URL. Connections are kept and used again.
#[derive(Debug)]
pub struct HttpTransport(Endpoint);

impl HttpTransport {
    /// The server at `url`. Redirects are not followed.
    pub fn new(url: &str) -> Result<Self, InvalidEndpoint> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(InvalidEndpoint::Client)?;
        Self::with_client(url, client)
    }

    /// The server at `url`, through an HTTP client with settings of its own: TLS, proxies, certificates.
    pub fn with_client(url: &str, client: Client) -> Result<Self, InvalidEndpoint> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| InvalidEndpoint::Url(url.to_owned()))?;
        Ok(Self(Endpoint { client, url: parsed, headers: HeaderMap::new(), limit: DEFAULT_LIMIT }))
    }

    /// A header that every request has.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = || InvalidEndpoint::Header(name.to_owned());
        let value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        self.0.headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
        Ok(self)
    }

    /// The largest message that is read, in bytes.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.0.limit = limit;
        self
    }
}

impl Transport for HttpTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let inbox = Inbox { sender, context: Arc::new(TransportContext::stream("http")) };
        let writer =
            Writer { endpoint: self.0, inbox: Some(inbox), exchanges: JoinSet::new(), by_id: HashMap::new() };
        (Box::new(Reader(receiver)), Box::new(writer))
    }
}

struct Reader(mpsc::Receiver<Incoming>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}

/// Owns all that is under way: dropped, every POST ends.
struct Writer {
    endpoint: Endpoint,
    /// `None` once the direction is closed.
    inbox: Option<Inbox>,
    exchanges: JoinSet<Option<RequestId>>,
    by_id: HashMap<RequestId, Under>,
}

/// A request under way.
struct Under {
    abort: AbortHandle,
    cancel: Cancel,
}

/// What giving up a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    /// Its POST ends (envelope era).
    Abort,
    /// The server is told.
    Tell,
}

impl Writer {
    fn send(&mut self, frame: Vec<u8>, hints: Hints) -> Result<(), TransportError> {
        let inbox = self.inbox.clone().ok_or(TransportError::Closed)?;
        let endpoint = self.endpoint.clone();
        let read = std::str::from_utf8(&frame).ok().and_then(|text| jsonrpc::read(text).ok());
        match read {
            Some(Frame::Request { id, call }) => {
                let cancel = if call.meta.is_some_and(is_envelope) { Cancel::Abort } else { Cancel::Tell };
                let own = id.clone();
                let abort = self.exchanges.spawn(async move {
                    exchange::request(endpoint, inbox, own.clone(), frame, hints).await;
                    Some(own)
                });
                self.by_id.insert(id, Under { abort, cancel });
            }
            Some(Frame::Notification(call)) if call.method == <Cancelled as Notification>::METHOD.name() => {
                let cancelled = call.params.and_then(cancelled_id);
                if !self.abort(cancelled.as_ref()) {
                    self.tell(endpoint, frame, hints);
                }
            }
            _ => self.tell(endpoint, frame, hints),
        }
        Ok(())
    }

    fn tell(&mut self, endpoint: Endpoint, frame: Vec<u8>, hints: Hints) {
        self.exchanges.spawn(async move {
            exchange::tell(endpoint, frame, hints).await;
            None
        });
    }

    /// Ends a POST; `false` if the server is to be told instead.
    fn abort(&mut self, id: Option<&RequestId>) -> bool {
        match id.and_then(|id| self.by_id.get(id)) {
            Some(Under { abort, cancel: Cancel::Abort }) => {
                abort.abort();
                if let Some(id) = id {
                    self.by_id.remove(id);
                }
                true
            }
            _ => false,
        }
    }

    /// Forgets what has ended.
    fn reap(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(ended)) = self.exchanges.poll_join_next(cx) {
            if let Ok(Some(id)) = ended {
                self.by_id.remove(&id);
            }
        }
    }
}

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        self.reap(cx);
        while !frames.is_empty() {
            if self.exchanges.len() >= MAX_EXCHANGES {
                return Poll::Pending;
            }
            let Some((frame, hints)) = frames.pop() else { break };
            self.send(frame, hints)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.exchanges.abort_all();
        self.by_id.clear();
        self.inbox = None;
        Poll::Ready(Ok(()))
    }
}

fn cancelled_id(params: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "requestId")]
        id: RequestId,
    }
    serde_json::from_str::<Params>(params).ok().map(|params| params.id)
}
