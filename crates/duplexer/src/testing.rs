//! In-process tests of a server: a client in the same process, through the real kernel.
//!
//! [`TestClient`] exchanges frames over an in-memory stream and records them; [`in_process`] uses no frames. A [`Transcript`]
//! replays what was recorded elsewhere. `store_laws` checks stores that several nodes share.

#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
pub mod store_laws;
mod transcript;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::tasks::TaskTracker;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, ClientBuilder, ConnectError};
use crate::dispatch::{DirectDispatcher, DispatchOptions};
use crate::server::driver::{StreamServer, serve_dispatcher};
use crate::server::{RunningServer, Server, StartError};
use crate::transport::memory;

pub use transcript::{Sender, Transcript, TranscriptError, TranscriptMessage, TranscriptWriter};

/// Maximum time for a server to end after its client has disconnected.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Client connected to a server of the same process. It dereferences to [`Client`].
///
/// ```
/// # use duplexer::{McpError, Server, testing::TestClient};
/// # use duplexer::types::{json::Json, methods, page::PaginatedParams, tool::{ListToolsResult, ToolDefinition}};
/// # tokio_test(async {
/// let server = Server::builder("demo", "1.0.0")
///     .on(methods::ToolsList, async |_: PaginatedParams| {
///         Ok::<_, McpError>(ListToolsResult::new(vec![ToolDefinition::new("echo", Json::object())]))
///     })
///     .build()?;
/// let client = TestClient::new(&server).await?;
/// assert_eq!(client.all_tools().await?[0].name, "echo");
/// assert!(client.transcript().to_string().contains(r#"--> {"jsonrpc":"2.0""#));
/// client.close().await;
/// # Ok(()) });
/// # fn tokio_test(test: impl Future<Output = Result<(), Box<dyn std::error::Error>>>) {
/// #     tokio::runtime::Runtime::new().unwrap().block_on(test).unwrap();
/// # }
/// ```
#[derive(Debug)]
pub struct TestClient {
    client: Client,
    transcript: Transcript,
    running: RunningServer,
    serving: JoinHandle<()>,
}

/// Why a client could not connect to a server of the same process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// A lifespan failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl TestClient {
    /// Starts the server and connects to it in the newest revision.
    ///
    /// # Errors
    ///
    /// Fails if a lifespan does not start or the session cannot be opened.
    pub async fn new(server: &Server) -> Result<Self, TestError> {
        Self::connect(server, Client::builder("test-client", "0")).await
    }

    /// Starts the server and connects a client to it, for example one of the handshake era.
    ///
    /// ```
    /// # use duplexer::{BoxError, Server, testing::TestClient};
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let server = Server::builder("demo", "1.0.0").build()?;
    /// use duplexer::client::{Client, Negotiation};
    ///
    /// let older = Client::builder("older", "1").negotiation(Negotiation::Handshake);
    /// let client = TestClient::connect(&server, older).await?;
    /// assert_eq!(client.protocol_version().as_str(), "2025-11-25");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if a lifespan does not start or the session cannot be opened.
    pub async fn connect(server: &Server, client: ClientBuilder) -> Result<Self, TestError> {
        let running = server.start().await?;
        let (ours, theirs) = memory::pair();
        let (stream, _) = StreamServer::new(&running, theirs, DispatchOptions::default());
        let serving = TaskTracker::new().spawn(async move {
            if let Err(error) = stream.run().await {
                tracing::warn!(%error, "the server under test ended with an error");
            }
        });
        let transcript = Transcript::default();
        match client.connect(transcript.record(ours)).await {
            Ok(client) => Ok(Self { client, transcript, running, serving }),
            Err(error) => {
                serving.abort();
                running.shutdown().await;
                Err(error.into())
            }
        }
    }

    /// Returns the frames exchanged so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Ends the session and the server, lifespans included.
    pub async fn close(mut self) {
        if let Err(error) = self.client.close().await {
            tracing::debug!(%error, "the session ended with an error");
        }
        if timeout(SHUTDOWN_TIMEOUT, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.running.shutdown().await;
    }
}

/// Aborts the server under test if the client was not closed.
impl Drop for TestClient {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Deref for TestClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Connects a client to a running server without frames: requests await the handlers directly.
///
/// The session ends with the client. The caller owns the lifespans.
///
/// # Errors
///
/// Fails if the session cannot be opened.
pub async fn in_process(running: &RunningServer, client: ClientBuilder) -> Result<Client, ConnectError> {
    let ((server_end, to_client), (client_end, to_server)) = DirectDispatcher::pair();
    let served = {
        let running = running.clone();
        async move {
            if let Err(error) = serve_dispatcher(&running, server_end, Arc::new(to_client)).await {
                tracing::warn!(%error, "an in-process server ended with an error");
            }
        }
    };
    running.spawn_tracked(served);
    client.connect_dispatcher(client_end, Arc::new(to_server)).await
}

#[cfg(test)]
mod tests;
