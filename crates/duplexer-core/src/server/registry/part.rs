//! Parts: what a layer above the kernel collects while a server is described, and installs when it is built.
//!
//! The kernel does not know what a tool is. A layer that does keeps its own things in the builder as a [`Part`], and turns
//! them into handlers in the end.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use duplexer_types::methods::Request;

use super::{Advertised, Handlers, NotificationOptions, ToolHeaders};
use crate::dispatch::BoxFuture;
use crate::error::{BoxError, McpError};
use crate::server::context::{Context, States};
use crate::server::handler::Entry;
use crate::server::outcome::Outcome;
use crate::server::subscriptions::{MemoryBus, Plan, SubscriptionLimits};

/// Something that is collected while a server is described and becomes handlers when it is built.
pub trait Part: Any + Send {
    /// Registers handlers for what was collected. An error fails the build; its text says what to change.
    fn install(self: Box<Self>, into: &mut Installer<'_>) -> Result<(), BoxError>;

    /// Becomes a part of the server that its own is merged into, together with what that has of the same type.
    fn join(self: Box<Self>, outer: Option<Box<dyn Part>>, merged: &Merged<'_>) -> Box<dyn Part>;
}

/// A server that becomes part of another.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Merged<'a> {
    /// What its names get before them, if it is nested.
    pub prefix: Option<&'a str>,
    /// Its lifespans, and those of servers that were merged into it.
    pub slots: Vec<SlotId>,
}

/// What parts leave behind in a built server, by type.
pub(crate) type Kept = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// The server that a [`Part`] installs itself into.
pub struct Installer<'b> {
    pub(super) handlers: &'b mut Handlers,
    pub(super) advertised: &'b mut Advertised,
    pub(super) tool_headers: &'b mut Option<Arc<dyn ToolHeaders>>,
    pub(super) kept: &'b mut Kept,
    /// In a server made of several: methods whose handlers stand in the way of what was collected.
    pub(super) hidden: Option<Vec<&'static str>>,
}

impl Installer<'_> {
    /// Handles a request of the protocol, unless it has a handler already. Nothing is decoded before the handler runs:
    /// its params are [`Context::raw_params`].
    pub fn on<M, F>(&mut self, _method: M, handler: F)
    where
        M: Request,
        F: Fn(Context) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static,
    {
        if self.handlers.spec(M::METHOD).is_some()
            && let Some(hidden) = &mut self.hidden
        {
            hidden.push(M::METHOD.name());
        }
        self.handlers.set_default(M::METHOD, Arc::new(Undecoded(handler)));
    }

    /// Promises clients of the handshake era to be told of changes, in addition to what is promised already.
    pub fn promise_changes(&mut self, promised: NotificationOptions) {
        let changes = &mut self.advertised.changes;
        changes.prompts_changed |= promised.prompts_changed;
        changes.resources_changed |= promised.resources_changed;
        changes.tools_changed |= promised.tools_changed;
    }

    /// Serves subscriptions over a bus of this process, unless the server has a bus already.
    pub fn subscriptions(&mut self) {
        let plan = || Plan { bus: Arc::new(MemoryBus::new()), limits: SubscriptionLimits::default() };
        self.advertised.subscriptions.get_or_insert_with(plan);
        self.promise_changes(NotificationOptions::all());
    }

    /// Where transports with headers find the annotations of tools, unless somebody has said so already.
    pub fn tool_headers(&mut self, headers: Arc<dyn ToolHeaders>) {
        self.tool_headers.get_or_insert(headers);
    }

    /// Keeps a value in the server, where [`Server::kept`](super::Server::kept) finds it by its type.
    pub fn keep<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.kept.insert(TypeId::of::<T>(), value);
    }
}

impl std::fmt::Debug for Installer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Installer").finish_non_exhaustive()
    }
}

/// A handler that reads its params itself.
pub(super) struct Undecoded<F>(pub(super) F);

impl<F> Entry for Undecoded<F>
where
    F: Fn(Context) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static,
{
    fn call(&self, cx: Context<States>) -> BoxFuture<'static, Result<Outcome, McpError>> {
        (self.0)(cx)
    }
}

/// Which lifespan a handler gets its state from. No two lifespans of a process share one, so that what is registered
/// with it stays right when servers are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotId(u64);

impl SlotId {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The place of a state among those of a server: what is registered together with it gets contexts of that state.
pub struct StateSlot<S> {
    id: SlotId,
    state: PhantomData<fn() -> S>,
}

impl<S: Any + Send + Sync> StateSlot<S> {
    pub(in crate::server) fn new(id: SlotId) -> Self {
        Self { id, state: PhantomData }
    }

    /// Which lifespan it is.
    pub fn id(&self) -> SlotId {
        self.id
    }

    /// The context with this state.
    pub fn context(&self, cx: Context<States>) -> Result<Context<S>, McpError> {
        cx.typed(self.id).ok_or_else(|| McpError::internal("a handler's state is of another type"))
    }
}

impl<S> Clone for StateSlot<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for StateSlot<S> {}

impl<S> std::fmt::Debug for StateSlot<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateSlot").field(&self.id).finish()
    }
}
