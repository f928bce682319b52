//! The transport and its settings.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::dispatch::CallClock;
use duplexer_core::transport::{
    FrameReader, FrameWriter, Incoming, Transport, TransportContext, TransportError,
};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use tokio::sync::mpsc;

use crate::authorization::Authorization;
use crate::connection::{Connection, Inbox};
use crate::endpoint::Endpoint;
use crate::http_sse::HttpSseTransport;
use crate::observer::{HttpExchange, Observer};
use crate::session::Session;
use crate::writer::Writer;

/// Default maximum size of a received message, in bytes.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// Maximum received messages that wait for the reader half.
const MAX_WAITING: usize = 64;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time that a connection is kept without a request. Common servers close theirs after 5 s, and a request that is sent at
/// that moment is lost: whether it ran cannot be known.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Settings that make no valid transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// The URL is not an HTTP URL.
    #[error("'{0}' is not a URL that begins with http:// or https://")]
    Url(String),
    /// A header is invalid.
    #[error("'{0}' is not a header that can be sent")]
    Header(String),
    /// The HTTP client could not be set up.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// Transport to a server at a URL, in either era. Connections are pooled.
///
/// `Client::close` ends a session that a handshake has opened. A client that is dropped leaves its session to the
/// timeout of the server.
///
/// ```
/// use duplexer_client::Client;
/// use duplexer_http_client::HttpTransport;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let url = "http://127.0.0.1:8000/mcp";
/// # let server = duplexer_server::Server::builder("notes", "1.0.0").build()?;
/// # let server = duplexer_http::StreamableHttp::new(server).bind("127.0.0.1:0").await?;
/// # let url = &format!("http://{}/mcp", server.local_addr()?);
/// # let serving = tokio::spawn(server.serve_until(std::future::pending()));
/// let transport = HttpTransport::builder(url).header("X-Team", "data").build()?;
/// let client = Client::builder("my-agent", "1.0").connect(transport).await?;
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpTransport(Endpoint);

impl HttpTransport {
    /// Creates a transport with default settings.
    ///
    /// # Errors
    /// Fails if `url` is not an HTTP URL, or if the HTTP client cannot be set up.
    pub fn new(url: &str) -> Result<Self, InvalidEndpoint> {
        Self::builder(url).build()
    }

    /// Returns a builder of a transport with other settings.
    ///
    /// ```
    /// use duplexer_http_client::HttpTransport;
    ///
    /// let transport = HttpTransport::builder("https://mcp.example.com/mcp")
    ///     .header("x-tenant", "blue")
    ///     .limit(1024 * 1024)
    ///     .build()?;
    /// # Ok::<_, duplexer_http_client::InvalidEndpoint>(())
    /// ```
    pub fn builder(url: &str) -> HttpTransportBuilder {
        HttpTransportBuilder {
            url: url.to_owned(),
            client: None,
            headers: Ok(HeaderMap::new()),
            limit: DEFAULT_LIMIT,
            authorization: None,
            observer: None,
        }
    }

    /// Sends this token with every request: `Authorization: Bearer ...`.
    ///
    /// ```
    /// use duplexer_http_client::HttpTransport;
    ///
    /// let transport = HttpTransport::new("https://mcp.example.com/mcp")?.bearer("a-token")?;
    /// # Ok::<_, duplexer_http_client::InvalidEndpoint>(())
    /// ```
    ///
    /// # Errors
    /// Fails if the token has characters that a header cannot have.
    pub fn bearer(mut self, token: &str) -> Result<Self, InvalidEndpoint> {
        self.0.headers.insert(AUTHORIZATION, bearer(token)?);
        Ok(self)
    }

    /// Returns a transport to the same URL, with the same settings, for a server that offers HTTP+SSE (2024-11-05).
    #[must_use]
    pub fn http_sse(&self) -> HttpSseTransport {
        HttpSseTransport::from_endpoint(self.0.clone())
    }

    /// Has `authorization` add credentials to every request. One can serve several transports.
    #[must_use]
    pub fn authorization(mut self, authorization: Arc<dyn Authorization>) -> Self {
        self.0.authorization = Some(authorization);
        self
    }
}

