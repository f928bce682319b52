//! A started server: the registry together with the states of its lifespans.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_core::tasks::TaskTracker;
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{ResultBody, ResultMeta, write_result};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::background::Background;
use super::{Registry, Server, StateSlot};
use crate::features::subscriptions::Subscriptions;
use crate::features::tasks::Engine;
use crate::kernel::connection::Connection;
use crate::kernel::context::StateMap;
use crate::kernel::outcome::Outcome;
use crate::kernel::runner::{PendingResponse, ServerRunner};
use duplexer_core::dispatch::{CallContext, Message};
use duplexer_core::error::{BoxError, McpError};

/// Maximum duration of the shutdown of all lifespans.
const SHUTDOWN_BUDGET: Duration = Duration::from_secs(5);

/// A started server. Drivers serve connections with it. Cheap to clone.
///
/// ```
/// use duplexer::client::Client;
/// use duplexer::testing::in_process;
/// use duplexer::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let running = Server::builder("calculator", "1.0.0").build()?.start().await?;
/// let client = in_process(&running, Client::builder("program", "1")).await?;
/// assert_eq!(client.server_info().unwrap().name, "calculator");
/// client.close().await?;
/// running.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RunningServer(Arc<Inner>);

struct Inner {
    server: Server,
    states: Arc<StateMap>,
    initialize: InitializeOverride,
    subscriptions: Option<Arc<Subscriptions>>,
    tasks: Option<Arc<Engine>>,
    /// Tasks that outlive their request, such as the close hooks of a connection whose request was cancelled.
    unfinished: TaskTracker,
    /// Work beside requests. The work itself has a handle without it, so that it ends when all other handles are gone.
    background: Arc<OnceLock<Background>>,
}

/// Error of [`Server::start`]: a lifespan could not start. The lifespans before it have been stopped.
#[derive(Debug, thiserror::Error)]
#[error("the server could not start")]
pub struct StartError(#[source] BoxError);

/// Replaces parts of the `initialize` result for one run of a server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InitializeOverride {
    /// The identity.
    pub server_info: Option<Implementation>,
    /// The capabilities.
    pub capabilities: Option<ServerCapabilities>,
    /// The instructions.
    pub instructions: Option<String>,
}

impl Server {
    /// Starts every lifespan, in order.
    ///
    /// # Errors
    ///
    /// Fails with the error of the first lifespan that cannot start, after the lifespans before it have been stopped.
    pub async fn start(&self) -> Result<RunningServer, StartError> {
        let mut states = StateMap::default();
        for lifespan in &self.0.lifespans {
            match (lifespan.start)().await {
                Ok(state) => states.0.push((lifespan.slot, state)),
                Err(error) => {
                    stop(&self.0, &states, SHUTDOWN_BUDGET).await;
                    return Err(StartError(error));
                }
            }
        }
        let unfinished = TaskTracker::new();
        let plan = self.0.advertised.subscriptions.clone();
        let engine = self.0.tasks.clone().map(|plan| Engine::new(plan, WeakServer::default()));
        let tasks = engine.map(Arc::new);
        let running = RunningServer(Arc::new(Inner {
            server: self.clone(),
            states: Arc::new(states),
            initialize: InitializeOverride::default(),
            subscriptions: plan.map(|plan| Arc::new(Subscriptions::new(plan, unfinished.clone()))),
            tasks,
            unfinished,
            background: Arc::default(),
        }));
        if let Some(tasks) = running.tasks() {
            tasks.set_server(running.downgrade());
            tasks.start_upkeep();
        }
        let for_work = running.with(|copy| copy.background = Arc::default());
        running.0.background.get_or_init(|| Background::start(&self.0, &for_work));
        Ok(running)
    }
}

impl RunningServer {
    /// Returns the server that runs.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// Returns the same run with another `initialize` result.
    #[must_use]
    pub fn with_initialize(&self, initialize: InitializeOverride) -> Self {
        let running = self.with(|copy| copy.initialize = initialize);
        if let Some(tasks) = running.tasks() {
            tasks.set_server(running.downgrade());
        }
        running
    }

    /// Returns another handle of the same run.
    fn with(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut copy = Inner {
            server: self.0.server.clone(),
            states: Arc::clone(&self.0.states),
            initialize: self.0.initialize.clone(),
            subscriptions: self.0.subscriptions.clone(),
            tasks: self.0.tasks.clone(),
            unfinished: self.0.unfinished.clone(),
            background: Arc::clone(&self.0.background),
        };
        change(&mut copy);
        Self(Arc::new(copy))
    }

    /// Calls a handler like a request on `connection`, without a transport.
    ///
    /// # Errors
    ///
    /// Returns the error that the client would get.
    pub async fn call(
        &self,
        connection: &Arc<Connection>,
        cx: CallContext,
        method: &str,
        params: Option<&str>,
    ) -> Result<Outcome, McpError> {
        let message = Message::new(method.to_owned(), params.map(ByteString::from));
        ServerRunner::new(self.clone(), Arc::clone(connection))
            .request(cx, message)
            .await
            .map(PendingResponse::into_outcome)
    }

