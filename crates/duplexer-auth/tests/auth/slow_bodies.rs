//! Request bodies that arrive slowly or never.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use duplexer_auth::{AuthorizationServer, DevBackend};
use http::Request;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::time::{Instant, Interval};
use tower_service::Service;

/// A body of one byte every ten seconds, without an end.
struct Trickle(Interval);

impl Body for Trickle {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_tick(cx).map(|_| Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

/// O-slow-token, O-slow-register, O-slow-lockout: every endpoint that reads a body has a time limit for it.
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_answered_after_thirty_seconds() {
    let base = "http://127.0.0.1:1";
    let mut server =
        AuthorizationServer::builder(base, DevBackend::new("ada")).resource(base).build().unwrap();
    for path in ["/authorize", "/authorize/consent", "/token", "/register", "/revoke"] {
        let body = Trickle(tokio::time::interval(Duration::from_secs(10)));
        let request = Request::post(path).header("host", "127.0.0.1:1").body(body).unwrap();
        let started = Instant::now();
        let answer = tokio::time::timeout(Duration::from_secs(120), server.call(request)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{path} waits for the body")).unwrap();
        assert_eq!((answer.status().as_u16(), started.elapsed().as_secs()), (408, 30), "{path}");
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        let error: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(error["error_description"], "the body did not arrive within 30s", "{path}");
    }
}
