//! What answers the requests of one connection: health routes, layers, or the service itself.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::connection_body::ConnectionBody;
use super::connection_state::{ConnectionState, InFlightGuard, PeerBody};
use super::path_service::{PATH, PathService};
use crate::server::body::{ResponseBody, UnsentOwner};
use crate::server::head::is_last_on_connection;
use crate::server::service_state::ServiceState;
use crate::server::{reply, route};

/// The layered service, type-erased.
pub(super) type Layered = Arc<dyn Fn(Request<Incoming>) -> LayeredFuture + Send + Sync>;
type LayeredFuture = BoxFuture<'static, Result<Response<ConnectionBody>, Infallible>>;

pub(super) fn layered<S, B>(service: S) -> Layered
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Arc::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            Ok(service.call(request).await?.map(ConnectionBody::new))
        })
    })
}

/// The health routes and the service, for one connection.
pub(super) struct ConnectionService {
    pub(super) service: PathService,
    pub(super) layered: Option<Layered>,
    pub(super) health_routes: bool,
    pub(super) state: Arc<ConnectionState>,
    /// Address of the peer, if the listener knows it.
    pub(super) peer: Option<SocketAddr>,
}

impl ConnectionService {
    /// Serves one request. The connection has room for this future, so without layers none is allocated.
    pub(super) fn call(
        &self,
        request: Request<Incoming>,
    ) -> Responding<impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + use<>> {
        // The peer then sends its next request to another node. HTTP/2 has a message for that.
        let mut is_closing = self.service.is_closing();
        if request.version() == Version::HTTP_2 {
            self.state.begins_http_2();
            is_closing = false;
        }
        let in_flight = Some(InFlightGuard::begin(&self.state));
        Responding { target: self.target(request), in_flight, is_closing }
    }

    fn target(
        &self,
        mut request: Request<Incoming>,
    ) -> Target<impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + use<>> {
        let path = request.uri().path();
        let health = self.health_status(path);
        if let (None, None, Some(service)) = (health, &self.layered, self.service.at(path)) {
            let service = Arc::clone(&service.0);
            let request = request.map(|body| PeerBody::new(body, &self.state));
            // Reads the head at once: the future contains what is left of it, which is smaller.
            return Target::Service { reply: route::handle(service, request, self.peer) };
        }
        let is_last = is_last_on_connection(request.headers(), request.version());
        match (health, &self.layered) {
            (Some(status), _) => Target::reply(reply::empty(status), is_last),
            (None, Some(layered)) => {
                if let Some(peer) = self.peer {
                    request.extensions_mut().insert(peer);
                }
                let watched = (request.version() == Version::HTTP_2).then(|| self.service.state());
                Target::Layered { response: layered(request), is_last, watched }
            }
            (None, None) => Target::reply(reply::not_found(PATH), is_last),
        }
    }

    fn health_status(&self, path: &str) -> Option<StatusCode> {
        if !self.health_routes {
            return None;
        }
        match path {
            "/readyz" if !self.service.is_ready() => Some(StatusCode::SERVICE_UNAVAILABLE),
            "/livez" | "/readyz" => Some(StatusCode::OK),
            _ => None,
        }
    }
}

pin_project! {
    /// The response to one request. It polls the future of the service in place: a future that awaits another one from inside a
    /// value has room for it twice, and moves it.
    pub(super) struct Responding<F> {
        #[pin]
        target: Target<F>,
        in_flight: Option<InFlightGuard>,
        is_closing: bool,
    }
}

pin_project! {
    /// What answers a request, and whether the connection closes after it.
    #[project = TargetProjection]
    enum Target<F> {
        Reply { reply: Option<reply::Rejection>, is_last: bool },
        /// With the service that watches whether the response is read, for HTTP/2.
        Layered { response: LayeredFuture, is_last: bool, watched: Option<Arc<ServiceState>> },
        /// The service itself, which closes the connection where that is required.
        Service { #[pin] reply: F },
    }
}

impl<F> Target<F> {
    fn reply(reply: reply::Reply, is_last: bool) -> Self {
        Self::Reply { reply: Some(reply.into()), is_last }
    }
}

impl<F> Future for Responding<F>
where
    F: Future<Output = Result<Response<ResponseBody>, Infallible>>,
{
    type Output = Result<Response<ConnectionBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (mut response, is_last) = match this.target.project() {
            TargetProjection::Reply { reply, is_last } => {
                // Not polled again after it.
                let Some(reply) = reply.take() else { return Poll::Pending };
                ((*reply).map(ConnectionBody::from), *is_last)
            }
            TargetProjection::Layered { response, is_last, watched } => {
                let Ok(mut response) = ready!(response.as_mut().poll(cx));
                // A layer can have answered instead of the service.
                if let Some(service) = watched.take() {
                    response.body_mut().watch_text(&UnsentOwner { service, share: None });
                }
                (response, *is_last)
            }
            TargetProjection::Service { reply } => {
                let Ok(reply) = ready!(reply.poll(cx));
                (reply.map(ConnectionBody::from), false)
            }
        };
        if is_last || *this.is_closing {
            response = reply::close_connection(response);
        }
        // The connection counts the request as in flight until the last byte of the body.
        response.body_mut().until_read(this.in_flight.take());
        Poll::Ready(Ok(response))
    }
}
