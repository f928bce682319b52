//! A balancer that picks a node at random for every request: no stickiness, no buffering.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use duplexer::BoxError;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Longest body of a request.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// The nodes, and how many requests each was sent.
pub(crate) struct Balancer {
    client: reqwest::Client,
    targets: Vec<Target>,
    picked: AtomicU64,
}

struct Target {
    port: u16,
    requests: AtomicU64,
}

impl Balancer {
    pub(crate) fn new(ports: &[u16]) -> Result<Arc<Self>, BoxError> {
        let target = |port: &u16| Target { port: *port, requests: AtomicU64::new(0) };
        // This package builds the HTTP client with TLS, which needs a provider. Fails if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build()?;
        let targets = ports.iter().map(target).collect();
        Ok(Arc::new(Self { client, targets, picked: AtomicU64::new(0) }))
    }

    /// Serves clients. It ends with the returned task.
    pub(crate) fn serve(self: &Arc<Self>, listener: TcpListener) -> JoinSet<std::io::Result<()>> {
        let app = axum::Router::new().fallback(pass).with_state(Arc::clone(self));
        let mut task = JoinSet::new();
        task.spawn(async move { axum::serve(listener, app).await });
        task
    }

    /// Returns how many requests a node was sent.
    pub(crate) fn requests(&self, node: usize) -> u64 {
        self.targets[node].requests.load(Ordering::Relaxed)
    }

    /// Returns a position that looks random (a step of splitmix64).
    fn pick(&self) -> usize {
        let mut bits = self.picked.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ (bits >> 31)) % self.targets.len() as u64).unwrap_or_default()
    }
}

/// Passes a request on. A node that refuses the connection has received nothing, so the next one is tried.
async fn pass(State(balancer): State<Arc<Balancer>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let first = balancer.pick();
    for offset in 0..balancer.targets.len() {
        let target = &balancer.targets[(first + offset) % balancer.targets.len()];
        let url = format!("http://127.0.0.1:{}{}", target.port, head.uri);
        let sent = balancer.client.request(head.method.clone(), url);
        match sent.headers(end_to_end(&head.headers)).body(body.clone()).send().await {
            Ok(response) => {
                target.requests.fetch_add(1, Ordering::Relaxed);
                return answer(response);
            }
            Err(error) if error.is_connect() => {}
            Err(_) => return StatusCode::BAD_GATEWAY.into_response(),
        }
    }
    StatusCode::SERVICE_UNAVAILABLE.into_response()
}

fn answer(response: reqwest::Response) -> Response {
    let (status, headers) = (response.status(), end_to_end(response.headers()));
    (status, headers, Body::new(reqwest::Body::from(response))).into_response()
}

/// Returns the headers that concern more than one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [header::CONNECTION, header::CONTENT_LENGTH, header::HOST, header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    headers
}
