//! The service on its own listener: connections, their limits, and the shutdown.

mod connection;
mod connection_body;
mod connection_service;
mod connection_state;
mod connections;
mod error;
mod http_version;
mod io;
mod listener;
pub(super) mod path_service;

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::error::BoxError;
use duplexer_core::shutdown_signal::ShutdownSignals;
use duplexer_core::stderr_log;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::time::{Instant, sleep, timeout};
use tower_layer::Layer;
use tower_service::Service;

use self::connection::connection;
use self::connection_service::{ConnectionService, Layered, layered};
use self::connection_state::ConnectionState;
use self::connections::Connections;
use super::StreamableHttp;
use super::service_state::StartFailed;

pub(super) use connection_state::InFlightGuard;
pub use error::ServeError;
pub use listener::Listener;
pub use path_service::PathService;

/// Default maximum number of connections.
const MAX_CONNECTIONS: usize = 8192;
/// Interval at which the limit of connections is checked while a new connection waits.
const EVICTION_INTERVAL: Duration = Duration::from_secs(1);
/// Time for connections to close after the shutdown of the service.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);
/// Time for the requests of a connection that arrives during the shutdown.
const LATE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time without a new connection after which none waits any more.
const LAST_ACCEPT: Duration = Duration::from_millis(10);

impl StreamableHttp {
    /// Starts the server, listens, and serves until the process receives a termination signal, like
    /// [`HttpServer::serve`]. The path is `/mcp` unless another one is set.
    ///
    /// # Errors
    ///
    /// Fails if a lifespan does not start, if the address cannot be listened on, or if the signals cannot be caught.
    pub async fn serve(self, address: impl ToSocketAddrs) -> Result<(), ServeError> {
        stderr_log::enable();
        self.bind(address).await?.serve().await
    }

    /// Starts the server and listens on an address.
    ///
    /// # Errors
    ///
    /// Fails if a lifespan does not start, or if the address cannot be listened on.
    pub async fn bind(self, address: impl ToSocketAddrs) -> Result<HttpServer<TcpListener>, ServeError> {
        self.0.running().await.map_err(|StartFailed| ServeError::Start)?;
        let listener = TcpListener::bind(address).await.map_err(ServeError::Bind)?;
        Ok(self.with_listener(listener))
    }

    /// Serves on a listener of any kind. The server starts with the first request.
    pub fn with_listener<L: Listener>(self, listener: L) -> HttpServer<L> {
        HttpServer {
            stack: PathService::new(self.clone()),
            service: self,
            layered: None,
            listener,
            health_routes: false,
            connections: MAX_CONNECTIONS,
        }
    }
}

/// A service with its layers (`S`) and its listener (`L`).
///
/// ```
/// use duplexer_http::StreamableHttp;
/// use duplexer_server::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let service = StreamableHttp::new(Server::builder("notes", "1.0.0").build()?);
/// let server = service.bind("127.0.0.1:0").await?.health_routes();
/// println!("listening on {}", server.local_addr()?);
/// // `serve()` runs until Ctrl-C or SIGTERM.
/// server.serve_until(async { /* the program is to end */ }).await;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is served until it runs"]
pub struct HttpServer<L, S = PathService> {
    service: StreamableHttp,
    stack: S,
    /// The stack, type-erased. `None` without layers, so that a request allocates no future.
    layered: Option<Layered>,
    listener: L,
    health_routes: bool,
    connections: usize,
}

impl<L: Listener, S> HttpServer<L, S> {
    /// Serves `/livez` (200 while the process serves) and `/readyz` (200 until the shutdown begins). Both are exempt from
    /// every check and return nothing but a status.
    pub fn health_routes(mut self) -> Self {
        self.health_routes = true;
        self
    }