    /// Ends the work beside requests, tasks and subscriptions, then every lifespan in reverse order, within five seconds.
    pub async fn shutdown(&self) {
        self.shutdown_within(SHUTDOWN_BUDGET).await;
    }

    /// Does the same within a budget that the caller shares with other work.
    pub async fn shutdown_within(&self, budget: Duration) {
        let start = Instant::now();
        if let Some(background) = self.0.background.get() {
            background.stop(budget / 4).await;
        }
        if let Some(tasks) = self.tasks() {
            tasks.shut_down(budget / 2).await;
        }
        if let Some(subscriptions) = self.subscriptions() {
            subscriptions.close();
        }
        self.0.unfinished.close();
        if timeout(budget.saturating_sub(start.elapsed()), self.0.unfinished.wait()).await.is_err() {
            tracing::warn!("hooks of ended connections took too long and were left behind");
        }
        stop(self.registry(), &self.0.states, budget.saturating_sub(start.elapsed())).await;
    }

    /// Spawns `work` as a task that [`shutdown`](Self::shutdown) waits for.
    pub fn spawn_tracked(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.0.unfinished.spawn_on(work, &runtime);
        } else {
            tracing::warn!("outside of a runtime nothing can be finished later");
        }
    }

    /// Returns whether the server has observers.
    pub(crate) fn is_observed(&self) -> bool {
        !self.registry().observers.is_empty()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.server.0
    }

    pub(crate) fn subscriptions(&self) -> Option<&Arc<Subscriptions>> {
        self.0.subscriptions.as_ref()
    }

    pub(crate) fn tasks(&self) -> Option<&Arc<Engine>> {
        self.0.tasks.as_ref()
    }

    pub(crate) fn downgrade(&self) -> WeakServer {
        WeakServer(Arc::downgrade(&self.0))
    }

    pub(crate) fn states(&self) -> &Arc<StateMap> {
        &self.0.states
    }

    pub(crate) fn initialize_override(&self) -> &InitializeOverride {
        &self.0.initialize
    }

    /// Returns the `_meta` that the envelope era adds to a result of this method.
    pub(crate) fn stamp(&self, method: Option<Method>) -> ResultMeta<'_> {
        let hint = method.and_then(|method| self.registry().hints.get(method as usize).copied().flatten());
        ResultMeta { server_info: Some(&self.registry().identity.stamp), hint }
    }

    /// Returns the slot of the last state of type `S`.
    pub(crate) fn state_slot<S: std::any::Any + Send + Sync>(&self) -> Option<StateSlot<S>> {
        self.0.states.0.iter().rfind(|(_, state)| state.is::<S>()).map(|(slot, _)| StateSlot::new(*slot))
    }

    /// Renders a whole result once for many requests, in the shape of `version` and with the server's `_meta`.
    ///
    /// # Errors
    ///
    /// Fails if the result cannot be written as JSON.
    pub fn render<R: ResultBody>(
        &self,
        method: Method,
        result: &R,
        version: ProtocolVersion,
    ) -> Result<ByteString, McpError> {
        let mut text = Vec::new();
        write_result(&mut text, result, version, self.stamp(Some(method))).map_err(McpError::internal)?;
        ByteString::try_from(text).map_err(McpError::internal)
    }

    /// Returns whether clients know that the server logs to them.
    pub(crate) fn declares_logging(&self) -> bool {
        let instead = self.0.initialize.capabilities.as_ref();
        self.registry().handlers.spec(Method::LoggingSetLevel).is_some()
            || instead.is_some_and(|capabilities| capabilities.logging.is_some())
    }

    /// Returns the capabilities for an `initialize` result.
    pub(crate) fn handshake_capabilities(&self, version: ProtocolVersion) -> ServerCapabilities {
        self.0.initialize.capabilities.clone().unwrap_or_else(|| self.server().capabilities(version))
    }
}

/// A running server that is not kept alive.
#[derive(Clone, Default)]
pub(crate) struct WeakServer(Weak<Inner>);

impl WeakServer {
    pub(crate) fn upgrade(&self) -> Option<RunningServer> {
        self.0.upgrade().map(RunningServer)
    }
}

async fn stop(registry: &Registry, states: &StateMap, budget: Duration) {
    let all = async {
        for (lifespan, (_, state)) in registry.lifespans.iter().zip(&states.0).rev() {
            if let Some(stop) = &lifespan.stop {
                crate::kernel::connection::contained(stop(Arc::clone(state))).await;
            }
        }
    };
    if timeout(budget, all).await.is_err() {
        tracing::warn!("the server's lifespans took too long to end and were cut");
    }
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunningServer").field(&self.0.server).finish()
    }
}
