//! What answers the requests of one connection: health routes, layers, or the service itself.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
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
    /// Serves one request. The connection stores this future inline, so without layers none is allocated.
    pub(super) fn call(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ConnectionBody>, Infallible>> + Send + use<> {
        // The peer then sends its next request to another node. HTTP/2 has a message for that.
        let mut is_closing = self.service.is_closing();
        if request.version() == Version::HTTP_2 {
            self.state.begins_http_2();
            is_closing = false;
        }
        let in_flight = InFlightGuard::begin(&self.state);
        let target = self.target(request);
        async move {
            let (mut response, is_last) = match target {
                Target::Reply(reply, is_last) => ((*reply).map(ConnectionBody::from), is_last),
                Target::Layered(response, is_last, watched) => {
                    let mut response = response.await?;
                    // A layer can have answered instead of the service.
                    if let Some(service) = watched {
                        response.body_mut().watch_text(&UnsentOwner { service, share: None });
                    }
                    (response, is_last)
                }
                // The service itself closes the connection where that is required.
                Target::Service(reply) => {
                    let Ok(reply) = reply.await;
                    (reply.map(ConnectionBody::from), false)
                }
            };
            if is_last || is_closing {
                response = reply::close_connection(response);
            }
            // The connection counts the request as in flight until the last byte of the body.
            response.body_mut().until_read(Some(in_flight));
            Ok(response)
        }
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
            return Target::Service(route::handle(service, request, self.peer));
        }
        let is_last = is_last_on_connection(request.headers(), request.version());
        match (health, &self.layered) {
            (Some(status), _) => Target::Reply(reply::empty(status).into(), is_last),
            (None, Some(layered)) => {
                if let Some(peer) = self.peer {
                    request.extensions_mut().insert(peer);
                }
                let watched = (request.version() == Version::HTTP_2).then(|| self.service.state());
                Target::Layered(layered(request), is_last, watched)
            }
            (None, None) => Target::Reply(reply::not_found(PATH).into(), is_last),
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

/// What answers a request, and whether the connection closes after it.
enum Target<F> {
    Reply(reply::Rejection, bool),
    /// With the service that watches whether the response is read, for HTTP/2.
    Layered(LayeredFuture, bool, Option<Arc<ServiceState>>),
    /// The service itself.
    Service(F),
}
