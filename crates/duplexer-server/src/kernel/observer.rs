//! Observers: they see every message begin and end, outside all middleware, and change nothing. Unlike middleware they are
//! called without a future, so that counting a request needs no allocation.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use tokio::time::Instant;

use super::context::Scope;
use super::outcome::Outcome;
use super::principal::Principal;
use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;

/// Sees every request and notification begin and end, and connections open and close. Added with
/// [`ServerBuilder::observer`](crate::ServerBuilder::observer).
///
/// Observers are for counters. What is to change, refuse or delay a message is [`Middleware`](crate::middleware::Middleware).
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
///
/// use duplexer::Server;
/// use duplexer::middleware::{Observed, Observer, Ending};
///
/// #[derive(Default)]
/// struct Slow(AtomicU64);
///
/// impl Observer for Slow {
///     fn ended(&self, _: &Observed<'_>, _: Ending<'_>, elapsed: Duration) {
///         if elapsed > Duration::from_secs(1) {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let slow = Arc::new(Slow::default());
/// let server = Server::builder("archive", "1.0.0").observer(Arc::clone(&slow)).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A message arrived. Middleware has not seen it yet.
    fn begun(&self, message: &Observed<'_>) {
        let _ = message;
    }

    /// The message was handled, or dropped before that. Every message that has begun ends once.
    fn ended(&self, message: &Observed<'_>, ending: Ending<'_>, elapsed: Duration);

    /// The result of a request was written, in this many bytes.
    fn written(&self, method: Option<Method>, bytes: usize) {
        let _ = (method, bytes);
    }

    /// A handshake has opened a connection.
    fn opened(&self, version: ProtocolVersion) {
        let _ = version;
    }

    /// A connection that a handshake opened has closed.
    fn closed(&self, version: ProtocolVersion, elapsed: Duration) {
        let _ = (version, elapsed);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn begun(&self, message: &Observed<'_>) {
        (**self).begun(message);
    }

    fn ended(&self, message: &Observed<'_>, ending: Ending<'_>, elapsed: Duration) {
        (**self).ended(message, ending, elapsed);
    }

    fn written(&self, method: Option<Method>, bytes: usize) {
        (**self).written(method, bytes);
    }

    fn opened(&self, version: ProtocolVersion) {
        (**self).opened(version);
    }

    fn closed(&self, version: ProtocolVersion, elapsed: Duration) {
        (**self).closed(version, elapsed);
    }
}

/// The observers of a server.
pub(crate) type Observers = Arc<[Arc<dyn Observer>]>;

/// A message that is observed.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    scope: &'a Scope,
}

impl<'a> Observed<'a> {
    /// Returns the message.
    pub fn message(&self) -> &'a Message {
        &self.scope.message
    }

    /// Returns whether the message is a request, and not a notification.
    pub fn is_request(&self) -> bool {
        self.scope.call.id.is_some()
    }

    /// Returns the tool that was called: only one that the server has. Known when the message has ended.
    pub fn tool(&self) -> Option<&'a str> {
        self.scope.target.get().map(|tool| tool.name())
    }

    /// Returns the principal, if an authorization layer has established one. It is no label of a metric.
    pub fn principal(&self) -> Option<&'a Principal> {
        self.scope.principal()
    }

    /// Returns the revision in which the message is handled.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.scope.version
    }

    /// Returns the name of the transport.
    pub fn transport(&self) -> &'static str {
        self.scope.call.transport.kind
    }
}

impl fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("method", &self.message().method()).finish_non_exhaustive()
    }
}

/// How a message ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Ending<'a> {
    /// With a result; of a tool it can be an error that the model reads.
    Done(&'a Outcome),
    /// With an error.
    Failed(&'a McpError),
    /// It was dropped before it had an outcome: cancelled by the client, or by the end of its connection; or its handler
    /// panicked.
    Dropped,
}

/// What a request is for, by a name that the server has.
pub(crate) trait Target: Send + Sync {
    fn name(&self) -> &str;
}

/// The tool of a call, set where it is found.
pub(crate) type TargetCell = OnceLock<Arc<dyn Target>>;

/// Tells the observers of one message when it ends, also if its future is dropped.
pub(crate) struct Observation<'a> {
    observed: Observed<'a>,
    /// `None` without observers: the clock is not read.
    start: Option<Instant>,
}

impl<'a> Observation<'a> {
    pub(crate) fn begin(scope: &'a Scope) -> Self {
        let observed = Observed { scope };
        let observers = &scope.running.registry().observers;
        let start = if observers.is_empty() { None } else { Some(Instant::now()) };
        for observer in observers.iter() {
            observer.begun(&observed);
        }
        Self { observed, start }
    }

    /// Reports the end.
    pub(crate) fn end(mut self, result: Result<&Outcome, &McpError>) {
        self.report(match result {
            Ok(outcome) => Ending::Done(outcome),
            Err(error) => Ending::Failed(error),
        });
    }

    fn report(&mut self, ending: Ending<'_>) {
        let Some(start) = self.start.take() else { return };
        let elapsed = start.elapsed();
        for observer in self.observed.scope.running.registry().observers.iter() {
            observer.ended(&self.observed, ending, elapsed);
        }
    }
}

impl Drop for Observation<'_> {
    fn drop(&mut self) {
        self.report(Ending::Dropped);
    }
}

/// The life of a connection after its handshake. Its end is that of the connection.
pub(crate) struct OpenConnection {
    observers: Observers,
    version: ProtocolVersion,
    start: Instant,
}

impl OpenConnection {
    pub(crate) fn begin(observers: &Observers, version: ProtocolVersion) -> Self {
        for observer in observers.iter() {
            observer.opened(version);
        }
        Self { observers: Arc::clone(observers), version, start: Instant::now() }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let elapsed = self.start.elapsed();
        for observer in self.observers.iter() {
            observer.closed(self.version, elapsed);
        }
    }
}
