//! The server builder, the composition root of this crate. Generic handler types are erased here.

mod advertise;
mod catalog;
mod compose;
mod error;
pub(crate) mod extension;
mod handlers;
mod lifespan;

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::wire::Freshness;

use crate::catalog::CatalogDraft;
use crate::catalog::resource::MAX_FILE_SIZE;
use crate::features::request_state::RequestState;
use crate::features::{subscriptions, tasks};
use crate::kernel::handler::Entry;
use crate::kernel::lifecycle;
use crate::kernel::observer::Observer;
use crate::middleware::Middleware;
use crate::registry::{
    Advertised, Handlers, Identity, Lifespan, NotificationOptions, Registry, Server, ToolHeaders,
};

pub use error::BuildError;
pub use extension::Extension;

/// Builder of a [`Server`]. `S` is the state that handlers registered from here on receive.
///
/// ```
/// # use duplexer_server::{Context, Server};
/// # use duplexer_server::resource::Resource;
/// # use duplexer_server::tool::Tool;
/// struct Counter(std::sync::atomic::AtomicU32);
///
/// async fn count(cx: Context<Counter>) -> u32 {
///     cx.state().0.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
/// }
///
/// let server = Server::builder("counter", "1.0.0")
///     .title("A counter")
///     .instructions("Call `count` as often as you like.")
///     .state(Counter(0.into()))
///     .tool(Tool::new("count", count))
///     .resource(Resource::text("about://counter", "It counts.").name("about"))
///     .build()?;
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
#[must_use = "a server exists once it is built"]
pub struct ServerBuilder<S> {
    info: Implementation,
    instructions: Option<String>,
    handlers: Handlers,
    middleware: Vec<Arc<dyn Middleware>>,
    lifespans: Vec<Lifespan>,
    deferred: Deferred,
    state: PhantomData<fn() -> S>,
}

/// Registrations that are evaluated by `build`.
#[derive(Default)]
struct Deferred {
    hints: Vec<(String, Freshness)>,
    advertised: Advertised,
    tool_headers: Option<ToolHeaders>,
    /// Index of the middleware that seals request states.
    sealing: Option<usize>,
    /// Whether other processes can open sealed request states.
    shares_states: bool,
    catalog: Option<CatalogDraft>,
    faults: Vec<BuildError>,
    observers: Vec<Arc<dyn Observer>>,
    /// Set while registered handlers must not be replaced.
    forbid_replace: bool,
    /// Whether clients can set the level of log messages.
    logging: bool,
    max_file_size: Option<u64>,
    /// Store and settings of tasks.
    tasks: Option<tasks::Plan>,
    /// Number of lifespans, counted from the first, that came from merged servers.
    merged: usize,
}

impl Server {
    /// Returns a builder for a server that identifies itself with this name and version (`serverInfo`).
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder<()> {
        ServerBuilder::new(Implementation::new(name, version))
    }
}

impl ServerBuilder<()> {
    fn new(info: Implementation) -> Self {
        Self {
            info,
            instructions: None,
            handlers: Handlers::new(),
            middleware: Vec::new(),
            lifespans: vec![Lifespan::unit()],
            deferred: Deferred::default(),
            state: PhantomData,
        }
    }
}

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Adds middleware around every message. The first added is outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds an observer of every message. Those of a merged server observe the messages of the whole.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.deferred.observers.push(Arc::new(observer));
        self
    }

    /// Seals the states that handlers send through the client when they request input.
    ///
    /// It is middleware, and middleware added after it sees plain states: add it after tracing and before all others.
    /// A later call replaces the middleware of an earlier one at the same position.
    pub fn request_state(mut self, state: RequestState) -> Self {
        self.deferred.shares_states = state.has_shared_keys();
        let Some(sealing) = state.into_middleware(&self.info.name) else {
            self.deferred.faults.push(BuildError::NoAudience);
            return self;
        };
        if let Some(earlier) = self.deferred.sealing.and_then(|index| self.middleware.get_mut(index)) {
            *earlier = Arc::new(sealing);
        } else {
            self.deferred.sealing = Some(self.middleware.len());
            self.middleware.push(Arc::new(sealing));
        }
        self
    }

    /// Sets the freshness of the results of a cacheable method, for results without freshness of their own.
    pub fn cache_hint(mut self, method: impl Into<String>, hint: Freshness) -> Self {
        self.deferred.hints.push((method.into(), hint));
        self
    }

    /// Sets the look-up through which transports with headers find the annotations of tools.
    pub fn tool_headers(
        mut self,
        headers: impl Fn(&str) -> Option<Arc<ParamHeaders>> + Send + Sync + 'static,
    ) -> Self {
        self.deferred.tool_headers = Some(Arc::new(headers));
        self
    }

    /// Validates all registrations and returns the server.
    ///
    /// # Errors
    ///
    /// Returns every fault of the setters, and otherwise the first fault of the catalog or of the identity.
    pub fn build(mut self) -> Result<Server, BuildError> {
        let hints = freshness(std::mem::take(&mut self.deferred.hints), &mut self.deferred.faults);
        if let Some(fault) = BuildError::from_faults(std::mem::take(&mut self.deferred.faults)) {
            return Err(fault);
        }
        let catalog = match self.deferred.catalog.take() {
            Some(draft) => Some(self.install(draft)?),
            None => None,
        };
        let tasks = self.link_tasks();
        if self.deferred.logging {
            advertise::register_logging(&mut self.handlers);
        }
        lifecycle::register(&mut self.handlers);
        if self.deferred.advertised.subscriptions.is_some() {
            subscriptions::register(&mut self.handlers);
        }
        let own_sealing = match self.deferred.sealing {
            Some(_) => None,
            None => RequestState::ephemeral().audience(self.info.name.as_str()).into_middleware(""),
        };
        let stamp = Json::encode(&self.info).map_err(BuildError::Identity)?;
        Ok(Server(Arc::new(Registry {
            identity: Identity { info: self.info, stamp, instructions: self.instructions },
            handlers: self.handlers,
            middleware: self.middleware,
            observers: self.deferred.observers.into(),
            lifespans: self.lifespans,
            hints,
            advertised: self.deferred.advertised,
            tool_headers: self.deferred.tool_headers,
            own_sealing,
            shares_states: self.deferred.shares_states,
            max_file_size: self.deferred.max_file_size.unwrap_or(MAX_FILE_SIZE),
            catalog: catalog.map(|catalog| catalog as _),
            tasks,
        })))
    }
}

/// Returns the default freshness of results, by method.
fn freshness(given: Vec<(String, Freshness)>, faults: &mut Vec<BuildError>) -> Vec<Option<Freshness>> {
    let mut hints: Vec<_> =
        METHODS.iter().map(|row| row.method.is_cacheable().then(Freshness::default)).collect();
    for (name, hint) in given {
        let method = Method::parse(&name).filter(|method| method.is_cacheable());
        let slot = method.and_then(|method| hints.get_mut(method as usize));
        match slot {
            Some(slot) => *slot = Some(hint),
            None => faults.push(BuildError::NotCacheable { got: name }),
        }
    }
    hints
}

impl Handlers {
    /// Registers the kernel's own entry, unless the author has registered one.
    pub(crate) fn set_default(&mut self, method: Method, entry: Arc<dyn Entry>) {
        if self.spec(method).is_none() {
            self.set(method, entry);
        }
    }
}

impl<S> std::fmt::Debug for ServerBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerBuilder").field("name", &self.info.name).finish_non_exhaustive()
    }
}
