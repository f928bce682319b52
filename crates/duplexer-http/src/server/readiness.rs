//! Readiness: whether a balancer should send requests to this node.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use tower_service::Service;

use super::body::ResponseBody;
use super::reply;
use super::service_state::ServiceState;

/// Tells a balancer whether to send requests to a service: not from the first moment of its shutdown on, and not while
/// the node has lost its shared stores, unless [`StoreReadiness`](crate::StoreReadiness) says otherwise. A tower service that responds with 200 or 503; mount it at `/readyz`.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<ServiceState>);

impl Readiness {
    pub(super) fn new(service: Arc<ServiceState>) -> Self {
        Self(service)
    }

    /// Returns whether the service is ready.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }
}

impl<B> Service<Request<B>> for Readiness {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Ready<Result<Response<ResponseBody>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let reply = if self.is_ready() {
            reply::text(StatusCode::OK, "ready\n")
        } else {
            reply::text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        };
        ready(Ok(reply))
    }
}
