//! The service: one request in, one response out, whatever the era.
//!
//! `head` is what a request says about itself; `route` lets it in and chooses its era, once; `envelope` and `handshake`
//! serve the two; `exchange` drives the handler, into one body or (`sse`) into a stream. `http_sse` is the transport of
//! old clients. `security` and `config` say who and how much; `service` is what all clones share. `serve` puts the
//! service on a socket.

mod body;
mod config;
mod cors;
mod envelope;
mod event_queue;
mod exchange;
mod frame;
mod handshake;
mod head;
mod http_sse;
mod reply;
mod request;
mod request_body;
mod request_headers;
mod response;
mod route;
mod rpc_response;
mod security;
mod serve;
mod service_state;
mod session;
mod sse;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::error::BoxError;
use duplexer_core::server::Server;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use self::service_state::ServiceState;

pub(crate) use service_state::lock;

pub use body::{ResponseBody, StreamTimedOut};
pub use config::{ConfigError, Cors, Handshake, Responses, StreamableHttpBuilder};
pub use security::InvalidName;
pub use serve::{HttpServer, Listener, PathService, ServeError};
pub use service_state::ShutdownHandle;

/// A server as an HTTP service. Clones share everything.
///
/// The server's lifespan begins with the first request (or before the first connection, if the service listens itself)
/// and ends with [`ShutdownHandle::shutdown`].
#[derive(Clone, Debug)]
pub struct StreamableHttp(Arc<ServiceState>);

impl StreamableHttp {
    /// The service with default settings: both eras, reachable from this machine only.
    pub fn new(server: Server) -> Self {
        Self(Arc::new(ServiceState::new(server, config::Config::default())))
    }

    /// The service with other settings.
    pub fn builder(server: Server) -> StreamableHttpBuilder {
        StreamableHttpBuilder::new(server)
    }

    /// What ends the service in order.
    pub fn handle(&self) -> ShutdownHandle {
        ShutdownHandle::new(Arc::clone(&self.0))
    }
}

/// A response on its way.
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
        let response = route::handle(Arc::clone(&self.0), request);
        Box::pin(async move { Ok(response.await) })
    }
}
