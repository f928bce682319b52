//! Server processes that are started again when they end by themselves.
//!
//! Requests that were in flight fail, because they may have run. In the handshake era the new process knows no session: the
//! transport refuses requests as a server without the session would, and the client opens a new one.

mod link;

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use duplexer_core::transport::child::ChildCommand;
use duplexer_core::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};

use super::{Client, ClientBuilder, ConnectError, Endpoint};
use link::Link;

/// How often a server process is started again, and after which delay.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use duplexer_client::{Client, RestartPolicy};
/// use duplexer_core::transport::child::ChildCommand;
///
/// let command = RestartPolicy::new(5).command(|| ChildCommand::new("my-server").args(["--stdio"]));
/// let client = Client::builder("my-agent", "1.0").connect(command).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RestartPolicy {
    pub(super) restarts: u32,
    pub(super) first_delay: Duration,
    pub(super) max_delay: Duration,
}

impl RestartPolicy {
    /// Creates a policy of at most this many restarts in a row, after half a second, then twice as long each time, up to 30
    /// seconds. A process that ran for a minute starts a new row.
    pub fn new(restarts: u32) -> Self {
        Self { restarts, first_delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }

    /// Sets the delay before the first restart, and the maximum delay.
    #[must_use]
    pub fn delay(mut self, first: Duration, max: Duration) -> Self {
        (self.first_delay, self.max_delay) = (first, max);
        self
    }

    /// Returns an endpoint whose process is started by `command`, and again by this policy.
    pub fn command(self, command: impl Fn() -> ChildCommand + Send + Sync + 'static) -> RestartingCommand {
        RestartingCommand { policy: self, command: Box::new(command) }
    }

    /// Returns the delay before a restart, or `None` if there have been enough.
    pub(super) fn delay_before(&self, restart: u32) -> Option<Duration> {
        let delay = self.first_delay.saturating_mul(2_u32.saturating_pow(restart));
        (restart < self.restarts).then(|| delay.min(self.max_delay))
    }
}

/// Server process that is started again by a [`RestartPolicy`]. The session owns it: [`Client::close`] ends both.
pub struct RestartingCommand {
    policy: RestartPolicy,
    command: Box<dyn Fn() -> ChildCommand + Send + Sync>,
}

impl fmt::Debug for RestartingCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestartingCommand").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Why a session with a process could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartProcessError {
    /// The process could not be started.
    #[error(transparent)]
    Start(#[from] TransportError),
    /// The session could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl Endpoint for RestartingCommand {
    type Error = StartProcessError;

    async fn connect(self, builder: ClientBuilder) -> Result<Client, StartProcessError> {
        let link = Arc::new(Mutex::new(Link::start(self.policy, self.command)?));
        let client = builder.connect_transport(Restarting(Arc::clone(&link))).await?;
        client.on_close(move || async move {
            let child = lock(&link).close();
            if let Some(child) = child
                && let Err(error) = child.shutdown().await
            {
                tracing::debug!(%error, "a server process did not end");
            }
        });
        Ok(client)
    }
}

/// Transport over the current process.
struct Restarting(Arc<Mutex<Link>>);

impl Transport for Restarting {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        (Box::new(Reader(Arc::clone(&self.0))), Box::new(Writer(self.0)))
    }

    fn has_headers(&self) -> bool {
        false
    }
}

struct Reader(Arc<Mutex<Link>>);

impl FrameReader for Reader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        lock(&self.0).poll_next(cx).map(|next| next.map(Ok))
    }
}

struct Writer(Arc<Mutex<Link>>);

impl FrameWriter for Writer {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        lock(&self.0).poll_write(cx, frames)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        lock(&self.0).poll_close(cx)
    }
}
