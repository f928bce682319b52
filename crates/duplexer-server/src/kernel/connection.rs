//! What is known about one client, and the way to it beside any request.
//!
//! Facts are written once: by the handshake, or at birth from the envelope of a single request. A connection of
//! the envelope era lives for one request and forgets everything with it.

mod client;
mod close;
mod snapshot;

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use duplexer_types::logging::LoggingLevel;
use duplexer_types::version::{Era, ProtocolVersion};

use crate::kernel::principal::Principal;
use duplexer_core::dispatch::{Invocation, NoChannel, Outbound, lock};
use duplexer_core::error::McpError;

pub use client::{ClientCapability, ClientProfile};
pub(crate) use close::CloseStack;
pub(crate) use close::{CLOSE_BUDGET, contained};
pub use snapshot::ConnectionSnapshot;

/// One client, for as long as it is connected.
pub struct Connection {
    opening: Opening,
    initialized: AtomicBool,
    log_level: AtomicU8,
    outbound: Arc<dyn Outbound>,
    caller: Caller,
    /// One of a type.
    state: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    on_close: CloseStack,
}

/// Where the facts about the client come from.
enum Opening {
    /// From `initialize`, once it has happened; until then the version is assumed.
    Handshake { assumed: ProtocolVersion, agreed: OnceLock<Negotiated> },
    /// Agreed elsewhere: a request without a session in the handshake era.
    Ready { version: ProtocolVersion, client: ClientProfile },
    /// From the envelope of the one request this connection is for; read when somebody asks.
    Envelope {
        version: ProtocolVersion,
        message: Arc<Invocation>,
        client: OnceLock<ClientProfile>,
        /// What is wrong with what the envelope says about the client, if anything.
        malformed: Option<serde_json::Error>,
    },
}

/// Who speaks, apart from the protocol.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Caller {
    /// The id of the transport's session, if it has one.
    pub session_id: Option<Arc<str>>,
    /// On whose behalf the client acts, if an authorization layer has said so.
    pub principal: Option<Arc<Principal>>,
}

/// What `initialize` agreed on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Negotiated {
    /// The revision both sides speak.
    pub version: ProtocolVersion,
    /// Who the client says it is and what it can do.
    pub client: ClientProfile,
}

impl Negotiated {
    /// An agreement on `version` with this client.
    pub fn new(version: ProtocolVersion, client: ClientProfile) -> Self {
        Self { version, client }
    }
}

impl Connection {
    /// A connection that waits for its handshake; until then it speaks `assumed`.
    pub fn handshake(assumed: ProtocolVersion, outbound: Arc<dyn Outbound>) -> Self {
        Self::new(Opening::Handshake { assumed, agreed: OnceLock::new() }, outbound)
    }

    /// A connection that needs no handshake, without a way to the client beside its answers.
    pub fn ready(version: ProtocolVersion, client: ClientProfile) -> Self {
        Self::new(Opening::Ready { version, client }, Arc::new(NoChannel))
    }

    /// The connection of one request of the envelope era.
    pub(crate) fn envelope(
        version: ProtocolVersion,
        message: Arc<Invocation>,
        malformed: Option<serde_json::Error>,
        outbound: Arc<dyn Outbound>,
        caller: Caller,
    ) -> Self {
        let opening = Opening::Envelope { version, message, client: OnceLock::new(), malformed };
        Self { caller, ..Self::new(opening, outbound) }
    }

    /// Why a request of this client must be refused: its envelope says something about it that makes no sense.
    pub(crate) fn check_envelope(&self) -> Result<(), McpError> {
        match &self.opening {
            Opening::Envelope { malformed: Some(error), .. } => {
                Err(McpError::InvalidParams(error.to_string().into()))
            }
            _ => Ok(()),
        }
    }

    /// The connection of a notification of the envelope era: it is nobody's in particular.
    pub(crate) fn anonymous(version: ProtocolVersion, outbound: Arc<dyn Outbound>) -> Self {
        Self::new(Opening::Ready { version, client: ClientProfile::UNKNOWN }, outbound)
    }