fn bearer(token: &str) -> Result<HeaderValue, InvalidEndpoint> {
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| InvalidEndpoint::Header(AUTHORIZATION.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Builder of an [`HttpTransport`]. Invalid settings are reported by [`Self::build`].
///
/// ```
/// use duplexer_http_client::HttpTransport;
///
/// let transport = HttpTransport::builder("https://mcp.example.com/mcp")
///     .bearer("a-token")
///     .header("x-tenant", "42")
///     .build()?;
/// assert!(HttpTransport::builder("mcp.example.com").build().is_err());
/// # Ok::<_, duplexer_http_client::InvalidEndpoint>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct HttpTransportBuilder {
    url: String,
    client: Option<Client>,
    headers: Result<HeaderMap, InvalidEndpoint>,
    limit: usize,
    authorization: Option<Arc<dyn Authorization>>,
    observer: Option<Observer>,
}

/// Shows no secret.
impl fmt::Debug for HttpTransportBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransportBuilder").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl HttpTransportBuilder {
    /// Sets the HTTP client, with its own settings for TLS, proxies and certificates. It should not follow redirects,
    /// because it would follow them to any server.
    ///
    /// The default client follows redirects that keep the method (307, 308) and stay on the same server, or upgrade it
    /// from `http` to `https`.
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Adds a header to every request. Its value is treated as a secret.
    #[doc(alias("bearer", "authorization"))]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Ok(headers) = &mut self.headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.insert(name, value);
                }
                _ => self.headers = Err(InvalidEndpoint::Header(name.to_owned())),
            }
        }
        self
    }

    /// Sends this token with every request: `Authorization: Bearer ...`.
    pub fn bearer(self, token: &str) -> Self {
        self.header(AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    /// Has `authorization` add credentials to every request. One can serve several transports.
    pub fn authorization(mut self, authorization: Arc<dyn Authorization>) -> Self {
        self.authorization = Some(authorization);
        self
    }

    /// Sets the callback for the head of every response, together with the request that it answers. It must not block.
    #[doc(alias("trace", "headers", "debug"))]
    pub fn on_exchange(mut self, callback: impl Fn(&HttpExchange<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Observer::new(callback));
        self
    }

    /// Sets the maximum size of a received message, in bytes. Default: [`DEFAULT_LIMIT`].
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Builds the transport.
    ///
    /// # Errors
    /// Fails if the URL is not an HTTP URL, if a header is invalid, or if the HTTP client cannot be set up.
    pub fn build(self) -> Result<HttpTransport, InvalidEndpoint> {
        self.endpoint().map(HttpTransport)
    }

    /// Builds a transport for a server that offers HTTP+SSE (2024-11-05) at this URL.
    ///
    /// # Errors
    /// Fails like [`Self::build`].
    pub fn build_http_sse(self) -> Result<HttpSseTransport, InvalidEndpoint> {
        self.endpoint().map(HttpSseTransport::from_endpoint)
    }

    fn endpoint(self) -> Result<Endpoint, InvalidEndpoint> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| InvalidEndpoint::Url(self.url.clone()))?;
        let headers = self.headers?;
        let client = self.client.map_or_else(default_client, Ok)?;
        let Self { limit, authorization, observer, .. } = self;
        Ok(Endpoint { client, url, headers, limit, authorization, observer })
    }
}

/// The transport follows permitted redirects itself.
pub(crate) fn default_client() -> Result<Client, InvalidEndpoint> {
    // TLS needs a library for cryptography. The one that the program has installed, if any, applies.
    #[cfg(feature = "rustls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .redirect(redirect::Policy::none());
    builder.build().map_err(InvalidEndpoint::Client)
}

impl Transport for HttpTransport {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (inbox, reader) = inbox("http");
        let connection = Connection { endpoint: self.0, session: Session::default(), inbox };
        (Box::new(reader), Box::new(Writer::new(connection)))
    }

    fn clock(&self) -> Option<CallClock> {
        self.0.clock()
    }
}

/// Creates the queue of received messages, and the reader half that drains it.
pub(crate) fn inbox(kind: &'static str) -> (Inbox, Reader) {
    let (queue, receiver) = mpsc::channel(MAX_WAITING);
    (Inbox { queue, context: Arc::new(TransportContext::stream(kind)) }, Reader(receiver))
}

/// The read half.
pub(crate) struct Reader(mpsc::Receiver<Incoming>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        self.0.poll_recv(cx).map(|incoming| incoming.map(Ok))
    }
}
