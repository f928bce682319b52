//! The Prometheus endpoint: a listener of its own, so that metrics are never reachable where clients are.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Metrics;

const PATH: &str = "/metrics";
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const GET_AND_HEAD: HeaderValue = HeaderValue::from_static("GET, HEAD");
/// Maximum number of connections. A further one waits until another has ended.
const MAX_CONNECTIONS: usize = 16;
/// Time within which a head must arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum life of a connection: longer than the usual interval of a collector.
const MAX_LIFE: Duration = Duration::from_secs(300);
/// Wait after a failed accept, which happens when descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// Serves the text of Prometheus at `/metrics`, on an address of its own (feature `prometheus`). It has no authentication: bind it
/// to an address that only your collector reaches.
///
/// ```
/// use duplexer_otel::{Metrics, PrometheusEndpoint};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer_otel::EndpointError> {
/// let metrics = Metrics::new();
/// let endpoint = PrometheusEndpoint::bind("127.0.0.1:0", metrics.clone()).await?;
/// println!("metrics at http://{}/metrics", endpoint.local_addr());
/// tokio::select! {
///     () = endpoint.serve() => {}
///     () = async { /* the server runs */ } => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is served until it runs"]
pub struct PrometheusEndpoint {
    listener: TcpListener,
    address: SocketAddr,
    metrics: Metrics,
}

/// Why metrics cannot be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum EndpointError {
    /// The address cannot be listened on.
    Bind(std::io::Error),
}

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the address for metrics cannot be listened on")
    }
}

impl std::error::Error for EndpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let Self::Bind(cause) = self;
        Some(cause)
    }
}

impl PrometheusEndpoint {
    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be listened on.
    pub async fn bind(address: impl ToSocketAddrs, metrics: Metrics) -> Result<Self, EndpointError> {
        let listener = TcpListener::bind(address).await.map_err(EndpointError::Bind)?;
        let address = listener.local_addr().map_err(EndpointError::Bind)?;
        Ok(Self { listener, address, metrics })
    }

    /// Returns the address.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the future is dropped.
    pub async fn serve(self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(timeout(MAX_LIFE, connection(stream, self.metrics.clone())));
                    }
                    Err(_) => sleep(ACCEPT_BACKOFF).await,
                },
            }
        }
    }
}

/// Serves one connection. A peer that breaks it is of no interest.
async fn connection(stream: TcpStream, metrics: Metrics) {
    let service =
        service_fn(move |request| std::future::ready(Ok::<_, Infallible>(reply(&request, &metrics))));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(64);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

fn reply(request: &Request<Incoming>, metrics: &Metrics) -> Response<String> {
    let mut reply = Response::new(String::new());
    if request.uri().path() != PATH {
        *reply.status_mut() = StatusCode::NOT_FOUND;
        *reply.body_mut() = format!("the metrics are at {PATH}\n");
    } else if matches!(*request.method(), Method::GET | Method::HEAD) {
        *reply.body_mut() = metrics.to_prometheus();
        reply.headers_mut().insert(CONTENT_TYPE, TEXT);
    } else {
        *reply.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        reply.headers_mut().insert(ALLOW, GET_AND_HEAD);
    }
    reply
}
