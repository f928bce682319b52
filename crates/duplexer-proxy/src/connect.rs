//! How a session with the remote server is opened.

use duplexer_client::{Client, ClientBuilder};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;

/// Opens sessions with a remote server: for each client, and again when a session is lost. Implemented for functions of a
/// [`ClientBuilder`], which has the identity and the callbacks of the session.
///
/// ```
/// use duplexer_client::{Client, ClientBuilder};
/// use duplexer_core::error::BoxError;
/// use duplexer_proxy::Remote;
/// # use duplexer::client::prelude::*;
/// # let server = duplexer::Server::builder("calculator", "1").build()?;
///
/// let connect = move |builder: ClientBuilder| builder.connect(server.in_process());
/// let remote = Remote::new(connect);
/// # Ok::<_, BoxError>(())
/// ```
pub trait Connect: Send + Sync + 'static {
    /// Opens a session.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached or refuses the session. Clients see the text of the error.
    fn connect(&self, builder: ClientBuilder) -> BoxFuture<'static, Result<Client, BoxError>>;
}

impl<F, Fut, E> Connect for F
where
    F: Fn(ClientBuilder) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Client, E>> + Send + 'static,
    E: Into<BoxError>,
{
    fn connect(&self, builder: ClientBuilder) -> BoxFuture<'static, Result<Client, BoxError>> {
        let opening = self(builder);
        Box::pin(async move { opening.await.map_err(Into::into) })
    }
}
