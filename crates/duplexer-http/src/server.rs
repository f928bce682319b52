//! The service: one HTTP request in, one response out, in both eras.
//!
//! `route` checks a request and chooses its era; `envelope` and `handshake` serve the two; `response` drives the
//! handler. `http_sse` is the transport of 2024-11-05, `service_state` is shared by all clones, and `serve` adds a
//! listener.

mod body;
mod client_address;
mod config;
mod cors;
mod envelope;
mod event_queue;
mod exchange;
mod handshake;
mod head;
mod http_sse;
mod readiness;
mod reply;
mod request;
mod request_body;
mod request_headers;
mod request_id;
mod response;
mod route;
mod rpc_response;
mod security;
mod serve;
mod server_card;
mod service_state;
mod session;
mod sse;
mod stats;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::error::BoxError;
use duplexer_server::Server;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use self::service_state::ServiceState;

pub use body::{ResponseBody, StreamTimedOut};
pub use config::{Cors, Handshake, HttpConfigError, Responses, StoreReadiness, StreamableHttpBuilder};
pub use readiness::Readiness;
pub use security::InvalidName;
pub use serve::{HttpServer, Listener, PathService, ServeError};
pub use server_card::ServerCard;
pub use service_state::ShutdownHandle;

/// A server as an HTTP service. Clones share all state.
///
/// The server's lifespan starts with the first request (or before the first connection, if the service listens itself)
/// and ends with [`ShutdownHandle::shutdown`].
///
/// ```
/// use duplexer_http::StreamableHttp;
/// use duplexer_server::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let address = "127.0.0.1:8000";
/// # let address = "127.0.0.1:0";
/// // http://127.0.0.1:8000/mcp, until Ctrl-C or SIGTERM.
/// let serving = StreamableHttp::new(server).serve(address);
/// # tokio::select! { biased; ended = serving => ended?, () = tokio::task::yield_now() => {} }
/// # Ok(())
/// # }
/// ```
#[doc(alias("session", "sse", "http server"))]
#[derive(Clone, Debug)]
pub struct StreamableHttp(Arc<ServiceState>);

impl StreamableHttp {
    /// Creates a service with default settings: both eras, reachable from this machine only.
    pub fn new(server: Server) -> Self {
        Self(ServiceState::start(server, config::Config::default()))
    }

    /// Returns a builder for a service with other settings.
    pub fn builder(server: Server) -> StreamableHttpBuilder {
        StreamableHttpBuilder::new(server)
    }

    /// Returns the handle that shuts the service down.
    pub fn handle(&self) -> ShutdownHandle {
        ShutdownHandle::new(Arc::clone(&self.0))
    }

    /// Returns the service for a balancer's readiness check.
    pub fn readiness(&self) -> Readiness {
        Readiness::new(Arc::clone(&self.0))
    }
}

/// The response future of the service.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

impl<B> Service<Request<B>> for StreamableHttp
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        Box::pin(route::handle(Arc::clone(&self.0), request, None))
    }
}
