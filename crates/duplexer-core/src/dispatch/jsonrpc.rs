//! The JSON-RPC dispatcher over a transport.
//!
//! `runner` says who does what; `read` takes frames in, in wire order; `handle` runs a request; `peer` makes our own calls;
//! `shared` is what they share and `room` its rules; `drain` ends it all in bounded time; `watchdog` keeps a handler that computes
//! without awaiting from holding up the others.

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
use std::time::Duration;
use std::{fmt, io};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio_util::task::TaskTracker;

use self::read::FrameSource;
use self::shared::Shared;
use super::outbound::OutboundHook;
use super::{Dispatch, Inbound};
use crate::error::McpError;
use crate::transport::{FrameReader, Transport, TransportError};

pub use peer::Peer;

/// Serves one connection: reads frames, hands requests up, correlates answers.
pub struct JsonRpcDispatcher {
    shared: Arc<Shared>,
    reader: Box<dyn FrameReader>,
}

/// How a dispatcher behaves where there is a choice.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct DispatchOptions {
    /// What the peer's cancellation does to a handler.
    pub cancel: CancelMode,
    /// What becomes of a handler's failure beside the answer.
    pub failures: FailureMode,
    /// How much may wait.
    pub limits: Limits,
    /// Sees what could not be read as a frame.
    pub observer: Option<Arc<Observer>>,
    /// Sees every own request.
    pub hook: Option<Arc<dyn OutboundHook>>,
}

/// Is shown what could not be read. Nothing else is read meanwhile: it must not block.
pub type Observer = dyn Fn(&Unreadable<'_>) + Send + Sync;

/// What the peer's cancellation does to a handler. Either way the request is never answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CancelMode {
    /// Its future is dropped.
    #[default]
    Interrupt,
    /// Only its cancellation flag is raised; it ends when it likes.
    Signal,
}

/// What becomes of a failure that its author did not mean for the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureMode {
    /// It is answered, logged, and that is all.
    #[default]
    Contain,
    /// It also ends the run with [`RunError::Handler`]. For tests.
    Raise,
}

/// The bounds of one connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Requests whose handlers run at the same time.
    pub running: usize,
    /// Further requests that wait for a handler's place, in the order they came.
    pub parked: usize,
    /// Bytes of text that such requests may hold. When either is full, reading stops.
    pub parked_bytes: usize,
    /// Requests that stand for as long as the peer likes.
    pub standing: usize,
    /// Notifications whose handlers run at the same time; more are dropped.
    pub notifications: usize,
    /// How long accepted requests may go on after the end of the stream.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 1024,
            parked: 16_384,
            parked_bytes: 8 * 1024 * 1024,
            // Whoever handles them refuses them earlier, and knows what they are called.
            standing: 2048,
            notifications: 1024,
            drain: Duration::from_secs(3),
        }
    }
}

/// Something that arrived and is not a frame.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Unreadable<'a> {
    /// What arrived, if it could be kept.
    pub text: Option<&'a str>,
    /// Why it is not a frame.
    pub reason: &'a dyn fmt::Display,
}

impl fmt::Debug for Unreadable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unreadable").field("reason", &format_args!("{}", self.reason)).finish_non_exhaustive()
    }
}

/// Why a run ended otherwise than in order.
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
    /// A dispatcher over `transport` and the way to its peer.
    pub fn new(transport: impl Transport) -> (Self, Peer) {
        Self::with_options(transport, DispatchOptions::default())
    }

    /// The same with options.
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
        let _interrupt_on_drop = drain::InterruptOnDrop(Arc::clone(&shared));
        // A task of its own, wherever the caller runs: on a runtime's thread the runners it starts stay near,
        // and waking it makes a thread that can wait for input look for some.
        let mut serving = JoinSet::new();
        let runtime_threads = Handle::current().metrics().num_workers();
        let connection = Connection { shared, inbound, tasks: TaskTracker::new(), runtime_threads };
        serving.spawn(Arc::new(connection).serve(reader));
        match serving.join_next().await.map(|ended| ended.map_err(JoinError::try_into_panic)) {
            Some(Ok(served)) => served,
            Some(Err(Ok(panic))) => resume_unwind(panic),
            // The runtime is going away.
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

/// A running connection: what its tasks share.
struct Connection<I> {
    shared: Arc<Shared>,
    inbound: Arc<I>,
    tasks: TaskTracker,
    /// How many threads the runtime has for tasks.
    runtime_threads: usize,
}

impl<I: Inbound> Connection<I> {
    /// The whole life of the connection.
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
