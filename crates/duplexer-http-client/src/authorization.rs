//! The authorization of HTTP requests: what adds credentials to a request, and decides whether a refused one is sent again.

use std::net::SocketAddr;

use duplexer_core::dispatch::{BoxFuture, CallClock};
use duplexer_core::error::BoxError;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Method, Response, StatusCode, Url};

/// Adds credentials to requests, and sees how the server receives them.
///
/// Every HTTP request of a transport passes through it: POST, GET and DELETE, requests and notifications. An error ends the
/// request with [`TransportFailure::Authorization`](duplexer_core::transport::TransportFailure::Authorization).
///
/// ```
/// use std::sync::Arc;
///
/// use duplexer_core::dispatch::BoxFuture;
/// use duplexer_core::error::BoxError;
/// use duplexer_http_client::{Authorization, HttpTransport, OutgoingRequest, ResponseHead, Verdict};
///
/// /// Reads the key for every request, so that it can be replaced.
/// struct ApiKey;
///
/// impl Authorization for ApiKey {
///     fn authorize<'a>(&'a self, request: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
///         Box::pin(async move {
///             let key = std::env::var("API_KEY")?;
///             request.headers_mut().insert("x-api-key", key.parse()?);
///             Ok(())
///         })
///     }
///
///     fn on_response<'a>(
///         &'a self,
///         _request: &'a OutgoingRequest,
///         _response: ResponseHead<'a>,
///     ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
///         Box::pin(async { Ok(Verdict::Accept) })
///     }
/// }
///
/// let transport = HttpTransport::new("https://mcp.example.com/mcp")?.authorization(Arc::new(ApiKey));
/// # Ok::<_, BoxError>(())
/// ```
pub trait Authorization: Send + Sync + 'static {
    /// Adds what the request needs. It is called for every request, also when it is sent again or redirected.
    fn authorize<'a>(&'a self, request: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Decides what happens after a response, by its status and headers.
    ///
    /// A request is sent at most six times; the last response counts, whatever the verdict.
    fn on_response<'a>(
        &'a self,
        request: &'a OutgoingRequest,
        response: ResponseHead<'a>,
    ) -> BoxFuture<'a, Result<Verdict, BoxError>>;

    /// Returns the clock that is paused while a person is asked. All timeouts of the session use it.
    fn clock(&self) -> Option<CallClock> {
        None
    }
}

/// What happens after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The response goes to the caller.
    Accept,
    /// The same request is sent again, through [`Authorization::authorize`].
    SendAgain,
}

/// An HTTP request before it is sent. `Debug` does not show the values of its headers.
pub struct OutgoingRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) attempt: u32,
}

impl OutgoingRequest {
    /// Returns the HTTP method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the URL. After a redirect it is the target, which is on the same server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the headers for changes. They apply to this attempt only.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// Returns how often the request has been sent, this attempt included: 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}

impl std::fmt::Debug for OutgoingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("method", &self.method)
            .field("url", &crate::endpoint::shown(&self.url))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("attempt", &self.attempt)
            .finish()
    }
}

/// Status and headers of a response, and who sent it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The address that the connection leads to, if it is known. It can be that of a proxy.
    pub peer: Option<SocketAddr>,
}

impl<'a> ResponseHead<'a> {
    pub(crate) fn of(response: &'a Response) -> Self {
        Self { status: response.status(), headers: response.headers(), peer: response.remote_addr() }
    }

    /// Returns all values of `WWW-Authenticate` that are text.
    pub fn challenges(self) -> impl Iterator<Item = &'a str> {
        self.headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok())
    }
}
