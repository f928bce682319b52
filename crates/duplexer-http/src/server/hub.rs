//! What all clones of a service share: its server's lifespan, how many requests are under way, and its end.

mod lifespan;
pub(super) mod streams;

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use duplexer_core::dispatch::Cancellation;
use duplexer_server::{RunningServer, Server};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use self::lifespan::Lifespan;
use super::config::Config;
use super::http_sse::Links;
use super::session::Sessions;

pub(super) use lifespan::StartFailed;
use streams::Streams;

/// All that the end of a service may take: drain, last answers, lifespans.
const SHUTDOWN_BUDGET: Duration = Duration::from_secs(5);
/// What those get to see their last answer that did not finish in time.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

pub(super) struct Hub {
    pub(super) config: Config,
    pub(super) streams: Streams,
    pub(super) sessions: Sessions,
    pub(super) links: Links,
    /// What runs although nobody waits for it: requests of sessions, and what is left to do at their end.
    pub(super) tasks: TaskTracker,
    /// Raised when the service is about to end: what stands for long concludes.
    pub(super) closing: Cancellation,
    /// Raised when the time of those still running is over.
    pub(super) cut: Cancellation,
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

impl Hub {
    pub(super) fn new(server: Server, config: Config) -> Self {
        Self {
            streams: Streams::new(config.timing.unread),
            sessions: Sessions::default(),
            links: Links::default(),
            tasks: TaskTracker::new(),
            config,
            closing: Cancellation::new(),
            cut: Cancellation::new(),
            lifespan: Lifespan::new(server),
            load: Load::default(),
            ended: Mutex::new(Ended::No),
        }
    }

    /// The started server. The first to ask starts it; nobody who leaves stops that.
    pub(super) async fn running(&self) -> Result<&RunningServer, StartFailed> {
        self.lifespan.running().await
    }

    /// Runs something to its end although nobody waits for it; the end of the service does.
    pub(super) fn see_to(&self, work: impl Future<Output = ()> + Send + 'static) {
        // What is dropped with a runtime has none to go on in.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.tasks.spawn_on(work, &runtime);
        } else {
            tracing::warn!("outside of a runtime nothing can go on");
        }
    }

    /// A place among the requests under way, if there is one.
    pub(super) fn admit(self: Arc<Self>) -> Option<Admitted> {
        let before = self.load.requests.fetch_add(1, Ordering::Relaxed);
        let has_room = before < self.config.limits.requests && !self.closing.is_raised();
        let admitted = Admitted { hub: self, subscription: Subscription::No };
        has_room.then_some(admitted)
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
        if timeout(self.config.timing.drain, self.idle()).await.is_err() {
            tracing::warn!("requests were still under way when the drain ended");
            self.cut.raise();
            let _ = timeout(LAST_ANSWERS, self.idle()).await;
        }
        self.streams.cut_all();
        let first = std::mem::replace(&mut *lock(&self.ended), Ended::Yes) == Ended::No;
        if first {
            Sessions::end_all(self, SHUTDOWN_BUDGET.saturating_sub(start.elapsed())).await;
            self.lifespan.end(SHUTDOWN_BUDGET.saturating_sub(start.elapsed())).await;
        }
    }
}

/// A place among the requests under way; given back when dropped.
pub(super) struct Admitted {
    hub: Arc<Hub>,
    subscription: Subscription,
}

/// Whether a request also takes the place of a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subscription {
    No,
    Yes,
}

impl Admitted {
    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// One more place, beyond the limit, for what has come along with this.
    pub(super) fn another(&self) -> Self {
        self.hub.load.requests.fetch_add(1, Ordering::Relaxed);
        Self { hub: Arc::clone(&self.hub), subscription: Subscription::No }
    }

    /// The same place, for a subscription, if one more may be open.
    pub(super) fn subscribe(mut self) -> Option<Self> {
        let before = self.hub.load.subscriptions.fetch_add(1, Ordering::Relaxed);
        self.subscription = Subscription::Yes;
        (before < self.hub.config.limits.subscriptions).then_some(self)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let load = &self.hub.load;
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
pub struct Handle(Arc<Hub>);

impl Handle {
    pub(super) fn new(hub: Arc<Hub>) -> Self {
        Self(hub)
    }

    /// Takes no further requests, lets those under way finish for the drain time, answers the rest with an error,
    /// ends streams, and runs the teardown of the server's lifespan. Five seconds at most, with the default drain.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("requests", &self.load.requests.load(Ordering::Relaxed))
            .field("closing", &self.closing.is_raised())
            .finish_non_exhaustive()
    }
}

/// Has a task woken with the others that wait, once however often it asks.
pub(super) fn enlist(waiting: &mut Vec<Waker>, waker: &Waker) {
    if !waiting.iter().any(|known| known.will_wake(waker)) {
        waiting.push(waker.clone());
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
