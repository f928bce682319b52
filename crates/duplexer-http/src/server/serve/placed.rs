//! The service at its path, where no router stands before it.

use std::convert::Infallible;
use std::task::{Context, Poll};

use duplexer_core::error::BoxError;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use crate::server::body::ResponseBody;
use crate::server::{ResponseFuture, StreamableHttp, reply};

/// The path of a service that has none of its own.
pub(in crate::server) const PATH: &str = "/mcp";

/// A [`StreamableHttp`] that is found at its path and nowhere else: at `/mcp` unless it was told another one.
#[derive(Clone, Debug)]
pub struct Placed(StreamableHttp);

impl Placed {
    pub(super) fn new(service: StreamableHttp) -> Self {
        Self(service)
    }

    /// Whether the service is about to end.
    pub(super) fn is_closing(&self) -> bool {
        self.0.0.closing.is_cancelled()
    }

    /// The service, if this is where it is.
    pub(super) fn at(&self, path: &str) -> Option<&StreamableHttp> {
        let config = &self.0.0.config;
        let is_here = config.path.is_some()
            || config.http_sse.end(path).is_some()
            || path.strip_suffix('/').unwrap_or(path) == PATH;
        is_here.then_some(&self.0)
    }
}

impl<B> Service<Request<B>> for Placed
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
        match self.at(request.uri().path()) {
            Some(service) => service.clone().call(request),
            None => Box::pin(std::future::ready(Ok(reply::empty(StatusCode::NOT_FOUND)))),
        }
    }
}
