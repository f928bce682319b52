//! Describing a server, step by step. Generics end here.

mod advertise;
mod parts;

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_types::icon::Icon;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::{METHODS, Method, Notification, Request};
use duplexer_types::version::Window;
use duplexer_types::wire::Freshness;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    Advertised, CustomEntry, Handlers, Identity, Installer, Lifespan, NotificationOptions, Part, Registry,
    Server, State, ToolHeaders, capabilities, part,
};
use crate::error::BoxError;
use crate::server::handler::{Bound, Custom, Entry, Handler, IntoReply, Nothing, Spec};
use crate::server::lifecycle;
use crate::server::middleware::Middleware;
use crate::server::request_state::RequestState;
use crate::server::subscriptions;

/// A server being described. `S` is the state that handlers registered from here on get.
#[must_use = "a server exists once it is built"]
pub struct ServerBuilder<S> {
    info: Implementation,
    instructions: Option<String>,
    handlers: Handlers,
    middleware: Vec<Arc<dyn Middleware>>,
    lifespans: Vec<Lifespan>,
    rest: Rest,
    state: PhantomData<fn() -> S>,
}

/// What is looked at only when the server is built.
#[derive(Default)]
struct Rest {
    hints: Vec<(String, Freshness)>,
    advertised: Advertised,
    tool_headers: Option<Arc<dyn ToolHeaders>>,
    /// Where among the middleware the states of requests are sealed.
    sealing: Option<usize>,
    parts: Vec<Box<dyn Part>>,
    faults: Vec<BuildError>,
}

/// Why a server cannot be built; the text says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The opening of a connection belongs to the kernel.
    #[error(
        "'{0}' is handled by the server runner and cannot be overridden; use middleware to observe or wrap initialization"
    )]
    Reserved(&'static str),
    /// A custom method has the name of one of the protocol.
    #[error("'{0}' is a method of the protocol: register its handler with `on` or `on_notification`")]
    SpecMethod(String),
    /// A custom method would be served in no revision at all.
    #[error("'{0}' is served in no revision: give it at least one")]
    NoRevision(String),
    /// A hint about freshness for a method whose results cannot be cached.
    #[error("cache hints are for cacheable methods ({cacheable}); got: {got}", cacheable = cacheable_names())]
    NotCacheable {
        /// The method the hint was for.
        got: String,
    },
    /// An extension's id is not `prefix/name`.
    #[error("'{0}' is not an extension id: it needs a prefix of dotted labels, a slash, and a name")]
    ExtensionId(String),
    /// An extension was given twice.
    #[error("extension '{0}' is registered twice")]
    DuplicateExtension(String),
    /// Nothing says for which server its request states are.
    #[error("request states need an audience: name the server, or say `RequestState::audience`")]
    NoAudience,
    /// The server's identity cannot be rendered.
    #[error("the server's identity cannot be written as JSON")]
    Identity(#[source] serde_json::Error),
    /// A part of the server, such as one of its tools, is not fit for use.
    #[error(transparent)]
    Part(BoxError),
}

fn cacheable_names() -> String {
    capabilities::cacheable().map(Method::name).collect::<Vec<_>>().join(", ")
}

impl ServerBuilder<()> {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            info: Implementation::new(name, ""),
            instructions: None,
            handlers: Handlers::new(),
            middleware: Vec::new(),
            lifespans: vec![unit_lifespan()],
            rest: Rest::default(),
            state: PhantomData,
        }
    }
}

/// The first slot: handlers registered before any lifespan have no state.
fn unit_lifespan() -> Lifespan {
    Lifespan { start: Box::new(|| Box::pin(async { Ok(Arc::new(()) as State) })), stop: None }
}

impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// The version of the server; empty if not given.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.info.version = version.into();
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What the server is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where people find more about it.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Pictures of it.
    pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
        self.info.icons = Some(icons.into());
        self
    }

    /// What models should know about its use.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Makes a state when the server starts, once for all connections. Handlers registered after this get it.
    pub fn lifespan<T, F, Fut, E>(mut self, start: F) -> ServerBuilder<T>
    where
        T: Any + Send + Sync,
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.lifespans.push(Lifespan {
            start: Box::new(move || {
                let made = start();
                Box::pin(async move { made.await.map(|state| Arc::new(state) as State).map_err(Into::into) })
            }),
            stop: None,
        });
        self.with_state_type()
    }

    /// Uses a state that is there already. Handlers registered after this get it.
    pub fn state<T: Any + Send + Sync>(mut self, state: T) -> ServerBuilder<T> {
        let state: State = Arc::new(state);
        self.lifespans.push(Lifespan {
            start: Box::new(move || Box::pin(std::future::ready(Ok(Arc::clone(&state))))),
            stop: None,
        });
        self.with_state_type()
    }

    /// Runs when the server ends, after all connections, with the state of the last lifespan. Bounded in time.
    pub fn on_shutdown<F, Fut>(mut self, stop: F) -> Self
    where
        F: Fn(Arc<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        if let Some(lifespan) = self.lifespans.last_mut() {
            lifespan.stop = Some(Box::new(move |state| match state.downcast::<S>() {
                Ok(state) => Box::pin(stop(state)),
                Err(_) => Box::pin(std::future::ready(())),
            }));
        }
        self
    }

    fn with_state_type<T>(self) -> ServerBuilder<T> {
        ServerBuilder {
            info: self.info,
            instructions: self.instructions,
            handlers: self.handlers,
            middleware: self.middleware,
            lifespans: self.lifespans,
            rest: self.rest,
            state: PhantomData,
        }
    }

    fn slot(&self) -> usize {
        self.lifespans.len() - 1
    }

    /// Handles a request of the protocol. A later handler of the same method replaces this one.
    pub fn on<M, H, Shape>(mut self, _method: M, handler: H) -> Self
    where
        M: Request,
        H: Handler<S, M::Params, Shape>,
        H::Output: IntoReply<M::Result> + Send,
        Shape: 'static,
    {
        if lifecycle::is_reserved(M::METHOD) {
            self.rest.faults.push(BuildError::Reserved(M::METHOD.name()));
            return self;
        }
        let entry = Bound::<H, S, M::Params, Shape, Spec<M::Result>>::new(handler, self.slot());
        self.handlers.set(M::METHOD, Arc::new(entry));
        self
    }

    /// Handles a notification of the protocol. A later handler of the same method replaces this one.
    pub fn on_notification<N, H, Shape>(mut self, _method: N, handler: H) -> Self
    where
        N: Notification,
        H: Handler<S, N::Params, Shape, Output = ()>,
        Shape: 'static,
    {
        let entry = Bound::<H, S, N::Params, Shape, Nothing>::new(handler, self.slot());
        self.handlers.set(N::METHOD, Arc::new(entry));
        self
    }

    /// Handles a request that is not part of the protocol, in every revision.
    pub fn on_custom<P, H, Shape>(self, method: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        self.on_custom_in(method, Window::ALWAYS, handler)
    }

    /// Handles a request that is not part of the protocol, in some revisions; in others there is no such method.
    pub fn on_custom_in<P, H, Shape>(mut self, method: impl Into<String>, window: Window, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape>,
        H::Output: Serialize + Send,
        Shape: 'static,
    {
        let method = method.into();
        if window.first() > window.last() {
            self.rest.faults.push(BuildError::NoRevision(method.clone()));
        }
        if self.is_custom(&method) {
            let entry: Arc<dyn Entry> = Arc::new(Bound::<H, S, P, Shape, Custom>::new(handler, self.slot()));
            self.handlers.custom.insert(method, CustomEntry { entry, window });
        }
        self
    }

    /// Handles a notification that is not part of the protocol.
    pub fn on_custom_notification<P, H, Shape>(mut self, method: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<S, P, Shape, Output = ()>,
        Shape: 'static,
    {
        let method = method.into();
        if self.is_custom(&method) {
            let entry: Arc<dyn Entry> = Arc::new(Bound::<H, S, P, Shape, Nothing>::new(handler, self.slot()));
            self.handlers.custom_notifications.insert(method, entry);
        }
        self
    }

    fn is_custom(&mut self, method: &str) -> bool {
        match Method::parse(method) {
            None => true,
            Some(spec) => {
                let reserved = lifecycle::is_reserved(spec);
                let fault = if reserved {
                    BuildError::Reserved(spec.name())
                } else {
                    BuildError::SpecMethod(method.to_owned())
                };
                self.rest.faults.push(fault);
                false
            }
        }
    }

    /// Wraps every message; what is added first is outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Seals the states that handlers send through the client when they ask for input.
    ///
    /// It is middleware, and what is added after it sees plain states: add it behind tracing and before the rest.
    /// A later call replaces an earlier one in its place.
    pub fn request_state(mut self, state: RequestState) -> Self {
        let Some(sealing) = state.into_middleware(&self.info.name) else {
            self.rest.faults.push(BuildError::NoAudience);
            return self;
        };
        if let Some(earlier) = self.rest.sealing.and_then(|place| self.middleware.get_mut(place)) {
            *earlier = Arc::new(sealing);
        } else {
            self.rest.sealing = Some(self.middleware.len());
            self.middleware.push(Arc::new(sealing));
        }
        self
    }

    /// How fresh the results of a cacheable method are, where its handler does not say.
    pub fn cache_hint(mut self, method: impl Into<String>, hint: Freshness) -> Self {
        self.rest.hints.push((method.into(), hint));
        self
    }

    /// Where transports with headers find the annotations of tools.
    pub fn tool_headers(mut self, headers: impl ToolHeaders) -> Self {
        self.rest.tool_headers = Some(Arc::new(headers));
        self
    }

    /// Checks everything and finishes the server.
    pub fn build(mut self) -> Result<Server, BuildError> {
        if let Some(fault) = self.rest.faults.into_iter().next() {
            return Err(fault);
        }
        let hints = freshness(self.rest.hints)?;
        let mut kept = part::Kept::new();
        for part in self.rest.parts {
            let into = &mut Installer {
                handlers: &mut self.handlers,
                advertised: &mut self.rest.advertised,
                tool_headers: &mut self.rest.tool_headers,
                kept: &mut kept,
            };
            part.install(into).map_err(BuildError::Part)?;
        }
        lifecycle::register(&mut self.handlers);
        if self.rest.advertised.subscriptions.is_some() {
            subscriptions::register(&mut self.handlers);
        }
        let own_sealing = match self.rest.sealing {
            Some(_) => None,
            None => RequestState::ephemeral().audience(self.info.name.as_str()).into_middleware(""),
        };
        let stamp = Json::of(&self.info).map_err(BuildError::Identity)?;
        Ok(Server(Arc::new(Registry {
            identity: Identity { info: self.info, stamp, instructions: self.instructions },
            handlers: self.handlers,
            middleware: self.middleware,
            lifespans: self.lifespans,
            hints,
            advertised: self.rest.advertised,
            tool_headers: self.rest.tool_headers,
            own_sealing,
            kept,
        })))
    }
}

/// What unset freshness is filled with, by method.
fn freshness(given: Vec<(String, Freshness)>) -> Result<Vec<Option<Freshness>>, BuildError> {
    let mut hints: Vec<_> =
        METHODS.iter().map(|row| row.method.is_cacheable().then(Freshness::default)).collect();
    for (name, hint) in given {
        let method = Method::parse(&name).filter(|method| method.is_cacheable());
        let slot = method.and_then(|method| hints.get_mut(method as usize));
        *slot.ok_or(BuildError::NotCacheable { got: name })? = Some(hint);
    }
    Ok(hints)
}

impl Handlers {
    /// Puts the kernel's own entry there, where nobody else has.
    pub(in crate::server) fn set_default(&mut self, method: Method, entry: Arc<dyn Entry>) {
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
