//! A remote server as a local one.

use std::sync::Arc;
use std::time::Duration;

use duplexer_client::Client;
use duplexer_server::{BuildError, Server};

use crate::connect::Connect;
use crate::forward::Forward;
use crate::pool::Pool;

/// Interval in which sessions that are no longer used are looked for.
const REAP_INTERVAL: Duration = Duration::from_secs(15);

/// A server at the other end of a session, offered as a server of this process.
///
/// Clients of both eras can use it, whatever era the remote server has. A session of its own is opened for every client, so
/// that the server can ask that client; it is opened again when it is lost. Clients of the envelope era, which have no
/// connection, are distinguished by their principal, their identity and their capabilities.
///
/// ```
/// use duplexer_client::{Client, ClientBuilder};
/// use duplexer_proxy::Remote;
/// use duplexer::client::prelude::*;
/// # /// Adds.
/// # #[duplexer::tool]
/// # async fn add(a: i64, b: i64) -> i64 { a + b }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// // In practice a URL or a program: `move |builder| builder.open("https://mcp.example.com/mcp")`.
/// # let far = duplexer::Server::builder("calculator", "1").tool(add).build()?;
/// let server = Remote::new(move |builder: ClientBuilder| builder.connect(far.in_process())).server()?;
/// let client = Client::builder("my-agent", "1").connect(server.in_process()).await?;
/// let sum = client.call_tool("add", serde_json::json!({"a": 1, "b": 2})).text().await?;
/// assert_eq!(sum, "3");
/// # client.close().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a remote server is offered by `server` or `part`"]
pub struct Remote {
    pub(crate) reach: Reach,
}

/// How the remote server is reached, and the limits of sessions with it.
pub(crate) struct Reach {
    connect: Box<dyn Connect>,
    pub(crate) sessions: Sessions,
    pub(crate) limits: Limits,
}

/// Limits of sessions with the remote server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum time of a call.
    pub(crate) call: Duration,
    /// Maximum time in which a session opens.
    pub(crate) opening: Duration,
    /// Time after which the session of a client without a connection is closed.
    pub(crate) idle: Duration,
    /// Maximum number of clients without a connection that have a session.
    pub(crate) clients: usize,
}

/// Who shares a session with the remote server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// Every client has its own.
    #[default]
    PerClient,
    /// All clients share one. A server of the handshake era cannot ask them then (sampling, elicitation, roots), because it
    /// does not say whom.
    Shared,
}

impl Remote {
    /// Creates a remote server from the function that opens a session with it.
    pub fn new(connect: impl Connect) -> Self {
        let limits = Limits {
            call: Duration::from_secs(60 * 60),
            opening: Duration::from_secs(30),
            idle: Duration::from_secs(5 * 60),
            clients: 256,
        };
        Self { reach: Reach { connect: Box::new(connect), sessions: Sessions::default(), limits } }
    }

    /// Sets who shares a session. Default: [`Sessions::PerClient`].
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.reach.sessions = sessions;
        self
    }

    /// Sets the maximum time of a call: one hour by default.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.reach.limits.call = timeout;
        self
    }

    /// Sets the maximum time in which a session opens: 30 seconds by default.
    pub fn open_timeout(mut self, timeout: Duration) -> Self {
        self.reach.limits.opening = timeout;
        self
    }

    /// Sets the time after which the session of a client is closed that has no connection: 5 minutes by default.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.reach.limits.idle = timeout;
        self
    }

    /// Sets the maximum number of clients without a connection that have a session: 256 by default.
    pub fn max_clients(mut self, clients: usize) -> Self {
        self.reach.limits.clients = clients;
        self
    }

    /// Returns the remote server as a server: name, capabilities and everything else are those of the remote server.
    ///
    /// # Errors
    ///
    /// Fails like [`ServerBuilder::build`](duplexer_server::ServerBuilder::build).
    pub fn server(self) -> Result<Server, BuildError> {
        let pool = Arc::new(Pool::new(Arc::new(self.reach)));
        let (headers, ending) = (Arc::clone(&pool), Arc::clone(&pool));
        Server::builder("duplexer-proxy", env!("CARGO_PKG_VERSION"))
            .tool_headers(move |tool| headers.tool_headers().of(tool))
            .middleware(Forward::new(Arc::clone(&pool)))
            .while_running(move |_| reap(Arc::clone(&pool)))
            .on_shutdown(move |_| {
                let pool = Arc::clone(&ending);
                async move { pool.close().await }
            })
            .build()
    }
}

impl Reach {
    /// Opens a session.
    pub(crate) async fn connect(
        &self,
        builder: duplexer_client::ClientBuilder,
    ) -> Result<Client, duplexer_core::error::BoxError> {
        let opening = self.connect.connect(builder.handshake_timeout(self.limits.opening).no_timeout());
        // A program that starts slowly has not begun the handshake yet.
        match tokio::time::timeout(self.limits.opening.saturating_mul(2), opening).await {
            Ok(opened) => opened,
            Err(_) => Err(format!("no session within {} s", self.limits.opening.as_secs() * 2).into()),
        }
    }
}

/// Closes the sessions of clients that have not used theirs for a while.
pub(crate) async fn reap(pool: Arc<Pool>) {
    loop {
        tokio::time::sleep(REAP_INTERVAL).await;
        pool.reap().await;
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("sessions", &self.reach.sessions).finish_non_exhaustive()
    }
}
