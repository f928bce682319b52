//! The state of one connection: the facts about its client, and the channel to the client outside a request. Facts are
//! written once: by the handshake, or from the envelope of a single request. A connection of the envelope era lives for
//! one request.

mod client;
mod close;
mod snapshot;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use duplexer_types::logging::LoggingLevel;
use duplexer_types::version::{Era, ProtocolVersion};

use crate::features::subscriptions::ChangeDelivery;
use crate::kernel::observer::{Observers, OpenConnection};
use crate::kernel::principal::Principal;
use duplexer_core::dispatch::{Message, NoChannel, Outbound, lock};
use duplexer_core::error::McpError;

pub use client::{ClientCapability, ClientProfile};
pub(crate) use close::CloseStack;
pub(crate) use close::{CLOSE_BUDGET, contained};
pub use snapshot::ConnectionSnapshot;

/// One connection to a client.
///
/// ```
/// use duplexer::{Context, Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// /// Counts the calls of one client.
/// async fn count(cx: Context) -> u32 {
///     let connection = cx.connection();
///     let calls = connection.state::<u32>().map_or(1, |calls| *calls + 1);
///     connection.set_state(calls);
///     calls
/// }
///
/// let server = Server::builder("counter", "1.0.0").tool(Tool::new("count", count)).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # assert_eq!(client.call_tool("count", ()).text().await?, "1");
/// # Ok(())
/// # }
/// ```
pub struct Connection {
    opening: Opening,
    initialized: AtomicBool,
    /// Whether the server declares that it logs to clients. Set when a server serves the connection.
    logging: AtomicBool,
    log_level: AtomicU8,
    outbound: Arc<dyn Outbound>,
    caller: Caller,
    /// At most one value per type.
    state: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    on_close: CloseStack,
    /// Set by the handshake of a server with observers.
    open: OnceLock<OpenConnection>,
}

/// The source of the facts about the client.
enum Opening {
    /// From `initialize`. Before it, the version is assumed.
    Handshake { assumed: ProtocolVersion, agreed: OnceLock<Negotiated> },
    /// Known beforehand: a request without a session in the handshake era.
    Ready { version: ProtocolVersion, client: ClientProfile },
    /// From the envelope of the single request that this connection serves; decoded on demand.
    Envelope {
        version: ProtocolVersion,
        message: Arc<Message>,
        client: OnceLock<Arc<ClientProfile>>,
        /// Why the envelope's facts about the client are malformed, if they are.
        malformed: Option<serde_json::Error>,
    },
}

/// The caller, as the transport knows it.
///
/// ```
/// use std::sync::Arc;
///
/// use duplexer::server::{Caller, Principal};
///
/// let mut caller = Caller::default();
/// caller.principal = Some(Arc::new(Principal::new("ada")));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Caller {
    /// The id of the transport's session, if it has one.
    pub session_id: Option<Arc<str>>,
    /// The principal, if an authorization layer has established one.
    pub principal: Option<Arc<Principal>>,
    /// How changes get to the client.
    pub changes: ChangeDelivery,
}

/// The outcome of `initialize`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Negotiated {
    /// The negotiated revision.
    pub version: ProtocolVersion,
    /// The identity and the capabilities of the client.
    pub client: ClientProfile,
}

impl Negotiated {
    /// Returns an outcome with this version and this client.
    pub fn new(version: ProtocolVersion, client: ClientProfile) -> Self {
        Self { version, client }
    }
}

impl Connection {
    /// Creates a connection that expects a handshake. Until then it uses `assumed`.
    pub fn handshake(assumed: ProtocolVersion, outbound: Arc<dyn Outbound>) -> Self {
        Self::new(Opening::Handshake { assumed, agreed: OnceLock::new() }, outbound)
    }

    /// Creates a connection that needs no handshake and has no channel to the client outside a request.
    pub fn ready(version: ProtocolVersion, client: ClientProfile) -> Self {
        Self::new(Opening::Ready { version, client }, Arc::new(NoChannel))
    }

    /// Creates the connection of one request of the envelope era.
    pub(crate) fn envelope(
        version: ProtocolVersion,
        message: Arc<Message>,
        malformed: Option<serde_json::Error>,
        outbound: Arc<dyn Outbound>,
        caller: Caller,
    ) -> Self {
        let opening = Opening::Envelope { version, message, client: OnceLock::new(), malformed };
        Self { caller, ..Self::new(opening, outbound) }
    }

    /// Fails if the envelope's facts about the client are malformed.
    pub(crate) fn check_envelope(&self) -> Result<(), McpError> {
        match &self.opening {
            Opening::Envelope { malformed: Some(error), .. } => {
                Err(McpError::InvalidParams(error.to_string().into()))
            }
            _ => Ok(()),
        }
    }

    /// Creates the connection of a notification of the envelope era, which does not identify its client.
    pub(crate) fn anonymous(version: ProtocolVersion, outbound: Arc<dyn Outbound>) -> Self {
        Self::new(Opening::Ready { version, client: ClientProfile::UNKNOWN }, outbound)
    }

    fn new(opening: Opening, outbound: Arc<dyn Outbound>) -> Self {
        Self {
            opening,
            initialized: AtomicBool::new(false),
            logging: AtomicBool::new(false),
            log_level: AtomicU8::new(LoggingLevel::Debug as u8),
            outbound,
            caller: Caller::default(),
            state: Mutex::default(),
            on_close: CloseStack::default(),
            open: OnceLock::new(),
        }
    }

