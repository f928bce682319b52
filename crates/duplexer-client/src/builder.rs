//! Configuration of a client: identity, negotiation, callbacks, and the two ways to connect.
//!
//! The builder checks nothing while it is filled. Its faults are reported by `connect`.

mod callbacks;
mod negotiation;
mod results;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::icon::Icon;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::version::ProtocolVersion;

use super::cache::{Cache, SessionCache};
use super::call::{ResultValidator, Validator};
use super::connection_task::ConnectionTask;
use super::endpoint::Endpoint;
use super::error::ConnectError;
use super::handler::Callbacks;
use super::inbound::ClientInbound;
use super::list_handlers::ListHandlers;
use super::renewal::Renewal;
use super::resources::Resources;
use super::session::HeaderUse;
use super::subscriptions::Routes;
use super::tasks::KnownTools;
use super::timeouts::Timeouts;
use super::tool_headers::ToolHeaders;
use super::{Client, Inner, negotiate};
use duplexer_core::dispatch::{
    BoxFuture, CallClock, Cancellation, Dispatch, DispatchOptions, JsonRpcDispatcher, Outbound, Peer,
};
use duplexer_core::transport::{FrameDirection, Tap, Transport};

pub use negotiation::{Negotiation, PinnedVersion};

/// Configuration of a [`Client`]. The capabilities that the client declares follow from its callbacks.
///
/// ```
/// use std::time::Duration;
/// use duplexer_client::{Client, Negotiation};
/// use duplexer_types::elicitation::ElicitResult;
/// use duplexer_types::roots::{ListRootsResult, Root};
///
/// let builder = Client::builder("my-agent", "1.0")
///     .timeout(Duration::from_secs(30))
///     .negotiation(Negotiation::Auto)
///     .on_elicitation(async |_| Ok(ElicitResult::decline()))
///     .on_roots(async || Ok(ListRootsResult::new([Root::new("file:///work")])));
/// # let _ = builder;
/// ```
#[derive(Clone)]
#[must_use = "a client is created by `connect`"]
pub struct ClientBuilder {
    pub(super) info: Implementation,
    pub(super) negotiation: Negotiation,
    pub(super) proposed: ProtocolVersion,
    pub(super) timeouts: Timeouts,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) callbacks: Callbacks,
    pub(super) dispatch: DispatchOptions,
    pub(super) headers: HeaderUse,
    validator: Option<Arc<dyn ResultValidator>>,
    max_pages: usize,
    cache: Option<Cache>,
    on_frame: Option<Arc<FrameObserver>>,
    #[cfg(feature = "schema")]
    pub(super) output_validation: super::OutputValidation,
}

/// Function that gets every message on the wire.
type FrameObserver = dyn Fn(FrameDirection, &str) + Send + Sync;

/// Maximum number of pages of a list, unless the builder sets another.
const MAX_PAGES: usize = 1000;

