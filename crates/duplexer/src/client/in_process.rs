//! Connections to a server of the same process, without frames.

use super::{Client, ClientBuilder, Endpoint, OpenError};
use crate::Server;
use crate::testing::in_process;

/// `server.in_process()`.
pub trait ServeInProcess {
    /// Returns an endpoint that a client of the same process can connect to. Each connection starts the server, with its
    /// lifespans; closing the client ends it.
    ///
    /// ```
    /// use duplexer::client::prelude::*;
    /// use duplexer::{Server, tool};
    /// use serde_json::json;
    ///
    /// /// Adds two numbers.
    /// #[tool]
    /// async fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), BoxError> {
    /// let server = Server::builder("calculator", "1").tool(add).build()?;
    /// let client = Client::builder("me", "1").connect(server.in_process()).await?;
    /// let sum: i64 = client.call_tool("add", json!({"a": 1, "b": 2})).structured().await?;
    /// assert_eq!(sum, 3);
    /// client.close().await?;
    /// # Ok(()) }
    /// ```
    fn in_process(&self) -> InProcess;
}

impl ServeInProcess for Server {
    fn in_process(&self) -> InProcess {
        InProcess(self.clone())
    }
}

/// Endpoint of a server in the same process, from [`ServeInProcess::in_process`].
#[derive(Debug)]
pub struct InProcess(Server);

impl Endpoint for InProcess {
    type Error = OpenError;

    async fn connect(self, builder: ClientBuilder) -> Result<Client, OpenError> {
        let running = self.0.start().await?;
        match in_process(&running, builder).await {
            Ok(client) => {
                client.on_close(move || async move { running.shutdown().await });
                Ok(client)
            }
            Err(error) => {
                running.shutdown().await;
                Err(error.into())
            }
        }
    }
}
