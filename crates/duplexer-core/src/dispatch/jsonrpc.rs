//! The JSON-RPC dispatcher over a transport.
//!
//! `workers` schedules the work; `read` takes in frames, in wire order; `admission` decides which request runs; `handle`
//! runs a handler; `peer` makes our own calls; `shared` is the state of all of them; `drain` ends the connection in bounded
//! time; `watchdog` keeps a handler that computes without awaiting from delaying the others.

mod admission;
mod drain;
mod handle;
mod peer;
mod read;
mod shared;
mod watchdog;
mod workers;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use std::{fmt, io};

use crate::tasks::TaskTracker;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};

use self::read::FrameSource;
use self::shared::Shared;
use super::outbound::OutboundHook;
use super::{Dispatch, Inbound};
use crate::error::McpError;
use crate::transport::{FrameReader, Transport, TransportError};

pub use peer::Peer;
pub use shared::AnnouncedWatchdog;

/// Dispatcher of one connection: reads frames, hands requests to [`Inbound`], and correlates responses.
pub struct JsonRpcDispatcher {
    shared: Arc<Shared>,
    reader: Box<dyn FrameReader>,
}

/// Options of a [`JsonRpcDispatcher`].
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_core::dispatch::{CancelMode, DispatchLimits, DispatchOptions};
///
/// let options = DispatchOptions::default()
///     .cancel(CancelMode::Signal)
///     .request_timeout(Duration::from_secs(30))
///     .limits(DispatchLimits::default().drain(Duration::from_secs(5)));
/// assert_eq!(options.drain(), Duration::from_secs(5));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct DispatchOptions {
    pub(crate) cancel: CancelMode,
    pub(crate) failures: FailureMode,
    pub(crate) limits: DispatchLimits,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) observer: Option<Arc<Observer>>,
    pub(crate) hook: Option<Arc<dyn OutboundHook>>,
    pub(crate) writes: Writes,
}

impl DispatchOptions {
    /// Sets what the peer's cancellation does to a handler.
    #[must_use]
    pub fn cancel(mut self, cancel: CancelMode) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets what a handler's failure does apart from the response.
    #[must_use]
    pub fn failures(mut self, failures: FailureMode) -> Self {
        self.failures = failures;
        self
    }

    /// Sets the bounds of the connection.
    #[must_use]
    pub fn limits(mut self, limits: DispatchLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the maximum time that accepted requests continue after the end of the stream.
    pub fn drain(&self) -> Duration {
        self.limits.drain
    }

    /// Sets the timeout of own requests that have none. Default: none.
    #[must_use]
    pub fn request_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.request_timeout = timeout.into();
        self
    }

    /// Calls `observer` with input that is not a frame.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&Unreadable<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Sets when own requests are written.
    #[must_use]
    pub fn writes(mut self, writes: Writes) -> Self {
        self.writes = writes;
        self
    }

    /// Observes every own request with `hook`.
    #[must_use]
    pub fn hook(mut self, hook: impl Into<Option<Arc<dyn OutboundHook>>>) -> Self {
        self.hook = hook.into();
        self
    }
}

/// When own requests are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writes {
    /// As soon as the writer task runs.
    #[default]
    Soon,
    /// After the tasks that are ready have run, so that one write takes the requests of all of them. For proxies, whose
    /// requests come from many tasks that have little else to do.
    Collected,
}

/// Observes input that is not a frame. Nothing else is read meanwhile: it must not block.
pub type Observer = dyn Fn(&Unreadable<'_>) + Send + Sync;

/// What a cancellation by the peer does to a handler. Either way the request is never answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelMode {
    /// The handler's future is dropped.
    #[default]
    Interrupt,
    /// Only the cancellation is signalled; the handler decides when it ends.
    Signal,
}

/// What is done with a failure that is not meant for the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureMode {
    /// It is answered and logged.
    #[default]
    Contain,
    /// It also ends the run with [`RunError::Handler`]. For tests.
    Raise,
}

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DispatchLimits {
    pub(crate) running: usize,
    pub(crate) queued: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) long_lived: usize,
    pub(crate) notifications: usize,
    pub(crate) drain: Duration,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)*) => {
        impl DispatchLimits {$(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, limit: $type) -> Self {
                self.$name = limit;
                self
            }
        )*}
    };
}

limits! {
    /// Sets the maximum number of requests whose handlers run at the same time. Default: 1024.
    running: usize;
    /// Sets the maximum number of further requests that are queued, in the order of arrival. Default: 16 384.
    queued: usize;
    /// Sets the maximum bytes of text that queued requests hold. When either limit is reached, reading stops. Default: 8 MiB.
    queued_bytes: usize;
    /// Sets the maximum number of long-lived requests. Default: 2048.
    long_lived: usize;
    /// Sets the maximum number of notifications whose handlers run at the same time; more are dropped. Default: 1024.
    notifications: usize;
    /// Sets the maximum time that accepted requests continue after the end of the stream. Default: 10 s.
    drain: Duration;
}