    /// Sets the maximum number of connections. Default: 8192. At the limit, a new connection replaces the one that has
    /// waited longest for its own peer: idle, or slow in sending a head or a body. If the server works on a request of
    /// every connection, the new one waits.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// Adds a layer around the service: authorization, a limit, further routes. It sees every path except the health
    /// routes, and finds the address of the peer, a `SocketAddr`, in the extensions of a request.
    ///
    /// Layers stack as in tower and axum: each one wraps those added before it, so the last one sees a request first.
    ///
    /// A layer can change the body of responses, as those of the crate `tower-http` do. One that buffers or compresses should
    /// let event streams pass (`text/event-stream`): clients wait for their events.
    pub fn layer<Y, B>(self, layer: Y) -> HttpServer<L, Y::Service>
    where
        Y: Layer<S>,
        Y::Service: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        <Y::Service as Service<Request<Incoming>>>::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Self { service, stack, listener, health_routes, connections, .. } = self;
        let stack = layer.layer(stack);
        HttpServer {
            service,
            layered: Some(layered(stack.clone())),
            stack,
            listener,
            health_routes,
            connections,
        }
    }

    /// Serves until the process receives SIGTERM or Ctrl-C, then shuts down and runs the teardown of the server's
    /// lifespan: within 15 seconds, with the default grace. A second signal ends the grace.
    ///
    /// If no `tracing` subscriber is installed, errors and panics of handlers are printed to standard error, one line
    /// each.
    ///
    /// # Errors
    ///
    /// Fails if the signals cannot be caught.
    pub async fn serve(self) -> Result<(), ServeError> {
        stderr_log::enable();
        let mut signals = ShutdownSignals::listen().map_err(ServeError::Signals)?;
        let first = async {
            signals.next().await;
            signals
        };
        self.run(first, |mut signals| async move { signals.next().await }).await;
        Ok(())
    }

    /// Serves until `signal` resolves, then shuts down: within 15 seconds, with the default grace.
    pub async fn serve_until(self, signal: impl Future<Output = ()>) {
        self.run(signal, |()| std::future::pending()).await;
    }

    /// Serves until `signal` resolves, then shuts down. The future that `cut` returns ends the grace.
    async fn run<T, C: Future<Output = ()>>(self, signal: impl Future<Output = T>, cut: impl FnOnce(T) -> C) {
        let state = Arc::clone(&self.service.0);
        let mut open = Connections::new(self.connections);
        let mut accepting = Accepting { server: self, accepted: None, epoch: Instant::now() };
        let signalled = accepting.run(&mut open, signal).await;
        let shutdown = state.shutdown_until(cut(signalled));
        let limit = if state.accepts_until_the_end() {
            accepting.run(&mut open, shutdown).await;
            accepting.accept_waiting(&mut open).await;
            drop(accepting);
            LATE_TIMEOUT
        } else {
            drop(accepting);
            shutdown.await;
            CLOSE_TIMEOUT
        };
        let gone = async { while open.next_end().await.is_some() {} };
        if timeout(limit, gone).await.is_err() {
            tracing::debug!(connections = open.len(), "connections are closed");
        }
    }
}

/// A server that accepts connections.
struct Accepting<L: Listener, S> {
    server: HttpServer<L, S>,
    /// A connection that waits until there are fewer.
    accepted: Option<L::Io>,
    epoch: Instant,
}

impl<L: Listener, S> Accepting<L, S> {
    /// Accepts connections until a future resolves.
    async fn run<T>(&mut self, open: &mut Connections, until: impl Future<Output = T>) -> T {
        let mut until = pin!(until);
        loop {
            tokio::select! {
                done = &mut until => return done,
                Some(()) = open.next_end() => {}
                io = self.server.listener.accept(), if self.accepted.is_none() => self.accepted = Some(io),
                () = sleep(EVICTION_INTERVAL), if self.accepted.is_some() => {}
            }
            if self.accepted.is_some() && open.is_full() {
                open.evict();
            } else if let Some(io) = self.accepted.take() {
                self.serve(open, io);
            }
        }
    }

    /// Accepts the connections that wait already, within a short time: the operating system resets those that are not
    /// accepted when the listener closes, and a balancer does not repeat a request that it has sent. If they do not stop, it
    /// ends at a moment at which none waits.
    async fn accept_waiting(&mut self, open: &mut Connections) {
        let end = Instant::now() + CLOSE_TIMEOUT;
        while !open.is_full() {
            let wait = LAST_ACCEPT.min(end.saturating_duration_since(Instant::now()));
            let io = match self.accepted.take() {
                Some(io) => io,
                None => match timeout(wait, self.server.listener.accept()).await {
                    Ok(io) => io,
                    Err(_) => return,
                },
            };
            self.serve(open, io);
        }
    }

    /// Serves a connection in a task of its own.
    fn serve(&self, open: &mut Connections, io: L::Io) {
        let connection_state = Arc::new(ConnectionState::new(self.epoch));
        let service = ConnectionService {
            service: PathService::new(self.server.service.clone()),
            layered: self.server.layered.clone(),
            health_routes: self.server.health_routes,
            peer: L::peer_address(&io),
            state: Arc::clone(&connection_state),
        };
        open.spawn(connection_state, connection(io, Arc::clone(&self.server.service.0), service));
    }
}

impl<S> HttpServer<TcpListener, S> {
    /// Returns the address of the listener.
    ///
    /// # Errors
    ///
    /// Fails if the operating system does not report it.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl<L, S> fmt::Debug for HttpServer<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("service", &self.service).finish_non_exhaustive()
    }
}
