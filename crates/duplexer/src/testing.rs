//! Testing a server without starting a process: a client in the same one, through the real kernel.
//!
//! [`TestClient`] speaks frames over a memory stream, so that what went over the wire can be read afterwards;
//! [`in_process`] goes without frames.

mod transcript;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::lifecycle::Implementation;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::client::{Client, ClientOptions, ConnectError};
use crate::dispatch::{DirectDispatcher, DispatchOptions};
use crate::server::driver::{StreamServer, serve_dispatcher};
use crate::server::{RunningServer, Server, StartError};
use crate::transport::memory;

pub use transcript::Transcript;

/// How long a server may take to end after its client has gone.
const GRACE: Duration = Duration::from_secs(2);

/// A client connected to a server of the same process. It can do whatever a [`Client`] can.
///
/// ```
/// # use duplexer::{McpError, Server, testing::TestClient};
/// # use duplexer::types::{json::Json, methods, page::PaginatedParams, tool::{ListToolsResult, Tool}};
/// # tokio_test(async {
/// let server = Server::builder("demo", "1.0.0")
///     .on(methods::ToolsList, async |_: PaginatedParams| {
///         Ok::<_, McpError>(ListToolsResult::new(vec![Tool::new("echo", Json::object())]))
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

/// Why a client and a server of the same process did not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestError {
    /// A lifespan could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The session could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl TestClient {
    /// Starts the server and connects to it, in the newest revision.
    pub async fn new(server: &Server) -> Result<Self, TestError> {
        Self::with_options(server, ClientOptions::new(Implementation::new("test-client", "0"))).await
    }

    /// The same with another client, for example of the handshake era.
    pub async fn with_options(server: &Server, options: ClientOptions) -> Result<Self, TestError> {
        let running = server.start().await?;
        let (ours, theirs) = memory::pair();
        let (stream, _) = StreamServer::new(&running, theirs, DispatchOptions::default());
        let serving = TaskTracker::new().spawn(async move {
            if let Err(error) = stream.run().await {
                tracing::warn!(%error, "the server under test ended with an error");
            }
        });
        let transcript = Transcript::default();
        let client = Client::connect(transcript.of(ours), options).await;
        match client {
            Ok(client) => Ok(Self { client, transcript, running, serving }),
            Err(error) => {
                serving.abort();
                running.shutdown().await;
                Err(error.into())
            }
        }
    }

    /// What has gone over the wire so far.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Ends the session and the server, lifespans included.
    pub async fn close(mut self) {
        if let Err(error) = self.client.close().await {
            tracing::debug!(%error, "the session did not end in order");
        }
        if timeout(GRACE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.running.shutdown().await;
    }
}

/// A server under test does not outlive its client.
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

/// Connects a client to a running server without frames: calls await the handlers themselves.
///
/// The session ends with the client. Lifespans are the caller's.
pub async fn in_process(running: &RunningServer, options: ClientOptions) -> Result<Client, ConnectError> {
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
    Client::over(client_end, Arc::new(to_server), options).await
}

#[cfg(test)]
mod tests;