    /// Sets the caller, as the transport knows it.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// Returns the revision in use.
    pub fn version(&self) -> ProtocolVersion {
        match &self.opening {
            Opening::Handshake { assumed, agreed } => agreed.get().map_or(*assumed, |agreed| agreed.version),
            Opening::Ready { version, .. } | Opening::Envelope { version, .. } => *version,
        }
    }

    /// Returns the era of that revision.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// Returns whether ordinary requests are served: the handshake has happened, or none is needed.
    ///
    /// A bare `notifications/initialized` opens the connection too.
    pub fn is_open(&self) -> bool {
        match &self.opening {
            Opening::Handshake { agreed, .. } => agreed.get().is_some() || self.is_initialized(),
            Opening::Ready { .. } | Opening::Envelope { .. } => true,
        }
    }

    /// Returns whether the client has confirmed the handshake.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    pub(crate) fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// Returns the outcome of the handshake; `None` before it.
    pub fn agreed(&self) -> Option<&Negotiated> {
        match &self.opening {
            Opening::Handshake { agreed, .. } => agreed.get(),
            Opening::Ready { .. } | Opening::Envelope { .. } => None,
        }
    }

    /// Stores the outcome of the handshake. Only the first one counts.
    pub(crate) fn agree(&self, negotiated: Negotiated) {
        if let Opening::Handshake { agreed, .. } = &self.opening {
            let _ = agreed.set(negotiated);
        }
    }

    /// Tells the observers that the handshake has opened this connection, and later that it has closed.
    pub(crate) fn observe(&self, observers: &Observers) {
        if !observers.is_empty() {
            self.open.get_or_init(|| OpenConnection::begin(observers, self.version()));
        }
    }

    /// Returns the identity and the capabilities of the client.
    pub fn client(&self) -> &ClientProfile {
        match &self.opening {
            Opening::Handshake { agreed, .. } => {
                agreed.get().map_or(&ClientProfile::UNKNOWN, |agreed| &agreed.client)
            }
            Opening::Ready { client, .. } => client,
            Opening::Envelope { message, client, .. } => {
                client.get_or_init(|| ClientProfile::from_envelope(message.meta()))
            }
        }
    }

    /// Returns the channel to the client outside a request.
    pub fn outbound(&self) -> &Arc<dyn Outbound> {
        &self.outbound
    }

    /// Returns the id of the transport's session, if it has one.
    pub fn session_id(&self) -> Option<&str> {
        self.caller.session_id.as_deref()
    }

    /// Returns the principal, if an authorization layer has established one.
    ///
    /// A connection that serves several requests can have a principal per message: `Context::principal`.
    pub fn principal(&self) -> Option<&Arc<Principal>> {
        self.caller.principal.as_ref()
    }

    /// Returns how changes get to the client.
    pub(crate) fn change_delivery(&self) -> ChangeDelivery {
        self.caller.changes
    }

    /// Returns whether the server declares that it logs to clients.
    pub(crate) fn is_logging_declared(&self) -> bool {
        self.logging.load(Ordering::Relaxed)
    }

    pub(crate) fn set_logging_declared(&self) {
        self.logging.store(true, Ordering::Relaxed);
    }

    /// Returns the minimum level of log messages that the client of a handshake has set.
    pub(crate) fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    fn lowest_level(&self) -> LoggingLevel {
        let level = self.log_level();
        LoggingLevel::ALL.into_iter().find(|known| *known as u8 == level).unwrap_or(LoggingLevel::Debug)
    }

    /// Sets the minimum level of log messages. For handlers of `logging/setLevel`.
    pub fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Returns the value of type `T` stored on this connection, if there is one.
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        find(&lock(&self.state))
    }

    /// Stores a value on this connection. It replaces an earlier value of its type.
    pub fn set_state<T: Any + Send + Sync>(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut state = lock(&self.state);
        let index = state.iter().position(|kept| kept.is::<T>());
        // Dropped outside the lock, because its `Drop` is user code.
        let _replaced = index.map(|index| state.swap_remove(index));
        state.push(Arc::clone(&value) as _);
        drop(state);
        value
    }

    /// Returns the value of type `T`, created if there is none. `make` runs under the lock and must not access other
    /// values.
    pub(crate) fn state_or<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut state = lock(&self.state);
        find(&state).unwrap_or_else(|| {
            let value = Arc::new(make());
            state.push(Arc::clone(&value) as _);
            value
        })
    }

    /// Returns whether the connection serves more than one request.
    pub(crate) fn outlives_a_request(&self) -> bool {
        matches!(self.opening, Opening::Handshake { .. })
    }

    /// Registers a hook that runs when the connection closes: in reverse order, within a time limit.
    pub fn on_close<F>(&self, hook: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_close.push(hook);
    }

    pub(crate) async fn close_within(&self, budget: std::time::Duration) {
        self.on_close.unwind_within(budget).await;
    }

    pub(crate) fn has_hooks(&self) -> bool {
        !self.on_close.is_empty()
    }

    /// Runs the hooks, including those registered meanwhile.
    pub async fn close(&self) {
        self.on_close.unwind().await;
    }
}

/// A connection stores few values: a linear search is faster than a table.
fn find<T: Any + Send + Sync>(state: &[Arc<dyn Any + Send + Sync>]) -> Option<Arc<T>> {
    state.iter().find_map(|value| Arc::clone(value).downcast().ok())
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("version", &self.version())
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}
