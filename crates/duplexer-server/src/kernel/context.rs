//! What a handler gets beside its params: who asked, in which revision, and the way back.

mod ask;
mod nested;
mod progress;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::meta::RequestMeta;
use duplexer_types::methods::{Method, Notification};
use duplexer_types::version::ProtocolVersion;
use serde::de::DeserializeOwned;

use crate::kernel::connection::{ClientCapability, Connection};
use crate::kernel::principal::Principal;
use crate::registry::{RunningServer, SlotId, StateSlot};
use duplexer_core::dispatch::{CallContext, Cancellation, Invocation, Sending, StreamClosing};
use duplexer_core::error::McpError;
use duplexer_core::transport::TransportContext;

pub use ask::TypedParams;
pub(crate) use ask::is_change;
pub use nested::ReadError;

/// The context of one message. Cheap to clone; what outlives the message finds its channels closed.
///
/// `S` is what the server's lifespan has made. Middleware sees [`StateMap`] instead.
pub struct Context<S = StateMap> {
    scope: Arc<Scope>,
    message: Arc<Invocation>,
    state: Arc<S>,
}

/// What all contexts of one message share.
pub(crate) struct Scope {
    pub(crate) call: CallContext,
    pub(crate) connection: Arc<Connection>,
    pub(crate) running: RunningServer,
    principal: Option<Arc<Principal>>,
    /// Taken before any handler runs: a handshake does not change the revision it is answered in.
    pub(crate) version: ProtocolVersion,
    /// Which method the message is, as far as it has come: middleware may make another one of it.
    pub(crate) method: Mutex<Option<Method>>,
    /// How many handlers of this server it is called within.
    depth: u8,
    progress_token: OnceLock<Option<RequestId>>,
    reported: progress::Reported,
    pub(crate) questions: crate::features::input_rounds::Questions,
}

impl Scope {
    pub(crate) fn new(
        call: CallContext,
        connection: Arc<Connection>,
        running: RunningServer,
        principal: Option<Arc<Principal>>,
        message: &Invocation,
    ) -> Self {
        let version = connection.version();
        Self {
            call,
            connection,
            running,
            principal,
            version,
            method: Mutex::new(message.known()),
            depth: 0,
            progress_token: OnceLock::new(),
            reported: progress::Reported::nothing(),
            questions: crate::features::input_rounds::Questions::default(),
        }
    }
}

/// The states of a server's lifespans, by type.
#[derive(Clone, Default)]
pub struct StateMap(pub(crate) Vec<(SlotId, Arc<dyn Any + Send + Sync>)>);

impl StateMap {
    /// The state of type `T`, if a lifespan has made one; of several the one given last. Those of merged servers come
    /// behind the server's own.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.iter().rev().find_map(|(_, state)| state.downcast_ref())
    }
}

impl Context<StateMap> {
    pub(crate) fn new(scope: Arc<Scope>, message: Arc<Invocation>) -> Self {
        let state = Arc::clone(scope.running.states());
        Self { scope, message, state }
    }

    /// The context of a handler that was registered under a lifespan slot.
    pub(crate) fn typed<S: Any + Send + Sync>(self, slot: SlotId) -> Option<Context<S>> {
        let (_, state) = self.state.0.iter().find(|(held, _)| *held == slot)?;
        let state = Arc::clone(state).downcast().ok()?;
        Some(Context { scope: self.scope, message: self.message, state })
    }
}

impl<S: Any + Send + Sync> Context<S> {
    /// Where its state is among those of the server, to register something else with it. `None` for [`StateMap`].
    pub(crate) fn state_slot(&self) -> Option<StateSlot<S>> {
        let own = Arc::as_ptr(&self.state).cast::<()>();
        let states = &self.server().states().0;
        let held = states.iter().find(|(_, state)| std::ptr::addr_eq(Arc::as_ptr(state), own))?;
        Some(StateSlot::new(held.0))
    }
}

