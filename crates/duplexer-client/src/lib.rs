//! The client: a session with one server, of either era, over any transport or in-process.
//!
//! [`Client::connect`] opens the session (`negotiate`), and from then on nothing asks which era it is: what
//! every request carries and how results are read was settled there (`session`). `call` is one request with
//! its options, `requests` the protocol's own requests by name; `handler` and `inbound` are what the server
//! can ask and tell, `run` owns the task that serves the connection. Knows nothing of servers.

mod call;
mod connection_task;
mod error;
mod handler;
mod inbound;
mod input;
mod negotiate;
mod options;
mod requests;
mod session;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::{Direction, Method, Notification, Request};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ForRevision, Shape};

use self::connection_task::ConnectionTask;
use self::handler::Callbacks;
use self::inbound::ClientInbound;
use self::session::Session;
use self::subscriptions::Routes;
use duplexer_core::dispatch::{
    Cancellation, Dispatch, JsonRpcDispatcher, Outbound, OutboundRequest, RunError,
};
use duplexer_core::error::CallError;
use duplexer_core::transport::Transport;

pub use call::{Call, CallResponse, CompletedCall, ResultValidator};
pub use error::{ClientError, ConnectError, InvalidPinnedVersion};
pub use handler::ServerNotification;
pub use options::{ClientOptions, Negotiation, PinnedVersion};
pub use subscriptions::{Change, ListenStream, SubscriptionLost};

/// A session with a server. Clones share it; it ends with [`Client::close`] or with the last clone.
///
/// A request is made by awaiting what its method gives out. Dropping that future tells the server to stop.
///
/// ```no_run
/// # use std::time::Duration;
/// # use duplexer_client::{Client, ClientError, ClientOptions};
/// # use duplexer_types::tool::CallToolParams;
/// # async fn example(client: Client) -> Result<(), ClientError> {
/// let tools = client.all_tools().await?;
/// let result = client.call_tool(CallToolParams::new("echo")).timeout(Duration::from_secs(5)).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    peer: Arc<dyn Outbound>,
    session: Session,
    timeout: Option<Duration>,
    validator: Option<Arc<dyn ResultValidator>>,
    callbacks: Callbacks,
    routes: Arc<Routes>,
    run: ConnectionTask,
}

impl Client {
    /// Opens a session over `transport`.
    pub async fn connect(transport: impl Transport, options: ClientOptions) -> Result<Self, ConnectError> {
        let (dispatcher, peer) = JsonRpcDispatcher::with_options(transport, options.dispatch.clone());
        let stop = peer.clone();
        Self::open(options, Arc::new(peer), |inbound| {
            ConnectionTask::start(async move { dispatcher.run(inbound).await }, move || stop.stop())
        })
        .await
    }

    /// Opens a session through a dispatcher of any kind and the way to its peer: in-process, for example.
    pub async fn over(
        dispatcher: impl Dispatch,
        peer: Arc<dyn Outbound>,
        options: ClientOptions,
    ) -> Result<Self, ConnectError> {
        let cut = Arc::new(Cancellation::new());
        let stop = Arc::clone(&cut);
        Self::open(options, peer, |inbound| {
            let run = async move {
                tokio::select! {
                    ended = dispatcher.run(inbound) => ended,
                    () = cut.raised() => Ok(()),
                }
            };
            ConnectionTask::start(run, move || stop.raise())
        })
        .await
    }

    async fn open<R: Future<Output = ConnectionTask>>(
        options: ClientOptions,
        peer: Arc<dyn Outbound>,
        start: impl FnOnce(Arc<ClientInbound>) -> R,
    ) -> Result<Self, ConnectError> {
        let routes = Arc::new(Routes::default());
        let inbound = Arc::new(ClientInbound::new(options.callbacks.clone(), Arc::clone(&routes)));
        let run = start(Arc::clone(&inbound)).await;
        let session = match negotiate::negotiate(&*peer, &options, &inbound).await {
            Ok(session) => session,
            Err(error) => {
                // In order, because the server may remember a session that nobody will use.
                let _ = run.end().await;
                return Err(error);
            }
        };
        let ClientOptions { timeout, validator, callbacks, .. } = options;
        Ok(Self(Arc::new(Inner { peer, session, timeout, validator, callbacks, routes, run })))
    }

    /// Ends the session in order: what is queued is written, what the server still asks is drained.
    ///
    /// Says why the connection ended, if it broke. Requests under way fail with [`CallError::Closed`].
    pub async fn close(&self) -> Result<(), RunError> {
        self.0.run.end().await
    }

    /// Until the connection is gone, whoever has ended it. For those who only listen.
    pub async fn closed(&self) {
        self.0.run.ended().await;
    }

    /// The revision that is spoken.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.0.session.version
    }

    /// The era of that revision.
    pub fn era(&self) -> Era {
        self.0.session.version.era()
    }

    /// Who the server says it is. In the envelope era it may say nothing.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.session.server_info.as_ref()
    }

    /// What the server can do.
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.0.session.capabilities
    }

    /// What the server wants the model to know.
    pub fn instructions(&self) -> Option<&str> {
        self.0.session.instructions.as_deref()
    }

    /// Any request of the protocol.
    pub fn request<M: Request>(&self, params: M::Params) -> Call<M> {
        Call::new(self.clone(), params)
    }

    /// A request the protocol does not describe. It gets what every request of the session carries; its
    /// result is given out as it came.
    pub async fn request_custom(&self, request: OutboundRequest) -> Result<Json, ClientError> {
        if let Some(method) = Method::parse(&request.method) {
            self.check_available(method)?;
        }
        let mut request = self.0.session.envelope.attach_to_custom(request);
        request.options.timeout = request.options.timeout.or(self.0.timeout);
        let text = self.0.peer.request(request).await?;
        Json::parse(&text).map_err(|error| CallError::Unexpected(error).into())
    }

    /// Tells the server something.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<(), ClientError> {
        self.check_available(N::METHOD)?;
        let params = Json::encode(&ForRevision(&params, Shape::new(self.0.session.version)));
        let params = params.map_err(CallError::Encode)?;
        self.0.peer.notify(N::METHOD.name(), Some(&params)).await;
        Ok(())
    }

    /// What the negotiated revision does not have is not sent.
    fn check_available(&self, method: Method) -> Result<(), ClientError> {
        let version = self.0.session.version;
        if method.exists(Direction::ClientToServer, version) {
            return Ok(());
        }
        Err(ClientError::Unavailable { method, version })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.protocol_version())
            .field("server", &self.server_info().map(|info| &info.name))
            .finish_non_exhaustive()
    }
}
