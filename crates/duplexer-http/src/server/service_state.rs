//! What all clones of a service share: its server's lifespan, how many requests are under way, and its end.

mod lifespan;
pub(super) mod stream_watch;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer_core::dispatch::Cancellation;
use duplexer_core::server::{Running, Server};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use self::lifespan::Lifespan;
use super::config::Config;
use super::http_sse::SseSessions;
use super::session::Sessions;

pub(super) use lifespan::StartFailed;
use stream_watch::StreamWatch;

/// All that the end of a service may take: drain, last answers, lifespans.
const SHUTDOWN_BUDGET: Duration = Duration::from_secs(5);
/// What those get to see their last answer that did not finish in time.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct ServiceState {
    pub(super) config: Config,
    pub(super) streams: StreamWatch,
    pub(super) sessions: Sessions,
    pub(super) sse_sessions: SseSessions,
    /// What runs although nobody waits for it: requests of sessions, and what is left to do at their end.
    pub(super) tasks: TaskTracker,
    /// Raised when the service is about to end: what stands for long concludes.
    pub(super) closing: Cancellation,
    /// Raised when the time of those still running is over.
    pub(super) abort: Cancellation,
    lifespan: Lifespan,
    load: Load,
    ended: Mutex<Ended>,
}

/// Whether the end has been brought about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    No,
    Yes,
}

/// Written by every request, and so on a cache line away from what every request only reads.
#[derive(Default)]
#[repr(align(128))]
struct Load {
    requests: AtomicUsize,
    subscriptions: AtomicUsize,
    idle: Notify,
}

impl ServiceState {
    pub(super) fn new(server: Server, config: Config) -> Self {
        Self {
            streams: StreamWatch::new(config.timing.unread),
            sessions: Sessions::default(),
            sse_sessions: SseSessions::default(),
            tasks: TaskTracker::new(),
            config,
            closing: Cancellation::new(),
            abort: Cancellation::new(),
            lifespan: Lifespan::new(server),
            load: Load::default(),
            ended: Mutex::new(Ended::No),
        }
    }

    /// The started server. The first to ask starts it; nobody who leaves stops that.
    pub(super) async fn running(&self) -> Result<&Running, StartFailed> {
        self.lifespan.running().await
    }

    /// Runs something to its end although nobody waits for it; the end of the service does.
    pub(super) fn spawn_tracked(&self, work: impl Future<Output = ()> + Send + 'static) {
        // What is dropped with a runtime has none to go on in.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        } else {
            tracing::warn!("outside of a runtime nothing can go on");
        }
    }

    /// A place among the requests under way, if there is one.
    pub(super) fn admit(self: Arc<Self>) -> Option<RequestPermit> {
        let before = self.load.requests.fetch_add(1, Ordering::Relaxed);
        let has_room = before < self.config.limits.requests && !self.closing.is_raised();
        let permit = RequestPermit { service: self, subscription: Subscription::No };
        has_room.then_some(permit)
    }

    /// Resolves when nothing is under way any more.
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

    /// Ends the service in order, once.
    pub(super) async fn shutdown(self: &Arc<Self>) {
        let start = Instant::now();
        self.closing.raise();
        self.sessions.close_standalone();
        if timeout(self.config.timing.shutdown_grace, self.idle()).await.is_err() {
            tracing::warn!("requests were still under way when the drain ended");
            self.abort.raise();
            let _ = timeout(ABORT_TIMEOUT, self.idle()).await;
        }
        self.streams.time_out_all();
        let first = std::mem::replace(&mut *lock(&self.ended), Ended::Yes) == Ended::No;
        if first {
            Sessions::end_all(self, SHUTDOWN_BUDGET.saturating_sub(start.elapsed())).await;
            self.lifespan.end(SHUTDOWN_BUDGET.saturating_sub(start.elapsed())).await;
        }
    }
}

/// A place among the requests under way; given back when dropped.
pub(super) struct RequestPermit {
    service: Arc<ServiceState>,
    subscription: Subscription,
}

/// Whether a request also takes the place of a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    No,
    Yes,
}

impl RequestPermit {
    pub(super) fn service(&self) -> &Arc<ServiceState> {
        &self.service
    }

    /// One more place, beyond the limit, for what has come along with this.
    pub(super) fn additional(&self) -> Self {
        self.service.load.requests.fetch_add(1, Ordering::Relaxed);
        Self { service: Arc::clone(&self.service), subscription: Subscription::No }
    }

    /// The same place, for a subscription, if one more may be open.
    pub(super) fn subscribe(mut self) -> Option<Self> {
        let before = self.service.load.subscriptions.fetch_add(1, Ordering::Relaxed);
        self.subscription = Subscription::Yes;
        (before < self.service.config.limits.subscriptions).then_some(self)
    }
}

impl Drop for RequestPermit {
    fn drop(&mut self) {
        let load = &self.service.load;
        if self.subscription == Subscription::Yes {
            load.subscriptions.fetch_sub(1, Ordering::Relaxed);
        }
        if load.requests.fetch_sub(1, Ordering::Release) == 1 {
            load.idle.notify_waiters();
        }
    }
}

/// Ends a service in order. Clones end the same one.
#[derive(Clone, Debug)]
pub struct ShutdownHandle(Arc<ServiceState>);

impl ShutdownHandle {
    pub(super) fn new(service: Arc<ServiceState>) -> Self {
        Self(service)
    }

    /// Takes no further requests, lets those under way finish for the drain time, answers the rest with an error, ends
    /// streams, and runs the teardown of the server's lifespan. Five seconds at most, with the default drain.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}

impl fmt::Debug for ServiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceState")
            .field("requests", &self.load.requests.load(Ordering::Relaxed))
            .field("closing", &self.closing.is_raised())
            .finish_non_exhaustive()
    }
}

/// The table of a service that was busy once does not keep its size for ever.
pub(super) fn shrink<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2);
    }
}

/// A panic while a lock is held cannot leave the data behind it inconsistent: every change is one step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
