//! Drivers: the entry points for transports. They choose the era of a connection once, with its first request.

mod era_router;
mod handshake;
mod stdio;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use duplexer_types::version::ProtocolVersion;

use self::era_router::EraRouter;
use self::handshake::HandshakeInbound;
use crate::kernel::connection::{CLOSE_BUDGET, Caller, Connection};
use crate::kernel::envelope;
use crate::kernel::principal::Principal;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{
    BoxFuture, CallContext, Dispatch, DispatchOptions, JsonRpcDispatcher, Message, NoChannel, Outbound, Peer,
    RunError,
};
use duplexer_core::error::McpError;
use duplexer_core::transport::Transport;

pub use crate::kernel::envelope::{HeaderLookup, check_param_headers, classify, is_enveloped};
pub use crate::kernel::lifecycle::negotiate;
pub use crate::kernel::runner::{PendingResponse, ServerRunner};
pub use stdio::{StdioError, run_stdio, run_stdio_with, serve_stdio, serve_stdio_with};

/// Serves a duplex stream in either era. The first request decides, for the whole connection.
///
/// Returns when the stream has ended and every accepted request is answered. The caller owns the lifespans.
///
/// On a runtime with a single thread, a handler that blocks or computes without awaiting delays everything else on the
/// stream: a response that is ready waits while the request that was read with it computes, and neither cancellations
/// nor the end of the stream are noticed meanwhile. The same happens on any runtime when such handlers occupy all of its
/// threads. [Blocking tools](crate::tool::Tool::blocking) run on threads of their own.
///
/// # Errors
///
/// Fails if the transport fails.
pub async fn serve(running: &RunningServer, transport: impl Transport) -> Result<(), RunError> {
    StreamServer::new(running, transport, DispatchOptions::default()).0.run().await
}

/// A stream that can be served in either era, with options and a handle to stop it.
///
/// ```
/// use duplexer::client::Client;
/// use duplexer::dispatch::DispatchOptions;
/// use duplexer::server::driver::StreamServer;
/// use duplexer::transport::memory;
/// use duplexer::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let running = Server::builder("calculator", "1.0.0").build()?.start().await?;
/// let (ours, theirs) = memory::pair();
/// let (stream, peer) = StreamServer::new(&running, theirs, DispatchOptions::default());
/// let serving = tokio::spawn(stream.run());
///
/// Client::builder("program", "1").connect(ours).await?.close().await?;
/// serving.await??;
/// running.shutdown().await;
/// # drop(peer);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct StreamServer {
    dispatcher: JsonRpcDispatcher,
    router: EraRouter,
}

impl StreamServer {
    /// Creates the server of a stream, and the handle of its peer.
    pub fn new(running: &RunningServer, transport: impl Transport, options: DispatchOptions) -> (Self, Peer) {
        let (dispatcher, peer) = JsonRpcDispatcher::with_options(transport, options);
        let router = EraRouter::new(running.clone(), Arc::new(peer.clone()));
        (Self { dispatcher, router }, peer)
    }

    /// Sets the caller, as the transport knows it. A message whose transport context names a [`Principal`] as its
    /// sender is handled with that principal.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.router = self.router.with_caller(caller);
        self
    }

    /// Serves the stream to its end, then runs the close hooks of the connection.
    ///
    /// # Errors
    ///
    /// Fails if the transport fails.
    // Boxed here, because a future is compiled once more in every crate that awaits it.
    pub fn run(self) -> BoxFuture<'static, Result<(), RunError>> {
        self.run_and_close_within(|| CLOSE_BUDGET)
    }

    /// Evaluates the budget of the close hooks when they start.
    fn run_and_close_within<'a>(
        self,
        budget: impl FnOnce() -> Duration + Send + 'a,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(run(self.dispatcher, Arc::new(self.router), budget))
    }
}

