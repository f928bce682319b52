//! The registry: an immutable table of handlers, together with the identity of the server.

mod background;
pub(crate) mod capabilities;
mod running;
mod slot;

use std::collections::{BTreeMap, HashMap};
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
use crate::features::tasks;
use crate::kernel::handler::Entry;
use crate::kernel::observer::Observers;
use crate::middleware::Middleware;
use duplexer_core::dispatch::BoxFuture;

pub use background::RunContext;
pub(crate) use background::WorkFn;
pub use capabilities::NotificationOptions;
pub(crate) use running::WeakServer;
pub use running::{InitializeOverride, RunningServer, StartError};
pub(crate) use slot::{SlotId, StateSlot};

/// A built server: its identity, its capabilities and its handlers. [`Server::start`] makes it ready to serve.
///
/// Cheap to clone and immutable.
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::tool::Tool;
/// let server = Server::builder("greeter", "1.0.0").tool(Tool::new("greet", || async { "hello" })).build()?;
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Registry>);

pub(crate) struct Registry {
    pub(crate) identity: Identity,
    pub(crate) handlers: Handlers,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) observers: Observers,
    pub(crate) lifespans: Vec<Lifespan>,
    /// Default freshness by method; `None` where results cannot be cached.
    pub(crate) hints: Vec<Option<Freshness>>,
    pub(crate) advertised: Advertised,
    pub(crate) tool_headers: Option<ToolHeaders>,
    /// Seals the state of input rounds where no middleware does.
    pub(crate) own_sealing: Option<crate::features::request_state::Sealing>,
    /// Whether other processes can open sealed request states.
    pub(crate) shares_states: bool,
    /// Maximum size of a file that a resource reads.
    pub(crate) max_file_size: u64,
    /// The catalog of tools, resources and prompts. The catalog layer downcasts it, because this layer does not know
    /// its type.
    pub(crate) catalog: Option<Arc<dyn std::any::Any + Send + Sync>>,
    /// Store and settings of tasks, if the server has them.
    pub(crate) tasks: Option<tasks::Plan>,
}

/// The identity that the server declares.
pub(crate) struct Identity {
    pub(crate) info: Implementation,
    /// The same, rendered once, for the `_meta` of every result.
    pub(crate) stamp: Json,
    pub(crate) instructions: Option<String>,
}

/// Inputs of the derived capabilities, besides the handlers.
#[derive(Default)]
pub(crate) struct Advertised {
    pub(crate) changes: NotificationOptions,
    pub(crate) experimental: JsonObject,
    /// Declared extensions by id, in alphabetical order.
    pub(crate) extensions: BTreeMap<String, DeclaredExtension>,
    /// The bus and its limits, if subscriptions are served.
    pub(crate) subscriptions: Option<Plan>,
    /// The bus is there for tasks alone: the server reports no other changes.
    pub(crate) tasks_only: bool,
}

/// The settings of an extension, and the revisions in which it is declared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredExtension {
    pub(crate) settings: Json,
    pub(crate) window: Window,
}

/// Handlers of spec methods by index, of custom methods by name.
pub(crate) struct Handlers {
    pub(crate) spec: Vec<Option<Arc<dyn Entry>>>,
    pub(crate) custom: HashMap<String, CustomEntry>,
    pub(crate) custom_notifications: HashMap<String, Arc<dyn Entry>>,
}

/// A custom method and the revisions in which it is served.
#[derive(Clone)]
pub(crate) struct CustomEntry {
    pub(crate) entry: Arc<dyn Entry>,
    pub(crate) window: Window,
}

/// Start-up and shutdown of one state that handlers share.
pub(crate) struct Lifespan {
    pub(crate) slot: SlotId,
    pub(crate) start: StartFn,
    pub(crate) stop: Option<StopFn>,
    /// Work beside requests, with this state.
    pub(crate) work: Vec<WorkFn>,
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
    /// Returns the identity that the server declares.
    pub fn server_info(&self) -> &Implementation {
        &self.0.identity.info
    }

    /// Returns the instructions for clients and models.
    pub fn instructions(&self) -> Option<&str> {
        self.0.identity.instructions.as_deref()
    }

    /// Returns the capabilities for clients of this revision. They are derived from the handlers.
    pub fn capabilities(&self, version: ProtocolVersion) -> ServerCapabilities {
        capabilities::derive(&self.0, version)
    }

    /// Returns whether processes with the same keys can open the request states that this one seals: not with a random key,
    /// which is the default.
    pub fn shares_request_states(&self) -> bool {
        self.0.shares_states
    }

    /// Returns whether a handler is registered for this method, a spec method or a custom one.
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
