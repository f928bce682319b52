//! Settings of a service: endpoints, limits and timeouts. They are checked when the service is built.

mod builder;
mod error;
mod operations;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::OutboundHook;

use super::client_address::TrustedProxies;
use super::http_sse;
use super::security::Allowed;
use super::server_card::CardRoutes;
use super::session::StoreTiming;
use crate::session::{EventStore, SharedStores};

pub use builder::StreamableHttpBuilder;
pub use error::HttpConfigError;

/// Form of the responses to requests.
///
/// ```
/// use duplexer_http::{Responses, StreamableHttp};
/// use duplexer_server::Server;
///
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let service = StreamableHttp::builder(server).responses(Responses::JsonOnly).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Responses {
    /// One JSON body; an SSE stream from the first notification on, or after [`StreamableHttpBuilder::sse_after`].
    #[default]
    Streaming,
    /// Always one JSON body. Notifications are dropped. Subscriptions are still streams.
    JsonOnly,
}

/// How requests of the handshake era are served.
///
/// ```
/// use duplexer_http::{Handshake, StreamableHttp};
/// use duplexer_server::Server;
///
/// // Any node can serve any request.
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let service = StreamableHttp::builder(server).handshake(Handshake::Stateless).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Handshake {
    /// Each handshake opens a session.
    #[default]
    Sessions,
    /// Each request is served on its own. No state is kept between requests.
    Stateless,
    /// Requests are rejected: only the envelope era is served.
    Disabled,
}

/// Whether scripts of other origins can read the responses.
///
/// ```
/// use duplexer_http::{Cors, StreamableHttp};
/// use duplexer_server::Server;
///
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let service = StreamableHttp::builder(server)
///     .allow_origin("https://app.example.com")
///     .cors(Cors::AllowedOrigins)
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cors {
    /// They cannot.
    #[default]
    Off,
    /// Scripts of allowed origins can.
    AllowedOrigins,
}

/// Whether a balancer sends requests to a node that does not reach its shared stores.
///
/// ```
/// use duplexer_http::{StoreReadiness, StreamableHttp};
/// use duplexer_server::Server;
///
/// // When the store is down for all nodes, requests of the envelope era are still served.
/// let server = Server::builder("calculator", "1.0.0").build()?;
/// let service = StreamableHttp::builder(server).store_readiness(StoreReadiness::Ignored).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreReadiness {
    /// The node is not ready once the store has not responded for some seconds.
    Required,
    /// The node is ready without its store.
    Ignored,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    /// Without a trailing slash. `None`: the router that mounts the service checks the path.
    pub(super) path: Option<String>,
    pub(super) http_sse: http_sse::Paths,
    pub(super) responses: Responses,
    pub(super) handshake: Handshake,
    pub(super) allowed: Allowed,
    pub(super) cors: Cors,
    pub(super) limits: Limits,
    pub(super) timing: Timing,
    pub(super) sessions: SessionSettings,
    pub(super) proxies: TrustedProxies,
    pub(super) request_ids: RequestIds,
    pub(super) card: Option<Arc<CardRoutes>>,
}

/// Whether requests get ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RequestIds {
    #[default]
    Off,
    On,
}

impl Config {
    /// Returns whether the node is only ready with its shared stores.
    pub(super) fn store_readiness(&self) -> StoreReadiness {
        self.sessions.readiness.unwrap_or(match self.handshake {
            Handshake::Sessions => StoreReadiness::Required,
            Handshake::Stateless | Handshake::Disabled => StoreReadiness::Ignored,
        })
    }
}

/// Settings of sessions.
#[derive(Clone)]
pub(super) struct SessionSettings {
    pub(super) max: usize,
    pub(super) max_per_principal: usize,
    pub(super) idle: Option<Duration>,
    /// Idle time of a session whose client has not sent `notifications/initialized`.
    pub(super) half_open: Duration,
    pub(super) calls: CallLimits,
    /// Reconnection time that is sent to clients.
    pub(super) retry: Duration,
    pub(super) stores: StoreTiming,
    pub(super) events: Option<Arc<dyn EventStore>>,
    pub(super) shared: Option<SharedStores>,
    /// `None`: as the era needs it.
    pub(super) readiness: Option<StoreReadiness>,
    pub(super) hook: Option<Arc<dyn OutboundHook>>,
}

/// Limits of the calls of one session, in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallLimits {
    /// Maximum number of calls in flight, and of notification handlers.
    pub(super) in_flight: usize,
    /// Maximum number of requests to the client without a response.
    pub(super) questions: usize,
    /// Time after which a request of the server to the client fails.
    pub(super) client_request: Option<Duration>,
    /// Time after which a call is cancelled if no client reads its stream.
    pub(super) abandoned: Option<Duration>,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            in_flight: 256,
            questions: 256,
            client_request: Some(Duration::from_secs(10 * 60)),
            abandoned: Some(Duration::from_secs(5 * 60)),
        }
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            max: 10_000,
            max_per_principal: 1000,
            idle: Some(Duration::from_secs(30 * 60)),
            half_open: Duration::from_secs(60),
            calls: CallLimits::default(),
            retry: Duration::from_secs(1),
            stores: StoreTiming::default(),
            events: None,
            shared: None,
            readiness: None,
            hook: None,
        }
    }
}

impl fmt::Debug for SessionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSettings")
            .field("max", &self.max)
            .field("max_per_principal", &self.max_per_principal)
            .field("idle", &self.idle)
            .field("half_open", &self.half_open)
            .field("calls", &self.calls)
            .field("retry", &self.retry)
            .field("stores", &self.stores)
            .field("events", &self.events.is_some())
            .field("shared", &self.shared)
            .field("readiness", &self.readiness)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) body: usize,
    pub(super) requests: usize,
    pub(super) requests_per_principal: usize,
    pub(super) subscriptions: usize,
    pub(super) subscriptions_per_principal: usize,
    /// Maximum number of requests of one batch that run at the same time.
    pub(super) batch_requests: usize,
    /// Maximum bytes of the responses of one batch.
    pub(super) batch_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 * 1024 * 1024,
            requests: 8192,
            requests_per_principal: 1024,
            subscriptions: 1024,
            subscriptions_per_principal: 128,
            batch_requests: 8,
            batch_bytes: 16 * 1024 * 1024,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// For the whole body of a request.
    pub(super) body: Duration,
    /// Time after which a pending response becomes a stream.
    pub(super) sse_after: Duration,
    /// Interval of keep-alive comments on a stream.
    pub(super) keep_alive: Duration,
    /// Time after which an unread stream ends.
    pub(super) unread: Duration,
    /// Time for which a service that shuts down still serves new requests.
    pub(super) shutdown_notice: Duration,
    /// Time for requests in flight to finish after that.
    pub(super) shutdown_grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            body: seconds(30),
            sse_after: seconds(15),
            keep_alive: seconds(15),
            unread: seconds(60),
            shutdown_notice: Duration::ZERO,
            shutdown_grace: seconds(10),
        }
    }
}
