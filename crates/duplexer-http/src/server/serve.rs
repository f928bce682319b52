//! The service on a socket of its own: connections, their limits, and the end of it all.

mod io;
mod listener;
pub(super) mod placed;

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tower_layer::Layer;
use tower_service::Service;

use self::io::{Patience, TimedIo, Traffic};
use super::body::ResponseBody;
use super::head::is_last_on_connection;
use super::hub::{Hub, StartFailed};
use super::{ResponseFuture, StreamableHttp, door, reply};

pub(super) use io::UnderWay;
pub use listener::Listener;
pub use placed::Placed;

/// How long a peer may take to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection is kept without a request: longer than most clients keep theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How many headers a request may have.
const MAX_HEADERS: usize = 100;
/// How large the head of a request may be.
const MAX_HEAD: usize = 64 * 1024;
/// How many requests one connection of HTTP/2 may have under way.
const MAX_STREAMS: u32 = 256;
/// How many connections there may be, if not set otherwise.
const MAX_CONNECTIONS: usize = 8192;
/// What the connections get beyond the service's own end to be gone.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Why a service could not be put on a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The server's lifespan could not start; the log says why.
    #[error("the server could not start")]
    Start,
    /// The address cannot be listened on.
    #[error("the address cannot be listened on")]
    Bind(#[source] std::io::Error),
    /// The signals that end the process cannot be caught.
    #[error("the signals that end the process cannot be caught")]
    Signals(#[source] std::io::Error),
}

/// Whether `/livez` and `/readyz` answer. They are outside of every check and say nothing but a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probes {
    /// Those paths are like any other.
    #[default]
    Off,
    /// `/livez` is 200 while the process serves, `/readyz` until it is to end.
    On,
}

impl StreamableHttp {
    /// Starts the server, listens, and serves until the process is asked to end, at `/mcp` unless it was told
    /// another path.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), ServeError> {
        let bound = self.bind(address).await?;
        let mut signals =
            duplexer_core::transport::signal::ShutdownSignals::listen().map_err(ServeError::Signals)?;
        bound.run(async move { signals.next().await }).await;
        Ok(())
    }

    /// Starts the server and listens: on this machine only, unless the address says otherwise.
    pub async fn bind(self, address: impl ToSocketAddrs) -> Result<Bound<TcpListener>, ServeError> {
        self.0.running().await.map_err(|StartFailed| ServeError::Start)?;
        let listener = TcpListener::bind(address).await.map_err(ServeError::Bind)?;
        Ok(self.on(listener))
    }

    /// The service on a listener of any kind. The server starts with the first request.
    pub fn on<L: Listener>(self, listener: L) -> Bound<L> {
        Bound { service: self, layered: None, listener, probes: Probes::Off, connections: MAX_CONNECTIONS }
    }
}

/// A service and where it listens.
#[must_use = "nothing is served until it runs"]
pub struct Bound<L> {
    service: StreamableHttp,
    layered: Option<Layered>,
    listener: L,
    probes: Probes,
    connections: usize,
}

impl<L: Listener> Bound<L> {
    /// Whether `/livez` and `/readyz` answer.
    pub fn probes(mut self, probes: Probes) -> Self {
        self.probes = probes;
        self
    }

    /// How many connections there may be at once; further ones wait to be accepted. 8192 if not given.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Puts a layer around the service: authorization, a limit, routes of its own. It sees every path but the probes'.
    /// There is one: several are stacked before they are given.
    pub fn layer<Y>(mut self, layer: Y) -> Self
    where
        Y: Layer<Placed>,
        Y::Service: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        <Y::Service as Service<Request<Incoming>>>::Future: Send + 'static,
    {
        self.layered = Some(layered(layer.layer(Placed::new(self.service.clone()))));
        self
    }

    /// Serves until `end` resolves, then ends in order: five seconds at most, with the default drain.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let Self { service, layered, mut listener, probes, connections } = self;
        let hub = Arc::clone(&service.0);
        let room = Arc::new(Semaphore::new(connections));
        let mut open = JoinSet::new();
        let mut end = pin!(end);
        loop {
            let accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&room).acquire_owned().await.ok();
                (listener.accept().await, place)
            };
            tokio::select! {
                () = &mut end => break,
                Some(_) = open.join_next() => {}
                (io, place) = accepted => {
                    let service = Placed::new(service.clone());
                    let front = Front { service, layered: layered.clone(), probes, traffic: Arc::default() };
                    let connection = connection(io, Arc::clone(&hub), front);
                    open.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
            }
        }
        drop(listener);
        hub.shutdown().await;
        let gone = async { while open.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, gone).await.is_err() {
            tracing::debug!(connections = open.len(), "connections are cut");
        }
    }
}

