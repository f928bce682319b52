//! Tower layers around the service: each further one wraps those before it.

use std::convert::Infallible;
use std::future::ready;
use std::task::{Context, Poll};

use bytes::Bytes;
use duplexer_http::{ResponseBody, ResponseFuture};
use http::{HeaderValue, Request, Response, StatusCode};
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

use crate::support::{Post, Site};

/// Answers 401 unless the request has the header `x-key`.
#[derive(Clone)]
struct RequireKey<S>(S);

impl<S, B> Service<Request<B>> for RequireKey<S>
where
    S: Service<Request<B>, Response = Response<ResponseBody>, Error = Infallible, Future = ResponseFuture>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        if request.headers().contains_key("x-key") {
            return self.0.call(request);
        }
        let mut refused = Response::new(ResponseBody::from(Bytes::from_static(b"no key")));
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        Box::pin(ready(Ok(refused)))
    }
}

/// Adds its name to the request's `x-test` headers, which the tool `ask` returns in their order.
#[derive(Clone)]
struct Named<S>(S, &'static str);

impl<S: Service<Request<B>>, B> Service<Request<B>> for Named<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        request.headers_mut().append("x-test", HeaderValue::from_static(self.1));
        self.0.call(request)
    }
}

fn named<S>(name: &'static str) -> impl Layer<S, Service = Named<S>> {
    layer_fn(move |service| Named(service, name))
}

#[tokio::test]
async fn a_second_layer_keeps_the_first() {
    let site =
        Site::bound(|builder| builder, |bound| bound.layer(layer_fn(RequireKey)).layer(named("trace"))).await;
    let refused = site.post(&Post::tool("echo")).await;
    assert_eq!((refused.status, refused.text().as_str()), (401, "no key"));
    assert_eq!(site.post(&Post::tool("echo").header("x-key", "1")).await.status, 200);
}

#[tokio::test]
async fn the_layer_added_last_sees_a_request_first() {
    let site =
        Site::bound(|builder| builder, |bound| bound.layer(named("inner")).layer(named("outer"))).await;
    let reply = site.post(&Post::tool("ask")).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "outer,inner");
}
