//! The context of one message: the client, the revision, the params and the channel back to the client.

mod abandon;
mod ask;
mod logging;
mod nested;
mod progress;
mod sampling;
mod scope;

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::meta::RequestMeta;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use serde::de::DeserializeOwned;

use crate::features::tasks::TaskCall;
use crate::kernel::connection::{ClientCapability, Connection};
use crate::kernel::principal::Principal;
use crate::registry::{RunningServer, SlotId, StateSlot};
use duplexer_core::dispatch::{CallContext, Cancellation, Channel, Message, NotifyFuture, StreamClosing};
use duplexer_core::error::McpError;
use duplexer_core::transport::TransportContext;

pub(crate) use abandon::AbandonOnDrop;
pub use ask::TypedParams;
pub(crate) use ask::is_change;
pub use logging::Logger;
pub use nested::ReadError;
pub use progress::{Amount, ProgressReport};
pub(crate) use scope::Scope;

/// The context of one message. Cheap to clone. A clone that outlives the message finds its channels closed.
///
/// `S` is the state of the server's lifespan. Middleware sees [`StateMap`] instead.
///
/// ```
/// # use duplexer_server::{Context, Server};
/// # use duplexer_server::tool::{Tool, ToolError};
/// struct Archive {
///     pages: u32,
/// }
///
/// async fn scan(cx: Context<Archive>) -> Result<u32, ToolError> {
///     let pages = cx.state().pages;
///     for page in 1..=pages {
///         cx.progress(page).total(pages).await;
///     }
///     cx.logger("scan").info("done").await;
///     Ok(pages)
/// }
///
/// let server = Server::builder("archive", "1.0.0").state(Archive { pages: 3 }).tool(Tool::new("scan", scan)).build()?;
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
pub struct Context<S = StateMap> {
    scope: Arc<Scope>,
    /// What middleware has put in place of the message that arrived.
    rewritten: Option<Arc<Message>>,
    state: Arc<S>,
    /// The lifespan that the handler was registered under. Middleware has none.
    slot: SlotId,
}

/// The states of a server's lifespans, by type.
///
/// ```
/// use duplexer::dispatch::Message;
/// use duplexer::middleware::Next;
/// use duplexer::server::Outcome;
/// use duplexer::{Context, McpError, Server};
///
/// struct Name(&'static str);
///
/// /// Middleware sees the states of all parts of a server.
/// async fn announce(cx: Context, message: Message, next: Next) -> Result<Outcome, McpError> {
///     if let Some(Name(name)) = cx.state().get::<Name>() {
///         println!("{name} is called");
///     }
///     next.run(cx, message).await
/// }
///
/// let server = Server::builder("part", "1.0.0").state(Name("part")).middleware(announce).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Default)]
pub struct StateMap(pub(crate) Vec<(SlotId, Arc<dyn Any + Send + Sync>)>);

impl StateMap {
    /// Returns the state of type `T`, if a lifespan has created one. Of several it returns the one registered last; the
    /// server's own states take precedence over those of merged servers.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.iter().rev().find_map(|(_, state)| state.downcast_ref())
    }
}

impl Context<StateMap> {
    pub(crate) fn new(scope: Arc<Scope>) -> Self {
        let state = Arc::clone(scope.running.states());
        Self { scope, rewritten: None, state, slot: SlotId::NONE }
    }

    /// Returns the context of a handler that was registered under a lifespan slot. With [`StateMap`] as `S` the handler
    /// gets all states, whatever the type of the slot's own.
    pub(crate) fn typed<S: Any + Send + Sync>(self, slot: SlotId) -> Option<Context<S>> {
        let (_, own) = self.state.0.iter().find(|(held, _)| *held == slot)?;
        let own = Arc::clone(own).downcast();
        let all: Arc<dyn Any + Send + Sync> = self.state;
        let state = own.or_else(|_| all.downcast()).ok()?;
        Some(Context { scope: self.scope, rewritten: self.rewritten, state, slot })
    }
}

impl<S: Any + Send + Sync> Context<S> {
    /// Returns the slot of its handler, for further registrations with the same state. Middleware uses the last slot of
    /// the server.
    pub(crate) fn state_slot(&self) -> Option<StateSlot<S>> {
        let slot = match self.slot {
            SlotId::NONE => self.server().states().0.last()?.0,
            slot => slot,
        };
        Some(StateSlot::new(slot))
    }
}

impl<S> Context<S> {
    /// Returns the state of the server's lifespan.
    #[doc(alias = "lifespan")]
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Returns the same context with the states of all lifespans.
    pub fn untyped(&self) -> Context<StateMap> {
        let rewritten = self.rewritten.clone();
        Context { rewritten, slot: self.slot, ..Context::new(Arc::clone(&self.scope)) }
    }

