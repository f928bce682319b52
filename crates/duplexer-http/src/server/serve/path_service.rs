//! The service at its path, for use without a router.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use duplexer_core::error::BoxError;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::server::body::ResponseBody;
use crate::server::service_state::ServiceState;
use crate::server::{ResponseFuture, StreamableHttp, reply};

/// Default path of a service.
pub(in crate::server) const PATH: &str = "/mcp";

/// A [`StreamableHttp`] that serves only its path: `/mcp` unless another one is set.
#[derive(Clone, Debug)]
pub struct PathService(StreamableHttp);

impl PathService {
    pub(super) fn new(service: StreamableHttp) -> Self {
        Self(service)
    }

    pub(super) fn state(&self) -> Arc<ServiceState> {
        Arc::clone(&self.0.0)
    }

    /// Returns whether a balancer can send requests.
    pub(super) fn is_ready(&self) -> bool {
        self.0.0.is_ready()
    }

    /// Returns whether the service shuts down.
    pub(super) fn is_closing(&self) -> bool {
        self.0.0.closing.is_cancelled()
    }

    /// Returns the service if `path` is its path.
    pub(super) fn at(&self, path: &str) -> Option<&StreamableHttp> {
        let config = &self.0.0.config;
        let is_here = config.path.is_some()
            || config.http_sse.end(path).is_some()
            || config.card.as_ref().is_some_and(|card| card.serves(config, path))
            || path.strip_suffix('/').unwrap_or(path) == PATH;
        is_here.then_some(&self.0)
    }
}

impl<B> Service<Request<B>> for PathService
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
            None => Box::pin(std::future::ready(Ok(reply::not_found(PATH)))),
        }
    }
}
