//! Where connections come from.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// How long to wait when no connection can be accepted, which is when descriptors have run out.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// A source of connections: TCP, or something on top of it such as TLS, of which `tests/tls.rs` is an example.
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection. What fails is the listener's to log and to wait out. Must be cancel-safe.
    fn accept(&mut self) -> impl Future<Output = Self::Io> + Send;
}

/// What a connection must be able to do.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Io for T {}

impl Listener for TcpListener {
    type Io = TcpStream;

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

/// The peer was gone before it was accepted; the next one may be there already.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
