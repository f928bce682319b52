//! State that all clones of a service share: the server's lifespan, the request permits, and the shutdown.

mod lifespan;
pub(super) mod share;
pub(super) mod stream_watch;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use duplexer_core::dispatch::Cancellation;
use duplexer_core::shutdown_signal::ShutdownSignals;
use duplexer_core::tasks::TaskTracker;
use duplexer_server::{Principal, RunningServer, Server};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use self::lifespan::Lifespan;
use super::config::{Config, Limits, StoreReadiness, Timing};
use super::http_sse::SseSessions;
use super::session::{Inbox, Sessions, Stores};
use crate::session::Health;
use crate::sync::{Mutex, lock};

pub(super) use lifespan::StartFailed;
pub(super) use share::Share;
use share::Shares;
use stream_watch::StreamWatch;

/// Time of the shutdown after the grace: last responses, sessions, lifespans.
const TEARDOWN_BUDGET: Duration = Duration::from_secs(5);
/// Time for the error responses of requests that the end of the grace aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// State that all clones of a service share.
pub(super) struct ServiceState {
    pub(super) config: Config,
    pub(super) streams: StreamWatch,
    pub(super) sessions: Sessions,
    pub(super) sse_sessions: SseSessions,
    /// The stores of sessions and events, if there are any.
    pub(super) stores: Option<Arc<Stores>>,
    /// Tasks that no request awaits: requests of sessions whose client has left, and the teardown of sessions.
    pub(super) tasks: TaskTracker,
    /// Raised when the shutdown begins: other nodes serve the clients of this one.
    pub(super) leaving: Cancellation,
    /// Raised when new requests are rejected. Long-lived requests then finish.
    pub(super) closing: Cancellation,
    /// Raised when the shutdown grace has ended. Requests in flight are then aborted.
    pub(super) abort: Cancellation,
    lifespan: Lifespan,
    load: Load,
    pub(super) shares: Shares,
    ended: Mutex<Ended>,
    inbox: OnceLock<Arc<Inbox>>,
}

/// Whether the shutdown has run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    Yes,
}

/// Counters that every request writes, on a cache line of their own: the rest of the state is only read.
#[derive(Default)]
#[repr(align(128))]
struct Load {
    requests: AtomicUsize,
    subscriptions: AtomicUsize,
    idle: Notify,
}

impl ServiceState {
    /// Creates the state of a service, which receives the messages of other nodes from now on.
    pub(super) fn start(server: Server, config: Config) -> Arc<Self> {
        let service = Arc::new(Self::new(server, config));
        if let Some(shared) = &service.config.sessions.shared {
            let inbox = Arc::new(Inbox::new(Arc::downgrade(&service)));
            let listener = Arc::downgrade(&inbox);
            let _ = service.inbox.set(inbox);
            shared.nodes.receive(listener);
        }
        service
    }

    fn new(server: Server, config: Config) -> Self {
        let tasks = TaskTracker::new();
        Self {
            stores: Stores::new(&config.sessions, &tasks),
            streams: StreamWatch::new(config.timing.unread),
            sessions: Sessions::default(),
            sse_sessions: SseSessions::default(),
            tasks,
            config,
            leaving: Cancellation::new(),
            closing: Cancellation::new(),
            abort: Cancellation::new(),
            lifespan: Lifespan::new(server),
            load: Load::default(),
            shares: Shares::default(),
            ended: Mutex::new(Ended::No),
            inbox: OnceLock::new(),
        }
    }

    /// Returns the started server. The first caller starts it. A caller that leaves does not stop the start.
    pub(super) async fn running(&self) -> Result<&RunningServer, StartFailed> {
        self.lifespan.running().await
    }

