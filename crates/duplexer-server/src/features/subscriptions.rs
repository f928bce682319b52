//! Subscriptions: who is told when lists and resources change.
//!
//! Authors publish typed [`Event`]s on a [`SubscriptionBus`]. In the envelope era a client hears of them on a standing
//! request (`listen`), in the handshake era on its connection (`session`). Nobody holds up the bus: each of them has a
//! bounded backlog in which equal events are one. The bus knows neither messages nor revisions.
//!
//! A resource is matched by its exact URI. Whoever changes a part of a resource publishes the URI of the whole too, if its
//! subscribers are to hear of it.

mod backlog;
mod bus;
mod filter;
mod listen;
mod publish;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_types::methods::Method;
use tokio_util::task::TaskTracker;

use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::handler::{Entry, RawEntry};
use crate::kernel::outcome::Outcome;
use crate::registry::{Handlers, RunningServer};
use duplexer_core::dispatch::{BoxFuture, Cancellation};
use duplexer_core::error::McpError;

pub use bus::{Event, Listener, MemoryBus, Subscription, SubscriptionBus};

/// How much clients may subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionLimits {
    /// Streams of all clients together (envelope era).
    pub streams: usize,
    /// URIs of one stream, or of one connection in the handshake era.
    pub uris: usize,
    /// Bytes that these URIs may have together.
    pub uri_bytes: usize,
    /// Different events that wait for one stream. One more ends it.
    pub backlog: usize,
}

impl Default for SubscriptionLimits {
    fn default() -> Self {
        Self { streams: 1024, uris: 1024, uri_bytes: 256 * 1024, backlog: 1024 }
    }
}

/// What a server was built with.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) bus: Arc<dyn SubscriptionBus>,
    pub(crate) limits: SubscriptionLimits,
}

/// The subscriptions of one run of a server.
pub(crate) struct Subscriptions {
    plan: Plan,
    /// Streams that are open.
    streams: Arc<AtomicUsize>,
    /// Raised when the run ends: every stream concludes.
    closing: Cancellation,
    /// Who owns deliveries to connections of the handshake era.
    tasks: TaskTracker,
}

impl Subscriptions {
    pub(crate) fn new(plan: Plan, tasks: TaskTracker) -> Self {
        Self { plan, streams: Arc::default(), closing: Cancellation::new(), tasks }
    }

    /// Ends every stream in order: with what waits for it, then its result.
    pub(crate) fn close(&self) {
        self.closing.raise();
    }

    fn limits(&self) -> &SubscriptionLimits {
        &self.plan.limits
    }

    fn take_place(&self) -> Option<Place> {
        let take = |open: usize| (open < self.plan.limits.streams).then_some(open + 1);
        let taken = self.streams.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        taken.is_ok().then(|| Place(Arc::clone(&self.streams)))
    }
}

/// The place of one stream among those that may be open; free again when dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Puts the handlers of a server with a bus into its registry, where the author has none of his own.
///
/// Single resources can be subscribed to where there are resources.
pub(crate) fn register(handlers: &mut Handlers) {
    handlers.set_default(Method::SubscriptionsListen, entry(|cx| Box::pin(listen::listen(cx))));
    if handlers.spec(Method::ResourcesList).is_some() {
        handlers.set_default(Method::ResourcesSubscribe, entry(|cx| ready(session::subscribe(&cx))));
        handlers.set_default(Method::ResourcesUnsubscribe, entry(|cx| ready(session::unsubscribe(&cx))));
    }
}

/// A connection of the handshake era is ready to be told things.
pub(crate) fn opened(cx: &Context<StateMap>) {
    session::Session::open(cx.server(), cx.connection());
}

/// What a connection of the handshake era is subscribed to.
pub(crate) fn uris(connection: &Connection) -> Vec<String> {
    session::uris(connection)
}

/// Subscribes a connection of the handshake era to what it was subscribed to elsewhere.
pub(crate) fn restore(running: &RunningServer, connection: &Arc<Connection>, uris: &[String]) {
    session::restore(running, connection, uris);
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