/// Serves any dispatcher in either era. `peer` is the channel to its client.
///
/// # Errors
///
/// Fails if the dispatcher fails.
pub async fn serve_dispatcher(
    running: &RunningServer,
    dispatcher: impl Dispatch,
    peer: Arc<dyn Outbound>,
) -> Result<(), RunError> {
    run(dispatcher, Arc::new(EraRouter::new(running.clone(), peer)), || CLOSE_BUDGET).await
}

async fn run(
    dispatcher: impl Dispatch,
    router: Arc<EraRouter>,
    close_budget: impl FnOnce() -> Duration,
) -> Result<(), RunError> {
    let ended = dispatcher.run(Arc::clone(&router)).await;
    router.close(close_budget()).await;
    ended
}

/// Serves a stream in the handshake era only.
///
/// # Errors
///
/// Fails if the transport fails.
pub async fn serve_handshake(running: &RunningServer, transport: impl Transport) -> Result<(), RunError> {
    let (dispatcher, peer) = JsonRpcDispatcher::new(transport);
    let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::new(peer));
    serve_connection(running, dispatcher, Arc::new(connection)).await
}

/// Serves a prepared connection over any dispatcher, then closes it.
///
/// # Errors
///
/// Fails if the dispatcher fails.
pub async fn serve_connection(
    running: &RunningServer,
    dispatcher: impl Dispatch,
    connection: Arc<Connection>,
) -> Result<(), RunError> {
    let runner = ServerRunner::new(running.clone(), Arc::clone(&connection));
    let ended = dispatcher.run(Arc::new(HandshakeInbound::new(runner))).await;
    connection.close().await;
    ended
}

/// Serves one request of the envelope era: validates the envelope, creates a connection for this request, runs the
/// kernel, closes the connection.
///
/// The caller polls the future; dropping it drops the handler. With `headers` the checks compare them too.
///
/// # Errors
///
/// Returns the error response.
pub async fn serve_envelope(
    running: &RunningServer,
    cx: CallContext,
    message: impl Into<Arc<Message>>,
    headers: Option<HeaderLookup<'_>>,
    caller: Caller,
) -> Result<PendingResponse, McpError> {
    static NOWHERE: LazyLock<Arc<dyn Outbound>> = LazyLock::new(|| Arc::new(NoChannel));
    let message = message.into();
    let headers = headers.map(|lookup| (lookup, running));
    let connection = envelope::open(&message, headers, Arc::clone(&NOWHERE), caller)?;
    serve_one(running, connection, cx, message).await
}

/// Serves one request on a connection that is open from the start and closes with the request.
///
/// # Errors
///
/// Returns the error response.
pub async fn serve_one(
    running: &RunningServer,
    connection: Arc<Connection>,
    cx: CallContext,
    message: impl Into<Arc<Message>>,
) -> Result<PendingResponse, McpError> {
    let closing = CloseOnDrop(running, &connection);
    let runner = ServerRunner::new(running.clone(), Arc::clone(&connection));
    let answer = runner.into_request(cx, message.into()).await;
    if connection.has_hooks() {
        // Rare; boxed to keep the future of every request small.
        Box::pin(connection.close()).await;
    }
    drop(closing);
    answer
}

/// Serves one message on behalf of `principal` on a connection that stays open. Returns a response for a request, and
/// `None` for a notification.
pub async fn serve_on(
    running: &RunningServer,
    connection: &Arc<Connection>,
    principal: Option<Arc<Principal>>,
    cx: CallContext,
    message: impl Into<Arc<Message>>,
) -> Option<Result<PendingResponse, McpError>> {
    let runner = ServerRunner::new(running.clone(), Arc::clone(connection)).on_behalf_of(principal);
    if cx.id.is_some() {
        return Some(runner.into_request(cx, message.into()).await);
    }
    runner.notification(cx, message).await;
    None
}

/// Runs the close hooks of a request that is dropped before it ends, in a tracked task of the server.
struct CloseOnDrop<'a>(&'a RunningServer, &'a Arc<Connection>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if self.1.has_hooks() {
            let connection = Arc::clone(self.1);
            self.0.spawn_tracked(async move { connection.close().await });
        }
    }
}
