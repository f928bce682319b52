//! What a client can connect to.

use super::{Client, ClientBuilder, ConnectError};
use duplexer_core::transport::Transport;

/// Something that a client can connect to: every [`Transport`], and endpoints that own more than a connection.
pub trait Endpoint {
    /// Why a session could not be opened.
    type Error: From<ConnectError>;

    /// Opens a session.
    ///
    /// # Errors
    ///
    /// Fails under the same conditions as [`ClientBuilder::connect`].
    fn connect(self, builder: ClientBuilder) -> impl Future<Output = Result<Client, Self::Error>> + Send;
}

impl<T: Transport> Endpoint for T {
    type Error = ConnectError;

    async fn connect(self, builder: ClientBuilder) -> Result<Client, ConnectError> {
        builder.connect_transport(self).await
    }
}
