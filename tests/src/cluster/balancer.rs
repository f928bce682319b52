//! A balancer that chooses a node at random for every request, without any stickiness.
//!
//! It asks the nodes whether they are ready. A node that refuses a connection is passed by, because it has received
//! nothing; a connection that breaks later is 502.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::error::BoxError;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::random::Random;
use crate::reply::NODE;

/// Interval of the questions whether a node is ready, and the time for an answer.
const CHECK: Duration = Duration::from_millis(100);
const CHECK_TIMEOUT: Duration = Duration::from_millis(500);

type PassedBody = UnsyncBoxBody<Bytes, BoxError>;

/// The nodes as the balancer knows them.
struct Pool {
    ports: Vec<u16>,
    ready: Vec<AtomicBool>,
    random: Mutex<Random>,
}

impl Pool {
    /// Returns the nodes in random order, those that are ready first.
    fn order(&self) -> Vec<u16> {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keyed: Vec<_> = self.ports.iter().zip(&self.ready).collect();
        keyed.sort_by_cached_key(|(_, ready)| (!ready.load(Ordering::Relaxed), random.bits()));
        keyed.into_iter().map(|(port, _)| *port).collect()
    }
}

/// Starts the balancer. It ends with the tasks.
pub async fn start(ports: &[u16], random: Random) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the balancer");
    let address = listener.local_addr().expect("its address");
    let ready = ports.iter().map(|_| AtomicBool::new(true)).collect();
    let pool = Arc::new(Pool { ports: ports.to_vec(), ready, random: Mutex::new(random) });
    let mut tasks = JoinSet::new();
    for node in 0..ports.len() {
        tasks.spawn(check(Arc::clone(&pool), node));
    }
    tasks.spawn(accept(listener, pool));
    (address, tasks)
}

async fn check(pool: Arc<Pool>, node: usize) {
    loop {
        let request = Request::get("/readyz").header(header::HOST, "127.0.0.1");
        let request = request.body(Full::default()).expect("a request");
        let status = timeout(CHECK_TIMEOUT, async {
            let connected = connect(pool.ports[node]).await.ok()?;
            send(connected, request).await.ok().map(|response| response.status())
        });
        let is_ready = status.await.ok().flatten() == Some(StatusCode::OK);
        pool.ready[node].store(is_ready, Ordering::Relaxed);
        sleep(CHECK).await;
    }
}

async fn accept(listener: TcpListener, pool: Arc<Pool>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let pool = Arc::clone(&pool);
        connections.spawn(async move {
            let service = service_fn(|request| pass(&pool, request));
            // A client that leaves is no fault.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn pass(pool: &Pool, request: Request<Incoming>) -> Result<Response<PassedBody>, Infallible> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(header::CONNECTION);
    head.headers.remove(header::TRANSFER_ENCODING);
    let Ok(body) = body.collect().await else { return Ok(failure(StatusCode::BAD_REQUEST, None)) };
    let body = body.to_bytes();
    for port in pool.order() {
        let Ok(stream) = connect(port).await else { continue };
        let request = Request::from_parts(head.clone(), Full::new(body.clone()));
        return Ok(match send(stream, request).await {
            Ok(mut response) => {
                response.headers_mut().insert(NODE, name(port).parse().expect("an address"));
                response
            }
            Err(_) => failure(StatusCode::BAD_GATEWAY, Some(port)),
        });
    }
    Ok(failure(StatusCode::SERVICE_UNAVAILABLE, None))
}

fn name(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn failure(status: StatusCode, port: Option<u16>) -> Response<PassedBody> {
    let mut response = Response::builder().status(status);
    if let Some(port) = port {
        response = response.header(NODE, name(port));
    }
    let body = Full::default().map_err(|never: Infallible| match never {}).boxed_unsync();
    response.body(body).expect("a response")
}

async fn connect(port: u16) -> std::io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", port)).await
}

/// Sends a request on a connection of its own, which ends with the body of the response.
async fn send(stream: TcpStream, request: Request<Full<Bytes>>) -> hyper::Result<Response<PassedBody>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async { drop(connection.await) });
    let response = sender.send_request(request).await?;
    Ok(response.map(|body| Passed { body, _driver: driver }.map_err(Into::into).boxed_unsync()))
}

/// A body that is passed on, and the task that drives its connection.
struct Passed {
    body: Incoming,
    _driver: JoinSet<()>,
}

impl Body for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
}
