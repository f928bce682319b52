//! The tower layer: every request requires a token, except requests for metadata and for the authorization server.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::error::BoxError;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, ORIGIN};
use http::{Method, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::Auth;
use crate::{dpop, reply};

impl<S> Layer<S> for Auth {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        AuthService { auth: self.clone(), inner }
    }
}

/// Service that rejects requests without a valid token.
///
/// Accepted requests carry their `Arc<Principal>` as an extension. The token is removed, so that a handler cannot
/// forward it.
///
/// ```
/// use axum::Router;
/// use duplexer_auth::Auth;
/// use duplexer_http::StreamableHttp;
/// use duplexer_server::Server;
///
/// let auth = Auth::jwt("https://login.example.com").audience("https://mcp.example.com/mcp").build()?;
/// let protected = auth.protect(StreamableHttp::new(Server::builder("notes", "1.0.0").build()?));
/// let mut app = Router::<()>::new().route_service("/mcp", protected.clone());
/// for path in auth.metadata_paths() {
///     app = app.route_service(path, protected.clone());
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AuthService<S> {
    auth: Auth,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for AuthService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
    R: From<Bytes> + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let fresh = self.inner.clone();
        // The instance that was polled ready must be the one that is called.
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let auth = self.auth.clone();
        Box::pin(async move {
            let path = request.uri().path();
            if let Some(authorization_server) = auth
                .0
                .authorization_server
                .as_ref()
                .filter(|authorization_server| authorization_server.serves(path))
            {
                return Ok(authorization_server.respond(request).await.map(R::from));
            }
            if auth.0.site.paths.iter().any(|known| known == path) {
                return Ok(reply::public(request.method(), &auth.0.site.metadata).map(R::from));
            }
            if !is_preflight(&request) {
                match auth.admit(request.method(), request.uri().path(), request.headers()).await {
                    Ok(principal) => drop(request.extensions_mut().insert(principal)),
                    Err(refusal) => return Ok(reply::open_to_scripts(refusal).map(R::from)),
                }
            }
            request.headers_mut().remove(AUTHORIZATION);
            request.headers_mut().remove(dpop::HEADER);
            inner.call(request).await
        })
    }
}

/// Returns whether the request is a CORS preflight, which never has a token.
fn is_preflight<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}