impl Bound<TcpListener> {
    /// Where it listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl<L> fmt::Debug for Bound<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("service", &self.service).finish_non_exhaustive()
    }
}

/// Serves one connection to its end, which the end of the service brings about.
async fn connection<I: listener::Io>(io: I, hub: Arc<Hub>, front: Front) {
    let patience = Patience { head: HEADER_TIMEOUT, idle: IDLE_TIMEOUT, write: hub.config.timing.unread };
    let io = TokioIo::new(TimedIo::new(io, patience, Arc::clone(&front.traffic)));
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(io, service_fn(move |request| front.call(request))));
    let mut closing = pin!(hub.closing.cancelled());
    let mut waits_for_closing = false;
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        // Waiting takes a lock that all connections share. A task is always woken the same way, so it asks once.
        let is_closing =
            if waits_for_closing { hub.closing.is_cancelled() } else { closing.as_mut().poll(cx).is_ready() };
        waits_for_closing = true;
        if is_closing { Poll::Ready(None) } else { Poll::Pending }
    });
    let ended = if let Some(ended) = ended.await {
        ended
    } else {
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Runs what the HTTP library wants to run beside a connection: the requests of HTTP/2.
#[derive(Clone, Default)]
struct Beside(TaskTracker);

impl<F> hyper::rt::Executor<F> for Beside
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        self.0.spawn(work);
    }
}

fn builder() -> auto::Builder<Beside> {
    let mut builder = auto::Builder::new(Beside::default());
    // The connection itself keeps the time of heads.
    builder.http1().header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(HEADER_TIMEOUT)
        .keep_alive_timeout(HEADER_TIMEOUT);
    builder
}

/// The service and what was put around it.
type Layered = Arc<dyn Fn(Request<Incoming>) -> ResponseFuture + Send + Sync>;

fn layered<S>(service: S) -> Layered
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    Arc::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await?;
            service.call(request).await
        })
    })
}

/// The service behind the probes, for one connection.
struct Front {
    service: Placed,
    layered: Option<Layered>,
    probes: Probes,
    traffic: Arc<Traffic>,
}

impl Front {
    /// Serves one request. The connection keeps room for this future, so that without layers none is allocated.
    fn call(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> + Send + use<> {
        let under_way = UnderWay::begin(&self.traffic);
        // Whatever is answered, and whoever does: a layer, or nobody's path.
        let is_last = is_last_on_connection(request.headers(), request.version());
        let way = self.way(request);
        async move {
            let mut response = match way {
                Way::Known(status) => reply::empty(status),
                Way::Layered(response) => response.await?,
                Way::Bare(hub, request) => door::enter(hub, request).await,
            };
            if is_last {
                response = reply::closing(response);
            }
            // It tells the connection when its last byte is gone.
            response.body_mut().until_read(Some(under_way));
            Ok(response)
        }
    }

    fn way(&self, request: Request<Incoming>) -> Way {
        let path = request.uri().path();
        match (self.probe(path), &self.layered, self.service.at(path)) {
            (Some(status), ..) => Way::Known(status),
            (None, Some(layered), _) => Way::Layered(layered(request)),
            (None, None, Some(service)) => Way::Bare(Arc::clone(&service.0), request),
            (None, None, None) => Way::Known(StatusCode::NOT_FOUND),
        }
    }

    fn probe(&self, path: &str) -> Option<StatusCode> {
        if self.probes == Probes::Off {
            return None;
        }
        match path {
            "/readyz" if self.service.is_closing() => Some(StatusCode::SERVICE_UNAVAILABLE),
            "/livez" | "/readyz" => Some(StatusCode::OK),
            _ => None,
        }
    }
}

/// Who answers a request.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the usual one, and lives in the connection's own room"
)]
enum Way {
    /// Its path alone does.
    Known(StatusCode),
    Layered(ResponseFuture),
    Bare(Arc<Hub>, Request<Incoming>),
}
