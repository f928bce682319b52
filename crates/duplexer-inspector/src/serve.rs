//! A small HTTP server on the loopback interface: for the page by itself, and for the origin of views.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::reply::Reply;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 64;
/// Time within which a peer must send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Wait after a failed accept, which happens when descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A server that ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    _task: JoinSet<()>,
}

impl Serving {
    pub(crate) fn start<F>(
        listener: TcpListener,
        handle: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let mut task = JoinSet::new();
        task.spawn(run(listener, handle));
        Self { _task: task }
    }
}

/// Serves until the future is dropped. Requests carry the address of their peer.
pub(crate) async fn run<F>(
    listener: TcpListener,
    handle: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Reply> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, handle.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }
}

async fn connection<F>(
    stream: TcpStream,
    peer: SocketAddr,
    handle: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Reply> + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let reply = handle(request);
        async move { Ok::<_, Infallible>(reply.await.map(Full::new)) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection broke");
    }
}
