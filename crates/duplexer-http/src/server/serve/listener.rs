//! Sources of connections.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Wait after a failed accept, which happens when descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A source of connections: TCP, or a protocol on top of it such as TLS (example: `tests/tls.rs`).
///
/// ```
/// use duplexer_http::{Listener, StreamableHttp};
/// use duplexer_server::Server;
/// use tokio::net::{UnixListener, UnixStream};
///
/// struct Socket(UnixListener);
///
/// impl Listener for Socket {
///     type Io = UnixStream;
///
///     async fn accept(&mut self) -> UnixStream {
///         loop {
///             match self.0.accept().await {
///                 Ok((stream, _)) => return stream,
///                 Err(error) => {
///                     eprintln!("{error}");
///                     tokio::time::sleep(std::time::Duration::from_secs(1)).await;
///                 }
///             }
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = std::env::temp_dir().join(format!("duplexer-listener-{}", std::process::id()));
/// let service = StreamableHttp::new(Server::builder("calculator", "1.0.0").build()?);
/// let server = service.with_listener(Socket(UnixListener::bind(&path)?));
/// # server.serve_until(async { UnixStream::connect(&path).await.unwrap(); }).await;
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Accepts the next connection. The listener logs failures and waits before it retries. Must be cancel-safe.
    fn accept(&mut self) -> impl Future<Output = Self::Io> + Send;

    /// Returns the address of a connection's peer, if there is one: what limits and logs know a client by. Layers find it in
    /// the extensions of a request. Behind a proxy it is that of the proxy; see
    /// [`StreamableHttpBuilder::trusted_proxies`](crate::StreamableHttpBuilder::trusted_proxies).
    fn peer_address(io: &Self::Io) -> Option<SocketAddr> {
        let _ = io;
        None
    }
}

/// Bounds of a connection.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for T {}

impl Listener for TcpListener {
    type Io = TcpStream;

    fn peer_address(io: &TcpStream) -> Option<SocketAddr> {
        io.peer_addr().ok()
    }

    async fn accept(&mut self) -> TcpStream {
        loop {
            match TcpListener::accept(self).await {
                Ok((stream, _)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "TCP_NODELAY cannot be set");
                    }
                    return stream;
                }
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                }
            }
        }
    }
}

/// Returns whether the peer left before it was accepted. The next connection can be waiting already.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