impl<S> Context<S> {
    /// What the server's lifespan has made.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The same context with the states of all lifespans.
    pub fn untyped(&self) -> Context<StateMap> {
        Context::new(Arc::clone(&self.scope), Arc::clone(&self.message))
    }

    /// The client this message comes from.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.scope.connection
    }

    /// On whose behalf this message is sent, if an authorization layer has said so.
    pub fn principal(&self) -> Option<&Principal> {
        self.scope.principal.as_deref()
    }

    /// The server that handles it.
    pub fn server(&self) -> &RunningServer {
        &self.scope.running
    }

    /// The revision this message is handled in.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.scope.version
    }

    /// The id of the request; `None` for a notification.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.scope.call.id.as_ref()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.message.method()
    }

    /// The method as a row of the protocol's table; `None` for a custom one.
    pub(crate) fn known_method(&self) -> Option<Method> {
        self.message.known()
    }

    /// The params as they came: JSON text of an object.
    pub fn raw_params(&self) -> Option<&str> {
        self.message.params()
    }

    /// The params as a `T`, without `_meta`; absent params are an empty object.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, McpError> {
        self.message.decode().map_err(|error| McpError::InvalidParams(error.into()))
    }

    /// `_meta` as it came: JSON text.
    pub fn raw_meta(&self) -> Option<&str> {
        self.message.meta()
    }

    /// What `_meta` says; what cannot be read counts as not said.
    pub fn meta(&self) -> RequestMeta<'_> {
        self.raw_meta().and_then(|meta| RequestMeta::read(meta).ok()).unwrap_or_default()
    }

    /// The message itself.
    pub fn message(&self) -> &Invocation {
        &self.message
    }

    /// What the transport says about the message: its kind, its headers.
    pub fn transport(&self) -> &TransportContext {
        &self.scope.call.transport
    }

    /// Raised when nobody waits for the answer any more.
    pub fn cancellation(&self) -> &Cancellation {
        self.scope.call.channel.cancellation()
    }

    /// Raised when the connection is about to end: what stands for long should conclude.
    pub fn closing(&self) -> &Cancellation {
        self.scope.call.channel.closing()
    }

    /// -32021 unless the client has declared the extension.
    pub fn require_extension(&self, id: &str) -> Result<(), McpError> {
        let requirement = ClientCapability::Extension(id.to_owned());
        if self.connection().client().supports(&requirement) {
            return Ok(());
        }
        let message = format!("Client did not declare required extension '{id}'");
        Err(McpError::Refused(requirement.missing(message)))
    }

    /// Reports progress, if the request asked for it. It must grow with every report.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) -> Sending {
        if cfg!(debug_assertions) && self.scope.reported.falls_back(progress) {
            tracing::warn!(method = ?self.method(), progress, "progress must grow with every report, and did not");
        }
        let token = self.scope.progress_token.get_or_init(|| self.meta().progress_token);
        match token {
            Some(token) => {
                let report =
                    ask::ProgressReport { token, progress, total, message, version: self.scope.version };
                self.notify_raw(
                    <duplexer_types::methods::Progress as Notification>::METHOD.name(),
                    Some(&report),
                )
            }
            None => Sending::done(),
        }
    }

    /// Sends a notification that belongs to this message.
    pub fn notify_raw(&self, method: &str, params: Option<&dyn Body>) -> Sending {
        self.scope.call.channel.notify(method, params)
    }

    /// Ends the stream this request is answered on, without ending the request: the client comes back for the rest, so
    /// that a long wait holds no connection. Only where the client can: on a session with an event store.
    pub fn close_stream(&self) -> StreamClosing {
        self.scope.call.channel.close_stream()
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// The same context for a message that was rewritten.
    pub(crate) fn with_message(mut self, message: Arc<Invocation>) -> Self {
        self.message = message;
        self
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            scope: Arc::clone(&self.scope),
            message: Arc::clone(&self.message),
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("method", &self.method())
            .field("id", &self.request_id())
            .field("version", &self.protocol_version())
            .finish_non_exhaustive()
    }
}