impl Default for DispatchLimits {
    fn default() -> Self {
        Self {
            running: 1024,
            queued: 16_384,
            queued_bytes: 8 * 1024 * 1024,
            // The layer above refuses them earlier, with an error that names the method.
            long_lived: 2048,
            notifications: 1024,
            drain: Duration::from_secs(10),
        }
    }
}

/// Input that is not a frame.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Unreadable<'a> {
    /// The input, if it could be kept.
    pub text: Option<&'a str>,
    /// Why it is not a frame.
    pub reason: &'a dyn fmt::Display,
}

impl fmt::Debug for Unreadable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unreadable").field("reason", &format_args!("{}", self.reason)).finish_non_exhaustive()
    }
}

/// Why a run ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The transport failed while reading.
    #[error("the connection broke")]
    Transport(#[from] TransportError),
    /// A handler failed and [`FailureMode::Raise`] is set.
    #[error("a handler failed")]
    Handler(#[source] McpError),
}

impl JsonRpcDispatcher {
    /// Creates a dispatcher over `transport`, and the channel to its peer.
    pub fn new(transport: impl Transport) -> (Self, Peer) {
        Self::with_options(transport, DispatchOptions::default())
    }

    /// Creates a dispatcher with options.
    pub fn with_options(transport: impl Transport, options: DispatchOptions) -> (Self, Peer) {
        let (reader, writer) = transport.split();
        let shared = Arc::new(Shared::new(writer, options));
        let peer = Peer::new(Arc::clone(&shared));
        (Self { shared, reader }, peer)
    }
}

impl Dispatch for JsonRpcDispatcher {
    /// Serves until the stream ends or [`Peer::stop`] is called, then drains and closes.
    ///
    /// Dropping the future interrupts every handler.
    async fn run<I: Inbound>(self, inbound: Arc<I>) -> Result<(), RunError> {
        let Self { shared, reader } = self;
        shared.start();
        let _abort_on_drop = drain::AbortOnDrop(Arc::clone(&shared));
        // A task of its own, because the caller may not run on a runtime thread: there the workers it spawns stay local, and
        // waking it makes a thread that can wait for input look for some.
        let mut serving = JoinSet::new();
        let runtime_threads = Handle::current().metrics().num_workers();
        let (tasks, unaddressed_errors) = (TaskTracker::new(), AtomicU32::new(0));
        let connection = Connection { shared, inbound, tasks, runtime_threads, unaddressed_errors };
        serving.spawn(Arc::new(connection).serve(reader));
        match serving.join_next().await.map(|ended| ended.map_err(JoinError::try_into_panic)) {
            Some(Ok(served)) => served,
            Some(Err(Ok(panic))) => resume_unwind(panic),
            // The runtime is shutting down.
            Some(Err(Err(_))) | None => Ok(()),
        }
    }
}

impl fmt::Debug for JsonRpcDispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonRpcDispatcher").finish_non_exhaustive()
    }
}

impl fmt::Debug for DispatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchOptions")
            .field("cancel", &self.cancel)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

/// A running connection, as its tasks see it.
struct Connection<I> {
    shared: Arc<Shared>,
    inbound: Arc<I>,
    tasks: TaskTracker,
    /// Number of threads that the runtime has for tasks.
    runtime_threads: usize,
    /// Error responses without an id since the last frame. Only the worker that holds the reader changes it.
    unaddressed_errors: AtomicU32,
}

impl<I: Inbound> Connection<I> {
    /// Serves the connection from its start to its end.
    async fn serve(self: Arc<Self>, reader: Box<dyn FrameReader>) -> Result<(), RunError> {
        let shared = &self.shared;
        let (ended, reading) = oneshot::channel();
        self.open(FrameSource::new(reader, ended));
        let served = async {
            let read = tokio::select! {
                read = reading => read.unwrap_or_else(|_| Err(TransportError::Io(io::Error::other("reading panicked")))),
                () = shared.stop.beyond(0) => Ok(()),
            };
            self.drain().await;
            read
        };
        let read = tokio::select! {
            read = served => read,
            () = shared.outbox.drive() => Ok(()),
            () = self.grow_on_stall() => Ok(()),
        };
        drain::close_outbox(shared).await;
        match shared.raised_failure() {
            Some(failure) => Err(RunError::Handler(failure)),
            None => read.map_err(RunError::Transport),
        }
    }
}
