//! Subscriptions: notify clients when lists and resources change. Authors publish typed [`Event`]s on a
//! [`SubscriptionBus`]; the server distributes them to its listeners (`router`). In the envelope era a client receives them
//! on a long-lived request (`listen`), in the handshake era on its connection (`connection_listener`), or from a transport
//! that stores them first (`feed`). Each has a bounded backlog that merges equal events, so no client blocks the bus. A
//! resource matches by its exact URI: code that changes a part of a resource publishes the URI of the whole too, if its
//! subscribers need to know.

mod backlog;
mod bus;
mod connection_listener;
mod feed;
mod filter;
mod listen;
mod memory_bus;
mod notification;
mod publish;
mod router;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_core::tasks::TaskTracker;
use duplexer_types::methods::Method;

use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::handler::{Entry, RawEntry};
use crate::kernel::outcome::Outcome;
use crate::registry::{Handlers, RunningServer};
use duplexer_core::dispatch::{BoxFuture, Cancellation};
use duplexer_core::error::McpError;

use self::router::Router;

pub use bus::{BusMessage, Event, EventListener, Position, Since, Subscription, SubscriptionBus};
pub use feed::{ChangeDelivery, ChangeFeed, Changes};
pub use memory_bus::MemoryBus;

/// Limits of the subscriptions of clients.
///
/// ```
/// use duplexer::server::subscriptions::{MemoryBus, SubscriptionLimits};
///
/// let limits = SubscriptionLimits::default().streams(1000).uris(50);
/// let server = duplexer::Server::builder("clock", "1.0.0")
///     .subscriptions_within(MemoryBus::new(), limits)
///     .build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionLimits {
    pub(crate) streams: usize,
    pub(crate) uris: usize,
    pub(crate) uri_bytes: usize,
    pub(crate) backlog: usize,
}

impl SubscriptionLimits {
    /// Sets the maximum number of streams of all clients together (envelope era). Default: 1024.
    #[must_use]
    pub fn streams(mut self, limit: usize) -> Self {
        self.streams = limit;
        self
    }

    /// Sets the maximum number of URIs of one stream, or of one connection in the handshake era. Default: 1024.
    #[must_use]
    pub fn uris(mut self, limit: usize) -> Self {
        self.uris = limit;
        self
    }

    /// Sets the maximum number of bytes of these URIs together. Default: 256 KiB.
    #[must_use]
    pub fn uri_bytes(mut self, limit: usize) -> Self {
        self.uri_bytes = limit;
        self
    }

    /// Sets the maximum number of different events that wait for one stream. One more ends the stream. Default: 1024.
    #[must_use]
    pub fn backlog(mut self, limit: usize) -> Self {
        self.backlog = limit;
        self
    }
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self { streams: 1024, uris: 1024, uri_bytes: 256 * 1024, backlog: 1024 }
    }
}

/// The bus and the limits that a server was built with.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) bus: Arc<dyn SubscriptionBus>,
    pub(crate) limits: SubscriptionLimits,
}

/// The subscriptions of one run of a server.
pub(crate) struct Subscriptions {
    plan: Plan,
    router: Arc<Router>,
    /// Number of open streams.
    streams: Arc<AtomicUsize>,
    /// Cancelled at shutdown: every stream ends.
    closing: Cancellation,
    /// Owns the deliveries to connections of the handshake era.
    tasks: TaskTracker,
}

impl Subscriptions {
    pub(crate) fn new(plan: Plan, tasks: TaskTracker) -> Self {
        let router = Router::new(Arc::clone(&plan.bus));
        Self { plan, router, streams: Arc::default(), closing: Cancellation::new(), tasks }
    }

    /// Ends every stream orderly: with the events that wait for it, then its result.
    pub(crate) fn close(&self) {
        self.closing.cancel();
        self.router.close();
    }

    fn limits(&self) -> &SubscriptionLimits {
        &self.plan.limits
    }

    fn acquire_stream(&self) -> Option<StreamPermit> {
        let take = |open: usize| (open < self.plan.limits.streams).then_some(open + 1);
        let acquired = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        acquired.is_ok().then(|| StreamPermit(Arc::clone(&self.streams)))
    }
}

/// Permit of one open stream; released on drop.
struct StreamPermit(Arc<AtomicUsize>);

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Registers the handlers of a server with a bus, unless the author has registered them.
///
/// Subscriptions to single resources need a list of resources.
pub(crate) fn register(handlers: &mut Handlers) {
    handlers.set_default(Method::SubscriptionsListen, entry(|cx| Box::pin(listen::listen(cx))));
    if handlers.spec(Method::ResourcesList).is_some() {
        handlers
            .set_default(Method::ResourcesSubscribe, entry(|cx| ready(connection_listener::subscribe(&cx))));
        handlers.set_default(
            Method::ResourcesUnsubscribe,
            entry(|cx| ready(connection_listener::unsubscribe(&cx))),
        );
    }
}

/// Starts the notifications to a connection of the handshake era.
pub(crate) fn opened(cx: &Context<StateMap>) {
    connection_listener::ConnectionListener::open(cx.server(), cx.connection());
}

/// Returns the URIs that a connection of the handshake era is subscribed to.
pub(crate) fn uris(connection: &Connection) -> Vec<String> {
    connection_listener::uris(connection)
}

/// Adds subscriptions to a connection of the handshake era.
pub(crate) fn restore(running: &RunningServer, connection: &Arc<Connection>, uris: &[String]) {
    connection_listener::restore(running, connection, uris);
}

/// Removes subscriptions of a connection of the handshake era.
pub(crate) fn remove(connection: &Connection, uris: &[String]) {
    connection_listener::remove(connection, uris);
}

type Answer = Result<Outcome, McpError>;

fn entry(handler: fn(Context<StateMap>) -> BoxFuture<'static, Answer>) -> Arc<dyn Entry> {
    Arc::new(RawEntry(handler))
}

fn ready(answer: Answer) -> BoxFuture<'static, Answer> {
    Box::pin(std::future::ready(answer))
}

#[cfg(test)]
pub(crate) mod tests;
