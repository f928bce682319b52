//! What goes over HTTP around a message: shown to a callback, for logs and inspectors.

use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderMap;
use reqwest::{Body, Method, Request, Response, StatusCode, Url};

/// The heads of a request and its response. Values that hold a secret are marked as sensitive
/// ([`HeaderValue::is_sensitive`](reqwest::header::HeaderValue::is_sensitive)).
///
/// ```
/// use duplexer_http_client::HttpTransport;
///
/// let transport = HttpTransport::builder("https://mcp.example.com/mcp")
///     .on_exchange(|exchange| println!("{} {}: {}", exchange.method, exchange.url, exchange.status))
///     .build()?;
/// # Ok::<_, duplexer_http_client::InvalidEndpoint>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpExchange<'a> {
    /// Method of the request.
    pub method: &'a Method,
    /// URL of the request.
    pub url: &'a Url,
    /// Headers of the request, except those that the HTTP client adds by itself.
    pub request_headers: &'a HeaderMap,
    /// Body of the request: a message, or empty.
    pub body: &'a [u8],
    /// Status of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub response_headers: &'a HeaderMap,
}

type Callback = dyn Fn(&HttpExchange<'_>) + Send + Sync;

/// The callback of a transport.
#[derive(Clone)]
pub(crate) struct Observer(Arc<Callback>);

impl Observer {
    pub(crate) fn new(callback: impl Fn(&HttpExchange<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Keeps what is shown of a request until its response arrives.
    pub(crate) fn begin(&self, request: &Request) -> Observed<'_> {
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default().to_vec();
        let (method, url, headers) =
            (request.method().clone(), request.url().clone(), request.headers().clone());
        Observed { observer: self, method, url, headers, body }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// A request that has been sent.
pub(crate) struct Observed<'a> {
    observer: &'a Observer,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Observed<'_> {
    pub(crate) fn end(self, response: &Response) {
        (self.observer.0)(&HttpExchange {
            method: &self.method,
            url: &self.url,
            request_headers: &self.headers,
            body: &self.body,
            status: response.status(),
            response_headers: response.headers(),
        });
    }
}