    /// Spawns a task that the shutdown waits for.
    pub(super) fn spawn_tracked(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Work that is dropped with its runtime has no other to run on.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        } else {
            tracing::warn!("a task is dropped because no runtime is left");
        }
    }

    /// Returns a permit, unless a limit is reached or the shutdown has begun.
    pub(super) fn admit(self: Arc<Self>, principal: Option<&Principal>) -> Option<RequestPermit> {
        let share = principal.map(|principal| self.shares.of(principal));
        let is_closing = self.closing.is_cancelled();
        RequestPermit::take(self, share, BeyondLimit::Refused).filter(|_| !is_closing)
    }

    /// Returns a permit beyond the limits, for a response that has not been sent.
    pub(super) fn count_request(self: &Arc<Self>, share: Option<Arc<Share>>) -> Option<RequestPermit> {
        RequestPermit::take(Arc::clone(self), share, BeyondLimit::Allowed)
    }

    /// Returns the counters of requests and of subscriptions.
    pub(super) fn in_flight(&self) -> (&AtomicUsize, &AtomicUsize) {
        (&self.load.requests, &self.load.subscriptions)
    }

    /// Resolves when no request is in flight.
    async fn idle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.load.idle.notified());
            changed.as_mut().enable();
            if self.load.requests.load(Ordering::Acquire) == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Shuts the service down; `cut` ends the grace. The teardown runs once.
    pub(super) async fn shutdown_until(self: &Arc<Self>, cut: impl Future<Output = ()>) {
        self.leaving.cancel();
        let mut cut = std::pin::pin!(cut);
        let Timing { shutdown_notice: notice, shutdown_grace: grace, .. } = self.config.timing;
        let is_cut = !notice.is_zero() && timeout(notice, cut.as_mut()).await.is_ok();
        let start = Instant::now();
        self.closing.cancel();
        // Readers follow kept streams at other nodes, which needs no end of the stream here.
        if self.config.sessions.shared.is_none() {
            self.sessions.close_standalone();
        }
        let is_idle = tokio::select! {
            idle = timeout(grace, self.idle()), if !is_cut => idle.is_ok(),
            () = cut, if !is_cut => false,
            else => false,
        };
        let budget = grace.saturating_add(TEARDOWN_BUDGET);
        if !is_idle {
            tracing::warn!("requests were still in flight at the end of the shutdown grace");
            self.abort.cancel();
            let _ = timeout(ABORT_TIMEOUT, self.idle()).await;
        }
        self.streams.shut_down();
        let first = std::mem::replace(&mut *lock(&self.ended), Ended::Yes) == Ended::No;
        if first {
            Sessions::end_all(self, budget.saturating_sub(start.elapsed())).await;
            self.lifespan.end(budget.saturating_sub(start.elapsed())).await;
            if let Some(shared) = &self.config.sessions.shared {
                let _ = timeout(ABORT_TIMEOUT, shared.nodes.leave()).await;
            }
        }
    }

    /// Returns whether connections are accepted during the shutdown: while the balancer learns of it, and where other
    /// nodes serve what is refused here.
    pub(super) fn accepts_until_the_end(&self) -> bool {
        self.config.sessions.shared.is_some() || !self.config.timing.shutdown_notice.is_zero()
    }

    /// Returns whether a balancer can send requests.
    pub(super) fn is_ready(&self) -> bool {
        let has_store = || {
            let shared = self.config.sessions.shared.as_ref();
            shared.is_none_or(|shared| shared.nodes.health() == Health::Healthy)
        };
        let is_served = self.config.store_readiness() == StoreReadiness::Ignored || has_store();
        !self.leaving.is_cancelled() && is_served
    }
}

/// Permit of one request in flight. Dropping it returns the permit.
pub(super) struct RequestPermit {
    service: Arc<ServiceState>,
    /// What the principal of the request holds, if it has one.
    share: Option<Arc<Share>>,
    subscription: Subscription,
}

/// Whether a permit can exceed the limit of requests in flight. It counts either way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BeyondLimit {
    Allowed,
    Refused,
}

/// Whether a request also counts as a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    No,
    Yes,
}

impl RequestPermit {
    pub(super) fn service(&self) -> &Arc<ServiceState> {
        &self.service
    }

