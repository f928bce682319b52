//! The registry: which handler answers what, and who the server is. Immutable once built.

pub(crate) mod capabilities;
mod running;
mod slot;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::version::{ProtocolVersion, Window};
use duplexer_types::wire::Freshness;

use crate::features::subscriptions::Plan;
use crate::kernel::handler::Entry;
use crate::middleware::Middleware;
use duplexer_core::dispatch::BoxFuture;

pub use capabilities::NotificationOptions;
pub use running::{InitializeOverride, RunningServer, StartError};
pub(crate) use slot::{SlotId, StateSlot};

/// A server: what it is called, what it can do, and who does it. Start it to serve with it.
///
/// Cheap to clone; nothing about it changes any more.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Registry>);

pub(crate) struct Registry {
    pub(crate) identity: Identity,
    pub(crate) handlers: Handlers,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) lifespans: Vec<Lifespan>,
    /// By method; `None` where results cannot be cached.
    pub(crate) hints: Vec<Option<Freshness>>,
    pub(crate) advertised: Advertised,
    pub(crate) tool_headers: Option<ToolHeaders>,
    /// Protects what questions send through clients, where no middleware does.
    pub(crate) own_sealing: Option<crate::features::request_state::Sealing>,
    /// The catalog of tools, resources and prompts. The catalog layer, which this layer does not know, downcasts it.
    pub(crate) catalog: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

/// Who the server says it is.
pub(crate) struct Identity {
    pub(crate) info: Implementation,
    /// The same, rendered once, for the stamp on every result.
    pub(crate) stamp: Json,
    pub(crate) instructions: Option<String>,
}

/// What capabilities are derived from beside the handlers.
#[derive(Default)]
pub(crate) struct Advertised {
    pub(crate) changes: NotificationOptions,
    pub(crate) experimental: JsonObject,
    pub(crate) extensions: JsonObject,
    /// How changes reach those who subscribe, if they do.
    pub(crate) subscriptions: Option<Plan>,
}

/// Handlers of spec methods by index, of custom ones by name.
pub(crate) struct Handlers {
    pub(crate) spec: Vec<Option<Arc<dyn Entry>>>,
    pub(crate) custom: HashMap<String, CustomEntry>,
    pub(crate) custom_notifications: HashMap<String, Arc<dyn Entry>>,
}

/// A custom method and the revisions it is served in.
#[derive(Clone)]
pub(crate) struct CustomEntry {
    pub(crate) entry: Arc<dyn Entry>,
    pub(crate) window: Window,
}

/// One start-up of something that handlers share, and its end.
pub(crate) struct Lifespan {
    pub(crate) slot: SlotId,
    pub(crate) start: StartFn,
    pub(crate) stop: Option<StopFn>,
}

pub(crate) type State = Arc<dyn std::any::Any + Send + Sync>;
pub(crate) type StartFn =
    Box<dyn Fn() -> BoxFuture<'static, Result<State, duplexer_core::error::BoxError>> + Send + Sync>;
pub(crate) type StopFn = Box<dyn Fn(State) -> BoxFuture<'static, ()> + Send + Sync>;

/// Returns the header annotations of the named tool, so that a transport with headers can check them before a handler
/// runs; `None` if there is no such tool or it has none.
pub(crate) type ToolHeaders = Arc<dyn Fn(&str) -> Option<Arc<ParamHeaders>> + Send + Sync>;

impl Handlers {
    pub(crate) fn new() -> Self {
        Self { spec: vec![None; METHODS.len()], custom: HashMap::new(), custom_notifications: HashMap::new() }
    }

    pub(crate) fn spec(&self, method: Method) -> Option<&Arc<dyn Entry>> {
        self.spec.get(method as usize).and_then(Option::as_ref)
    }

    pub(crate) fn custom(&self, method: &str) -> Option<&CustomEntry> {
        self.custom.get(method)
    }

    pub(crate) fn custom_notification(&self, method: &str) -> Option<&Arc<dyn Entry>> {
        self.custom_notifications.get(method)
    }

    pub(crate) fn set(&mut self, method: Method, entry: Arc<dyn Entry>) {
        if let Some(slot) = self.spec.get_mut(method as usize) {
            *slot = Some(entry);
        }
    }
}

impl Server {
    /// Who the server says it is.
    pub fn server_info(&self) -> &Implementation {
        &self.0.identity.info
    }

    /// What the server tells clients and models about its use.
    pub fn instructions(&self) -> Option<&str> {
        self.0.identity.instructions.as_deref()
    }

    /// What the server can do for clients of this revision; follows from its handlers.
    pub fn capabilities(&self, version: ProtocolVersion) -> ServerCapabilities {
        capabilities::derive(&self.0, version)
    }

    /// Whether there is a handler for this method, of the protocol or a custom one.
    pub fn handles(&self, method: &str) -> bool {
        let handlers = &self.0.handlers;
        match Method::parse(method) {
            Some(method) => handlers.spec(method).is_some(),
            None => handlers.custom(method).is_some() || handlers.custom_notification(method).is_some(),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.server_info().name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
