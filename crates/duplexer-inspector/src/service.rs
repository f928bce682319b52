//! The page and its API as a tower service, and as a layer in front of another service.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Full, Limited};
use subtle::ConstantTimeEq as _;
use tower_layer::Layer;
use tower_service::Service;

use crate::inspector::Inspector;
use crate::reply::{self, Reply};
use crate::{api, files, loopback, policy};

/// Maximum size of a request. The largest ones hold the page of a view.
const MAX_BODY: usize = 16 * 1024 * 1024;
const FILES: &str = "/inspector/";
const API: &str = "/inspector/api/";

/// A request to the API.
pub(crate) struct ApiRequest {
    pub(crate) method: Method,
    /// The path below the API.
    pub(crate) name: String,
    pub(crate) query: String,
    pub(crate) body: Bytes,
}

impl Inspector {
    /// Answers a request.
    pub(crate) async fn handle<B>(&self, request: Request<B>) -> Reply
    where
        B: Body,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        if let Some(refusal) = loopback::refusal(&head.extensions, &head.headers, &head.uri) {
            return refusal;
        }
        let path = head.uri.path();
        let Some(name) = path.strip_prefix(API) else {
            return self.file(path);
        };
        if !self.has_token(&head.headers) {
            return reply::error(
                StatusCode::UNAUTHORIZED,
                "the token of this start is missing: open the address that the program has printed",
            );
        }
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
            return reply::error(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large or was cut off");
        };
        let request = ApiRequest {
            method: head.method,
            name: name.to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: body.to_bytes(),
        };
        api::handle(&self.state, request).await
    }

    fn file(&self, path: &str) -> Reply {
        let name = if path == "/" { Some(files::PAGE) } else { path.strip_prefix(FILES) };
        match name.and_then(files::of_page) {
            Some(file) => {
                reply::file(file.media_type, file.text, &policy::of_page(&self.state.settings.sandbox))
            }
            None => reply::text(StatusCode::NOT_FOUND, "There is nothing here. The page is at `/`."),
        }
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        given.is_some_and(|given| bool::from(given.ct_eq(self.state.settings.token.as_bytes())))
    }

    /// Returns whether a path is one of the page.
    fn owns(path: &str) -> bool {
        path == "/" || path.starts_with(FILES)
    }
}

impl<B> Service<Request<B>> for Inspector
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inspector = self.clone();
        Box::pin(async move { Ok(inspector.handle(request).await.map(Full::new)) })
    }
}

/// Serves the page in front of another service, which gets all other paths. From [`Inspector::layer`].
#[derive(Clone, Debug)]
pub struct InspectorLayer(Arc<Inspector>);

impl InspectorLayer {
    pub(crate) fn new(inspector: Inspector) -> Self {
        Self(Arc::new(inspector))
    }
}

impl<S> Layer<S> for InspectorLayer {
    type Service = InspectorOr<S>;

    fn layer(&self, other: S) -> InspectorOr<S> {
        InspectorOr { inspector: Arc::clone(&self.0), other }
    }
}

/// An [`Inspector`], and the service behind it.
#[derive(Clone, Debug)]
pub struct InspectorOr<S> {
    inspector: Arc<Inspector>,
    other: S,
}

impl<S, B, R> Service<Request<B>> for InspectorOr<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    R: From<Bytes>,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.other.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if Inspector::owns(request.uri().path()) {
            let inspector = Arc::clone(&self.inspector);
            Box::pin(async move { Ok(inspector.handle(request).await.map(R::from)) })
        } else {
            Box::pin(self.other.call(request))
        }
    }
}
