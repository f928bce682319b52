//! Routes HTTP requests to the endpoints and turns their results into responses.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::error::BoxError;
use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use tower_service::Service;

use super::{AuthorizationServer, Registration};
use crate::error::OAuthError;
use crate::reply::{self, Reply};

/// Maximum size of a request body.
const MAX_BODY: usize = 64 * 1024;
const POST: &str = "POST, OPTIONS";

impl AuthorizationServer {
    /// Returns whether a path belongs to the authorization server.
    pub(crate) fn serves(&self, path: &str) -> bool {
        path == self.0.issuer.metadata_path || self.endpoint(path).is_some()
    }

    fn endpoint<'a>(&self, path: &'a str) -> Option<&'a str> {
        let name = path.strip_prefix(&*self.0.issuer.path)?.strip_prefix('/')?;
        let known = match name {
            "authorize" | "authorize/consent" | "token" | "revoke" => true,
            "register" => self.0.settings.registration == Registration::Open,
            _ => false,
        };
        known.then_some(name)
    }

    pub(crate) async fn respond<B>(&self, request: Request<B>) -> Reply
    where
        B: Body + Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        if parts.uri.path() == self.0.issuer.metadata_path {
            return reply::public(&parts.method, &self.metadata());
        }
        let Some(endpoint) = self.endpoint(parts.uri.path()) else {
            return reply::empty(StatusCode::NOT_FOUND);
        };
        let (is_page, is_post) = (endpoint.starts_with("authorize"), parts.method == Method::POST);
        match parts.method {
            Method::OPTIONS if !is_page => return reply::preflight(POST),
            Method::GET if endpoint == "authorize" => {}
            _ if !is_post && endpoint == "authorize" => return reply::not_allowed("GET, POST"),
            _ if !is_post => return reply::not_allowed(POST),
            _ => {}
        }
        let body = match read(body, self.0.settings.body_timeout).await {
            Ok(body) => body,
            Err(error) => return reply::error(&error),
        };
        match endpoint {
            "authorize" => self.authorize(&parts, &body).await,
            "authorize/consent" => self.decide(&parts, &body).await,
            _ => {
                let answer = self.api(endpoint, &parts, &body).await;
                let answer = answer.unwrap_or_else(|error| refused(&parts, &error));
                reply::open_to_scripts(reply::no_store(answer))
            }
        }
    }

    /// Calls an endpoint that is not a page.
    async fn api(&self, endpoint: &str, parts: &Parts, body: &[u8]) -> Result<Reply, OAuthError> {
        match endpoint {
            "token" => self.token(&parts.headers, body).await,
            "register" => self.register(&parts.headers, body).await,
            _ => self.revoke(&parts.headers, body).await,
        }
    }
}

/// Reads a request body, within the limits on size and time. The connection has no time limit of its own while a request
/// runs.
async fn read<B>(body: B, limit: Duration) -> Result<Bytes, OAuthError>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let collected = Limited::new(Box::pin(body), MAX_BODY).collect();
    match tokio::time::timeout(limit, collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(too_slow(limit)),
    }
}

fn too_slow(limit: Duration) -> OAuthError {
    OAuthError::invalid_request(format!("the body did not arrive within {limit:?}"))
        .with_status(StatusCode::REQUEST_TIMEOUT)
}

fn too_large() -> OAuthError {
    OAuthError::invalid_request("the body is too large").with_status(StatusCode::PAYLOAD_TOO_LARGE)
}

/// A client that used the `Authorization` header gets the supported scheme (RFC 6749, section 5.2).
fn refused(parts: &Parts, error: &OAuthError) -> Reply {
    let mut reply = reply::error(error);
    if error.status == StatusCode::UNAUTHORIZED && parts.headers.contains_key(AUTHORIZATION) {
        reply::with_header(&mut reply, WWW_AUTHENTICATE, "Basic realm=\"oauth\"");
    }
    reply
}

impl<B> Service<Request<B>> for AuthorizationServer
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let authorization_server = self.clone();
        Box::pin(async move { Ok(authorization_server.respond(request).await.map(Full::new)) })
    }
}