impl ClientBuilder {
    pub(super) fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, version),
            negotiation: Negotiation::default(),
            proposed: negotiate::PROPOSED,
            timeouts: Timeouts::default(),
            log_level: None,
            callbacks: Callbacks::default(),
            dispatch: DispatchOptions::default(),
            headers: HeaderUse::Sent,
            validator: None,
            max_pages: MAX_PAGES,
            cache: None,
            on_frame: None,
            #[cfg(feature = "schema")]
            output_validation: super::OutputValidation::default(),
        }
    }

    /// Opens a session with `endpoint`, usually a transport.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid, if the server refuses the session or does not answer in time, and if
    /// there is no common protocol revision. The connection is closed in all these cases.
    pub async fn connect<E: Endpoint>(self, endpoint: E) -> Result<Client, E::Error> {
        endpoint.connect(self).await
    }

    pub(super) async fn connect_transport(
        mut self,
        transport: impl Transport,
    ) -> Result<Client, ConnectError> {
        self.check()?;
        self.timeouts.clock = transport.clock().unwrap_or_default();
        self.headers = if transport.has_headers() { HeaderUse::Sent } else { HeaderUse::Unsupported };
        let options = self.dispatch.clone();
        let (dispatcher, peer) = match self.on_frame.take() {
            Some(show) => {
                let shown = Tap::new(transport, move |direction, frame| show(direction, frame));
                JsonRpcDispatcher::with_options(shown, options)
            }
            None => JsonRpcDispatcher::with_options(transport, options),
        };
        self.open_stream(dispatcher, peer).await
    }

    /// Boxed here, because a future is compiled once more for every transport and in every crate that awaits it.
    fn open_stream(
        self,
        dispatcher: JsonRpcDispatcher,
        peer: Peer,
    ) -> BoxFuture<'static, Result<Client, ConnectError>> {
        let stop = peer.clone();
        Box::pin(self.open(Arc::new(peer), |inbound| {
            ConnectionTask::start(async move { dispatcher.run(inbound).await }, move || stop.stop())
        }))
    }

    /// Opens a session through any dispatcher and its peer, for example an in-process pair.
    ///
    /// [`ClientBuilder::dispatch`] has no effect on such a session.
    ///
    /// # Errors
    ///
    /// Fails under the same conditions as [`ClientBuilder::connect`].
    pub async fn connect_dispatcher(
        mut self,
        dispatcher: impl Dispatch,
        peer: Arc<dyn Outbound>,
    ) -> Result<Client, ConnectError> {
        self.check()?;
        self.timeouts.clock = CallClock::new();
        let stopped = Arc::new(Cancellation::new());
        let stop = Arc::clone(&stopped);
        self.open(peer, |inbound| {
            let run = async move {
                tokio::select! {
                    ended = dispatcher.run(inbound) => ended,
                    () = stopped.cancelled() => Ok(()),
                }
            };
            ConnectionTask::start(run, move || stop.cancel())
        })
        .await
    }

    /// Returns the settings of a second attempt over HTTP+SSE (2024-11-05), if `refusal` of the first one, over streamable
    /// HTTP, is how a server refuses that has no other transport: 400, 404 or 405 without an error of the protocol.
    ///
    /// For `Client::open`.
    #[doc(hidden)]
    pub fn for_http_sse(&self, refusal: &ConnectError) -> Option<Self> {
        let is_pinned = matches!(self.negotiation, Negotiation::Pinned(_));
        let is_unknown = refusal.refusal().is_some_and(|refusal| matches!(refusal.status, 400 | 404 | 405));
        (is_unknown && !is_pinned).then(|| self.clone().negotiation(Negotiation::Handshake))
    }

    /// Reports faults of the configuration before anything is sent.
    fn check(&self) -> Result<(), ConnectError> {
        if let Negotiation::Pinned(pinned) = &self.negotiation {
            pinned.version()?;
        }
        let extensions = &self.callbacks.declared.extensions;
        match extensions.iter().find(|declared| !declared.settings.is_object()) {
            Some(declared) => Err(ConnectError::InvalidExtension(declared.id.clone())),
            None => Ok(()),
        }
    }

    async fn open<T: Future<Output = ConnectionTask>>(
        self,
        peer: Arc<dyn Outbound>,
        start: impl FnOnce(Arc<ClientInbound>) -> T,
    ) -> Result<Client, ConnectError> {
        let routes = Arc::new(Routes::default());
        let cache = SessionCache::new(self.cache.clone().unwrap_or_default());
        let resources = Arc::new(Resources::new(cache));
        let clock = self.timeouts.clock.clone();
        let inbound = Arc::new(ClientInbound::new(
            self.callbacks.clone(),
            Arc::clone(&routes),
            Arc::clone(&resources),
            clock,
        ));
        let task = start(Arc::clone(&inbound)).await;
        // Boxed: it is large, and the future of `connect` would be.
        let session = match Box::pin(negotiate::negotiate(&*peer, &self, &inbound)).await {
            Ok(session) => session,
            Err(error) => {
                // An orderly end, because the server may hold a session that will not be used.
                let _ = task.end().await;
                return Err(error);
            }
        };
        #[cfg(feature = "schema")]
        let schemas =
            super::output_schemas::OutputSchemas::of(self.output_validation).map(Validator::OutputSchemas);
        #[cfg(not(feature = "schema"))]
        let schemas = None;
        let Self { timeouts, validator, callbacks, max_pages, .. } = self;
        let inner = Inner {
            peer,
            session,
            timeouts,
            renewal: Renewal::default(),
            tool_headers: ToolHeaders::default(),
            known_tools: KnownTools::default(),
            max_pages,
            validator: validator.map(Validator::Custom).or(schemas),
            callbacks,
            routes,
            resources,
            task,
        };
        let client = Client(Arc::new(inner));
        ListHandlers::start(&client);
        Ok(client)
    }
}

/// Identity and requests.
impl ClientBuilder {
    /// Sets the display name of the client.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets the description of the client.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of the client's website.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Sets the icons of the client.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.info.icons = Some(icons.into());
        self
    }

    /// Sets how the protocol revision is chosen. Default: [`Negotiation::Auto`].
    pub fn negotiation(mut self, negotiation: Negotiation) -> Self {
        self.negotiation = negotiation;
        self
    }

    /// Sets the maximum time of a request without progress: 5 minutes by default.
    ///
    /// Every progress notification restarts it, for calls that request progress ([`Call::on_progress`]). It does not run
    /// while a callback answers a question of the server. Subscriptions and streams of changes have no timeout.
    ///
    /// [`Call::on_progress`]: super::Call::on_progress
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.idle = timeout;
        self
    }

    /// Sets the maximum time of a request, whatever progress it reports: one hour by default.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.total = timeout;
        self
    }

    /// Sets the maximum time of [`ClientBuilder::connect`]: 30 seconds by default, and not more than
    /// [`ClientBuilder::timeout`].
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.handshake = Some(timeout);
        self
    }

    /// Waits for responses indefinitely. The limit of [`ClientBuilder::connect`] stays.
    pub fn no_timeout(self) -> Self {
        self.timeout(Duration::MAX).total_timeout(Duration::MAX)
    }

    /// Sets the default minimum level of log messages that requests carry (envelope era).
    ///
    /// In the handshake era see [`Client::set_log_level`].
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Sets limits and hooks of the dispatcher. They apply to sessions over a transport.
    pub fn dispatch(mut self, options: DispatchOptions) -> Self {
        self.dispatch = options;
        self
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("info", &self.info)
            .field("negotiation", &self.negotiation)
            .finish_non_exhaustive()
    }
}