    fn new(opening: Opening, outbound: Arc<dyn Outbound>) -> Self {
        Self {
            opening,
            initialized: AtomicBool::new(false),
            log_level: AtomicU8::new(LoggingLevel::Debug as u8),
            outbound,
            caller: Caller::default(),
            state: Mutex::default(),
            on_close: CloseStack::default(),
        }
    }

    /// The same connection with what the transport knows of its caller.
    #[must_use]
    pub fn with_caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// The revision in use.
    pub fn version(&self) -> ProtocolVersion {
        match &self.opening {
            Opening::Handshake { assumed, agreed } => agreed.get().map_or(*assumed, |agreed| agreed.version),
            Opening::Ready { version, .. } | Opening::Envelope { version, .. } => *version,
        }
    }

    /// The era of that revision.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// Whether requests other than the opening ones are served: the handshake has happened, or none is needed.
    ///
    /// A bare `notifications/initialized` opens the connection too.
    pub fn is_open(&self) -> bool {
        match &self.opening {
            Opening::Handshake { agreed, .. } => agreed.get().is_some() || self.is_initialized(),
            Opening::Ready { .. } | Opening::Envelope { .. } => true,
        }
    }

    /// Whether the client has confirmed the handshake.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    pub(crate) fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// What a handshake has agreed on, once it has.
    pub fn agreed(&self) -> Option<&Negotiated> {
        match &self.opening {
            Opening::Handshake { agreed, .. } => agreed.get(),
            Opening::Ready { .. } | Opening::Envelope { .. } => None,
        }
    }

    /// Writes down what was agreed on. The first agreement stands.
    pub(crate) fn agree(&self, negotiated: Negotiated) {
        if let Opening::Handshake { agreed, .. } = &self.opening {
            let _ = agreed.set(negotiated);
        }
    }

    /// Who the client says it is and what it can do.
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

    /// The way to the client beside any request.
    pub fn outbound(&self) -> &Arc<dyn Outbound> {
        &self.outbound
    }

    /// The id of the transport's session, if it has one.
    pub fn session_id(&self) -> Option<&str> {
        self.caller.session_id.as_deref()
    }

    /// On whose behalf the client acts, if an authorization layer has said so.
    ///
    /// On a connection that serves several requests, what a message itself says is `Context::principal`.
    pub fn principal(&self) -> Option<&Arc<Principal>> {
        self.caller.principal.as_ref()
    }

    /// The lowest level of log messages that the client of a handshake wants.
    pub(crate) fn log_level(&self) -> u8 {
        self.log_level.load(Ordering::Relaxed)
    }

    fn lowest_level(&self) -> LoggingLevel {
        let level = self.log_level();
        LoggingLevel::ALL.into_iter().find(|known| *known as u8 == level).unwrap_or(LoggingLevel::Debug)
    }

    /// Log messages below `level` are kept back from now on. For handlers of the client's wish for a level.
    pub fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// The value of type `T` kept on this connection, if there is one.
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        find(&lock(&self.state))
    }

    /// Keeps a value on this connection, in the place of an earlier one of its type.
    pub fn set_state<T: Any + Send + Sync>(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut state = lock(&self.state);
        let place = state.iter().position(|kept| kept.is::<T>());
        // Dropped outside the lock: what its type does then is its author's code.
        let _replaced = place.map(|place| state.swap_remove(place));
        state.push(Arc::clone(&value) as _);
        drop(state);
        value
    }

    /// The value of type `T` kept on this connection, made if there is none. `make` must not look for others.
    pub(crate) fn state_or<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut state = lock(&self.state);
        find(&state).unwrap_or_else(|| {
            let value = Arc::new(make());
            state.push(Arc::clone(&value) as _);
            value
        })
    }

    /// Whether it is there for more than one request.
    pub(crate) fn outlives_a_request(&self) -> bool {
        matches!(self.opening, Opening::Handshake { .. })
    }

    /// Runs `hook` when the connection ends: last registered, first run, within a bound.
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

    /// Runs the hooks. Further ones registered meanwhile run too.
    pub async fn close(&self) {
        self.on_close.unwind().await;
    }
}

/// A connection keeps few values: looking at each is quicker than a table.
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