    /// Returns the connection that this message arrived on.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.scope.connection
    }

    /// Returns the principal of this message, if an authorization layer has established one.
    #[doc(alias("user", "caller", "token", "auth"))]
    pub fn principal(&self) -> Option<&Principal> {
        self.scope.principal.as_deref()
    }

    /// Returns the server that handles the message.
    pub fn server(&self) -> &RunningServer {
        &self.scope.running
    }

    /// Returns the revision that this message is handled in.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.scope.version
    }

    /// Returns the id of the request; `None` for a notification.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.scope.call.id.as_ref()
    }

    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        self.message().method()
    }

    /// Returns the method as a row of the protocol's table; `None` for a custom one.
    pub(crate) fn known_method(&self) -> Option<Method> {
        self.message().known()
    }

    /// Returns the params verbatim: the JSON text of an object.
    pub fn raw_params(&self) -> Option<&str> {
        self.message().params()
    }

    /// Decodes the params as a `T`, without `_meta`. Absent params are an empty object.
    ///
    /// # Errors
    ///
    /// Returns -32602 if the params do not fit.
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, McpError> {
        self.message().decode().map_err(|error| McpError::InvalidParams(error.into()))
    }

    /// Returns `_meta` verbatim: JSON text.
    pub fn raw_meta(&self) -> Option<&str> {
        self.message().meta()
    }

    /// Decodes `_meta`. A malformed `_meta` counts as absent.
    pub fn meta(&self) -> RequestMeta<'_> {
        meta_of(self.message())
    }

    /// Returns the message itself.
    pub fn message(&self) -> &Message {
        self.shared_message()
    }

    /// Returns the message to code that needs it for longer than the context.
    pub(crate) fn shared_message(&self) -> &Arc<Message> {
        self.rewritten.as_ref().unwrap_or(&self.scope.message)
    }

    /// Returns the facts of the transport: its kind, the headers of the message.
    pub fn transport(&self) -> &TransportContext {
        &self.scope.call.transport
    }

    /// Returns the token that is cancelled when the client cancels the request or disconnects.
    pub fn cancellation(&self) -> &Cancellation {
        self.scope.call.channel.cancellation()
    }

    /// Returns whether the result of this call is no longer needed: the client has cancelled it or disconnected, or the call of a
    /// blocking tool has exceeded its time limit. A blocking tool should then return; async handlers are dropped.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().is_cancelled() || self.scope.abandoned.load(Ordering::Relaxed)
    }

    /// Returns the token that is cancelled when the connection is about to close. Long-lived requests should finish
    /// then.
    pub fn closing(&self) -> &Cancellation {
        self.scope.call.channel.closing()
    }

    /// Checks that the client has declared an extension.
    ///
    /// # Errors
    ///
    /// Returns -32021 if it has not.
    pub fn require_extension(&self, id: &str) -> Result<(), McpError> {
        if self.connection().client().supports_extension(id) {
            return Ok(());
        }
        let requirement = ClientCapability::Extension(id.to_owned());
        let message = format!("Client did not declare required extension '{id}'");
        Err(McpError::Rpc(requirement.missing(message)))
    }

    /// Sends a notification that belongs to this message.
    #[doc(alias = "notification")]
    pub fn notify_raw(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.scope.call.channel.notify(method, params)
    }

    /// Returns the channel to the client that belongs to this message, for code that forwards messages verbatim: it
    /// checks neither capabilities nor revisions.
    pub fn channel(&self) -> &Arc<dyn Channel> {
        &self.scope.call.channel
    }

    /// Ends the stream that carries the response, without ending the request. The client reconnects for the rest, so
    /// that a long wait holds no connection. This works only where the client can resume: on a session with an event
    /// store.
    #[doc(alias("polling", "disconnect"))]
    pub fn close_stream(&self) -> StreamClosing {
        self.scope.call.channel.close_stream()
    }

    pub(crate) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Returns the context of the same call as a task, whose channel is that of the task.
    pub(crate) fn for_task(&self, task: Arc<TaskCall>) -> Self {
        let Scope { call, connection, running, principal, .. } = &*self.scope;
        let channel = Arc::clone(&task) as Arc<dyn Channel>;
        let call = CallContext::new(call.id.clone(), Arc::clone(&call.transport), channel);
        let (connection, principal) = (Arc::clone(connection), principal.clone());
        let message = Arc::clone(self.shared_message());
        let mut scope = Scope::new(call, connection, running.clone(), principal, message).with_task(task);
        scope.depth = self.scope.depth;
        Self { scope: Arc::new(scope), rewritten: None, ..self.clone() }
    }

    /// Returns the same context for a rewritten message.
    pub(crate) fn with_message(mut self, message: Arc<Message>) -> Self {
        self.rewritten = Some(message);
        self
    }
}

/// Decodes the `_meta` of a message. A malformed `_meta` counts as absent.
fn meta_of(message: &Message) -> RequestMeta<'_> {
    message.meta().and_then(|meta| RequestMeta::read(meta).ok()).unwrap_or_default()
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            scope: Arc::clone(&self.scope),
            rewritten: self.rewritten.clone(),
            state: Arc::clone(&self.state),
            slot: self.slot,
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
