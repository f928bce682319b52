//! The transport: frames out as POSTs, whatever comes back in.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::transport::{
    FrameReader, FrameWriter, Incoming, Transport, TransportContext, TransportError,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::sync::mpsc;

use crate::connection::{Connection, Endpoint, OnChallenge};
use crate::session::Session;
use crate::writer::Writer;

/// The largest message that is read, if not set otherwise.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

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

/// A server at a URL, in either era. Connections are kept and used again.
///
/// A session that was opened by a handshake ends at the server with `Client::close`; dropped, the client leaves it to
/// the server to forget it.
#[derive(Debug)]
pub struct HttpTransport(Endpoint);

impl HttpTransport {
    /// The server at `url`. Redirects are followed if they keep the method (307, 308) and lead to the same server, or from
    /// `http` to `https` there.
    pub fn new(url: &str) -> Result<Self, InvalidEndpoint> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(redirect::Policy::none())
            .build()
            .map_err(InvalidEndpoint::Client)?;
        Self::with_client(url, client)
    }

    /// The server at `url`, through an HTTP client with settings of its own: TLS, proxies, certificates. It should not follow
    /// redirects by itself, because then they lead anywhere.
    pub fn with_client(url: &str, client: Client) -> Result<Self, InvalidEndpoint> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let parsed = parsed.ok_or_else(|| InvalidEndpoint::Url(url.to_owned()))?;
        Ok(Self(Endpoint {
            client,
            url: parsed,
            headers: HeaderMap::new(),
            limit: DEFAULT_LIMIT,
            on_challenge: None,
        }))
    }

    /// A header that every request has.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = || InvalidEndpoint::Header(name.to_owned());
        let value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        self.0.headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
        Ok(self)
    }

    /// Hears of every request that is refused for want of rights: its status (401 or 403), and the challenge that came with
    /// it (`WWW-Authenticate`).
    #[must_use]
    pub fn on_challenge(mut self, told: impl Fn(u16, Option<&str>) + Send + Sync + 'static) -> Self {
        self.0.on_challenge = Some(OnChallenge(Arc::new(told)));
        self
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
        let (inbox, receiver) = mpsc::channel(MAX_WAITING);
        let context = Arc::new(TransportContext::stream("http"));
        let connection = Connection { endpoint: self.0, session: Session::default(), inbox, context };
        (Box::new(Reader(receiver)), Box::new(Writer::new(connection)))
    }
}

struct Reader(mpsc::Receiver<Incoming>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}
