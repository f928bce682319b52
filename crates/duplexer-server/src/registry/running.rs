//! A started server: the registry together with what its lifespans have made.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{ResultBody, ResultMeta, write_result};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::{Registry, Server, StateSlot};
use crate::features::subscriptions::Subscriptions;
use crate::kernel::connection::Connection;
use crate::kernel::context::StateMap;
use crate::kernel::outcome::Outcome;
use crate::kernel::runner::{PendingResponse, ServerRunner};
use duplexer_core::dispatch::{CallContext, Invocation};
use duplexer_core::error::{BoxError, McpError};

/// How long all lifespans together may take to end.
const SHUTDOWN_BUDGET: Duration = Duration::from_secs(5);

/// A server that has started. Drivers serve connections with it. Cheap to clone.
#[derive(Clone)]
pub struct RunningServer(Arc<Inner>);

struct Inner {
    server: Server,
    states: Arc<StateMap>,
    initialize: InitializeOverride,
    subscriptions: Option<Arc<Subscriptions>>,
    /// What outlives the request it belongs to, such as the hooks of a connection whose request was cancelled.
    unfinished: TaskTracker,
}

/// A lifespan could not start; those before it have been ended again.
#[derive(Debug, thiserror::Error)]
#[error("the server could not start")]
pub struct StartError(#[source] BoxError);

/// What one run says in its handshake instead of what the server says.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InitializeOverride {
    /// Another identity.
    pub server_info: Option<Implementation>,
    /// Other capabilities.
    pub capabilities: Option<ServerCapabilities>,
    /// Other instructions.
    pub instructions: Option<String>,
}

impl Server {
    /// Runs the start-up of every lifespan, in order.
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
        Ok(RunningServer(Arc::new(Inner {
            server: self.clone(),
            states: Arc::new(states),
            initialize: InitializeOverride::default(),
            subscriptions: plan.map(|plan| Arc::new(Subscriptions::new(plan, unfinished.clone()))),
            unfinished,
        })))
    }
}

impl RunningServer {
    /// The server that runs.
    pub fn server(&self) -> &Server {
        &self.0.server
    }

    /// The same run, with another handshake.
    #[must_use]
    pub fn with_initialize(&self, initialize: InitializeOverride) -> Self {
        Self(Arc::new(Inner {
            server: self.0.server.clone(),
            states: Arc::clone(&self.0.states),
            initialize,
            subscriptions: self.0.subscriptions.clone(),
            unfinished: self.0.unfinished.clone(),
        }))
    }

    /// Calls a handler as a request of `connection` would, without any transport.
    pub async fn call(
        &self,
        connection: &Arc<Connection>,
        cx: CallContext,
        method: &str,
        params: Option<&str>,
    ) -> Result<Outcome, McpError> {
        let message = Invocation::new(method.to_owned(), params.map(ByteString::from));
        ServerRunner::new(self.clone(), Arc::clone(connection))
            .request(cx, message)
            .await
            .map(PendingResponse::into_outcome)
    }

    /// Ends every subscription, then every lifespan, the last one first. Bounded in time.
    pub async fn shutdown(&self) {
        self.shutdown_within(SHUTDOWN_BUDGET).await;
    }

    /// Ends every lifespan within a budget that others share.
    pub async fn shutdown_within(&self, budget: Duration) {
        let start = Instant::now();
        if let Some(subscriptions) = self.subscriptions() {
            subscriptions.close();
        }
        self.0.unfinished.close();
        if timeout(budget, self.0.unfinished.wait()).await.is_err() {
            tracing::warn!("hooks of ended connections took too long and were left behind");
        }
        stop(self.registry(), &self.0.states, budget.saturating_sub(start.elapsed())).await;
    }

    /// Runs `work` in a task of its own; [`shutdown`](Self::shutdown) waits for it.
    pub fn spawn_tracked(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.0.unfinished.spawn_on(work, &runtime);
        } else {
            tracing::warn!("outside of a runtime nothing can be finished later");
        }
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.server.0
    }

    pub(crate) fn subscriptions(&self) -> Option<&Arc<Subscriptions>> {
        self.0.subscriptions.as_ref()
    }

    pub(crate) fn states(&self) -> &Arc<StateMap> {
        &self.0.states
    }

    pub(crate) fn initialize_override(&self) -> &InitializeOverride {
        &self.0.initialize
    }

    /// What the envelope era adds to a result of this method.
    pub(crate) fn stamp(&self, method: Option<Method>) -> ResultMeta<'_> {
        let hint = method.and_then(|method| self.registry().hints.get(method as usize).copied().flatten());
        ResultMeta { server_info: Some(&self.registry().identity.stamp), hint }
    }

    /// Where the state of type `S` is found among those of this server: the last one of that type.
    pub(crate) fn state_slot<S: std::any::Any + Send + Sync>(&self) -> Option<StateSlot<S>> {
        self.0.states.0.iter().rfind(|(_, state)| state.is::<S>()).map(|(slot, _)| StateSlot::new(*slot))
    }

    /// Renders a result once for many requests: whole, as `version` has it, stamped like any other.
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

    /// The capabilities told in a handshake.
    pub(crate) fn handshake_capabilities(&self, version: ProtocolVersion) -> ServerCapabilities {
        self.0.initialize.capabilities.clone().unwrap_or_else(|| self.server().capabilities(version))
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