    /// Counts one more request, of the service and of its principal. Returns `None` at a limit.
    fn take(service: Arc<ServiceState>, share: Option<Arc<Share>>, beyond: BeyondLimit) -> Option<Self> {
        let Limits { requests, requests_per_principal, .. } = service.config.limits;
        let within = share::count(&service.load.requests, requests);
        let within_share =
            share.as_ref().is_none_or(|share| share::count(&share.requests, requests_per_principal));
        let permit = Self { service, share, subscription: Subscription::No };
        (beyond == BeyondLimit::Allowed || (within && within_share)).then_some(permit)
    }

    /// Returns one more permit, for another message of the same batch.
    pub(super) fn additional(&self, beyond: BeyondLimit) -> Option<Self> {
        Self::take(Arc::clone(&self.service), self.share.clone(), beyond)
    }

    /// Converts the permit into one of a subscription, unless a limit of theirs is reached.
    pub(super) fn subscribe(mut self) -> Option<Self> {
        let Limits { subscriptions, subscriptions_per_principal, .. } = self.service.config.limits;
        let within = share::count(&self.service.load.subscriptions, subscriptions);
        let share = self.share.as_ref();
        let within_share =
            share.is_none_or(|share| share::count(&share.subscriptions, subscriptions_per_principal));
        self.subscription = Subscription::Yes;
        (within && within_share).then_some(self)
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let load = &self.service.load;
        if self.subscription == Subscription::Yes {
            load.subscriptions.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(share) = &self.share {
            if self.subscription == Subscription::Yes {
                share.subscriptions.fetch_sub(1, Ordering::Relaxed);
            }
            share.requests.fetch_sub(1, Ordering::Relaxed);
        }
        if load.requests.fetch_sub(1, Ordering::Release) == 1 {
            load.idle.notify_waiters();
        }
    }
}

/// Shuts a service down. Clones shut down the same service.
///
/// ```
/// use axum::Router;
/// use duplexer_http::StreamableHttp;
/// use duplexer_server::Server;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mcp = StreamableHttp::new(Server::builder("calculator", "1.0.0").build()?);
/// let handle = mcp.handle();
/// let app = Router::new().route_service("/mcp", mcp);
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// // Calls in flight end, then the lifespan, then axum. `on_signal` waits for Ctrl-C or SIGTERM first.
/// axum::serve(listener, app).with_graceful_shutdown(async move { handle.shutdown().await }).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ShutdownHandle(Arc<ServiceState>);

impl ShutdownHandle {
    pub(super) fn new(service: Arc<ServiceState>) -> Self {
        Self(service)
    }

    /// Rejects new requests, lets those in flight finish within the shutdown grace, answers the rest with an error,
    /// ends streams, and runs the teardown of the server's lifespan. Takes at most 15 seconds with the default grace.
    pub async fn shutdown(&self) {
        self.0.shutdown_until(std::future::pending()).await;
    }

    /// Returns a future that waits for SIGTERM or Ctrl-C and then shuts the service down; a second signal ends the grace.
    /// For a server of another library: `axum::serve(listener, app).with_graceful_shutdown(handle.on_signal()?)`.
    ///
    /// Must be called within a tokio runtime. From this call on the signals no longer end the process by themselves.
    ///
    /// # Errors
    ///
    /// Fails if the signals cannot be caught.
    pub fn on_signal(&self) -> std::io::Result<impl Future<Output = ()> + Send + use<>> {
        let mut signals = ShutdownSignals::listen()?;
        let service = Arc::clone(&self.0);
        Ok(async move {
            signals.next().await;
            service.shutdown_until(signals.next()).await;
        })
    }
}

impl fmt::Debug for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceState")
            .field("requests", &self.load.requests.load(Ordering::Relaxed))
            .field("closing", &self.closing.is_cancelled())
            .finish_non_exhaustive()
    }
}

/// Releases memory of a table that was much larger once.
pub(super) fn shrink<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2);
    }
}
