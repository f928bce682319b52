//! Many servers behind one: their tools and prompts under prefixes, their resources under their URIs.
//!
//! `backend` keeps the lists of one server up to date, apart from all others; `lists` limits what a server can list; `route`
//! finds the server that a request is for; `handlers` are the methods of the gateway.

pub(crate) mod backend;
mod handlers;
pub(crate) mod lists;
mod names;
pub(crate) mod route;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use duplexer_server::subscriptions::MemoryBus;
use duplexer_server::{BuildError, RunContext, Server};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::backend::Backend;
use crate::remote::Remote;

pub use self::backend::Health;
pub use self::names::BackendSettings;

/// Interval in which sessions that are no longer used are looked for.
const REAP_INTERVAL: Duration = Duration::from_secs(15);

/// Many servers as one.
///
/// A tool or prompt `name` of the server `files` is called `files__name`; resources keep their URIs, and the first server
/// that has one answers. A server that fails or hangs fails only its own requests: lists contain what it last offered.
///
/// ```
/// use duplexer_client::{Client, ClientBuilder};
/// use duplexer_proxy::{BackendSettings, Gateway, Remote};
/// use duplexer::client::prelude::*;
/// # /// Adds.
/// # #[duplexer::tool]
/// # async fn add(a: i64, b: i64) -> i64 { a + b }
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// # let far = duplexer::Server::builder("calculator", "1").tool(add).build()?;
/// let sums = Remote::new(move |builder: ClientBuilder| builder.connect(far.in_process()));
/// let gateway = Gateway::new("office", "1").backend(BackendSettings::new("sums"), sums);
/// let (server, _handle) = gateway.server()?;
/// let client = Client::builder("my-agent", "1").connect(server.in_process()).await?;
/// let sum = client.call_tool("sums__add", serde_json::json!({"a": 1, "b": 2})).text().await?;
/// assert_eq!(sum, "3");
/// # client.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a gateway is offered by `server`"]
pub struct Gateway {
    name: String,
    version: String,
    backends: Vec<(BackendSettings, Remote)>,
}

/// Changes the servers of a running [`Gateway`], and reports their health.
#[derive(Clone)]
pub struct GatewayHandle(Arc<Shared>);

/// What the handlers and the handle share.
pub(crate) struct Shared {
    backends: Mutex<Vec<Arc<Backend>>>,
    /// Notified when servers have been replaced.
    replaced: Notify,
}

impl Gateway {
    /// Creates a gateway with this name and version, which clients get to see.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), backends: Vec::new() }
    }

    /// Adds a server.
    pub fn backend(mut self, settings: BackendSettings, remote: Remote) -> Self {
        self.backends.push((settings, remote));
        self
    }

    /// Returns the gateway as a server, and a handle to change it while it runs.
    ///
    /// # Errors
    ///
    /// Fails like [`ServerBuilder::build`](duplexer_server::ServerBuilder::build).
    pub fn server(self) -> Result<(Server, GatewayHandle), BuildError> {
        let backends = self.backends.into_iter().map(|(settings, remote)| Backend::new(settings, remote));
        let shared = Arc::new(Shared { backends: Mutex::new(backends.collect()), replaced: Notify::new() });
        let (running, ending) = (Arc::clone(&shared), Arc::clone(&shared));
        let builder = Server::builder(self.name, self.version)
            .logging()
            .subscriptions(MemoryBus::new())
            .notification_options(duplexer_server::NotificationOptions::all());
        let server = handlers::register(builder, &shared)
            .while_running(move |cx| work(Arc::clone(&running), cx))
            .on_shutdown(move |_| {
                let shared = Arc::clone(&ending);
                async move { shared.close().await }
            })
            .build()?;
        Ok((server, GatewayHandle(shared)))
    }
}

/// Starts the servers, and closes sessions that are no longer used.
async fn work(shared: Arc<Shared>, cx: RunContext<()>) {
    let mut tasks = JoinSet::new();
    loop {
        for backend in shared.backends().into_iter().filter(|backend| backend.begin()) {
            tasks.spawn(backend.supervise(cx.server().clone()));
        }
        tokio::select! {
            () = shared.replaced.notified() => backend::publish_all(cx.server()).await,
            () = tokio::time::sleep(REAP_INTERVAL) => {
                // Beside the loop: a session that does not end must not delay the other servers.
                for backend in shared.backends() {
                    tasks.spawn(async move { backend.pool().reap().await });
                }
            }
        }
        while tasks.try_join_next().is_some() {}
    }
}

impl Shared {
    /// Returns the servers in the order of the configuration.
    pub(crate) fn backends(&self) -> Vec<Arc<Backend>> {
        lock(&self.backends).clone()
    }

    async fn close(&self) {
        close_all(self.backends()).await;
    }
}

/// Ends the sessions of servers, of all at once: one that hangs does not delay the others.
async fn close_all(backends: Vec<Arc<Backend>>) {
    let mut closing = JoinSet::new();
    for backend in backends {
        closing.spawn(async move { backend.close().await });
    }
    while closing.join_next().await.is_some() {}
}

impl GatewayHandle {
    /// Replaces the servers. Those whose settings and fingerprint are the same keep running, with their sessions.
    pub async fn replace(&self, backends: Vec<(BackendSettings, Remote)>) {
        let ended = {
            let mut current = lock(&self.0.backends);
            let mut earlier = std::mem::take(&mut *current);
            for (settings, remote) in backends {
                let kept = earlier.iter().position(|backend| *backend.settings() == settings);
                current.push(match kept {
                    Some(index) => earlier.remove(index),
                    None => Backend::new(settings, remote),
                });
            }
            earlier
        };
        self.0.replaced.notify_one();
        close_all(ended).await;
    }

    /// Returns the health of each server, in the order of the configuration.
    pub fn health(&self) -> Vec<Health> {
        self.0.backends().iter().map(|backend| backend.health()).collect()
    }

    /// Waits until the health of a server changes.
    pub async fn health_changed(&self) {
        let backends = self.0.backends();
        let waiting = backends.iter().map(|backend| Box::pin(backend.health_changed()));
        let mut waiting: Vec<_> = waiting.collect();
        std::future::poll_fn(|cx| {
            let changed = waiting.iter_mut().any(|one| one.as_mut().poll(cx).is_ready());
            if changed { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

impl std::fmt::Debug for GatewayHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GatewayHandle").field(&self.health()).finish()
    }
}
